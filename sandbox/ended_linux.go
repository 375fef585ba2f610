package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// An endedError tells why, if that is known. To a caller it is [os.ErrClosed], too.
type endedError struct {
	cause error
}

func (e *endedError) Error() string {
	if e.cause == nil {
		return ErrEnded.Error()
	}
	return ErrEnded.Error() + ": " + e.cause.Error()
}

func (e *endedError) Unwrap() []error {
	is := []error{ErrEnded, os.ErrClosed}
	if e.cause != nil {
		is = append(is, e.cause)
	}
	return is
}

// Hint says what may have happened.
func (e *endedError) Hint() string {
	return "the command may have run in part: look at what it did before it is run again"
}

// abandon ends a box whose init does not do what it is asked to. It returns why as an
// [endedError].
func (b *Box) abandon(why error) error {
	select {
	case <-b.gone:
		return b.ended(nil)
	default:
	}
	if !hungUp(why) {
		_ = b.init.Process.Kill() // it may be past reading that the conversation is over
	}
	_ = b.conn.Close()
	<-b.gone
	return b.ended(why)
}

// hungUp reports whether an error says no more than that nobody is at the other end.
func hungUp(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// ended tells of a box that is gone, and how its init ended: that comes before what was only
// noticed of it.
func (b *Box) ended(why error) error {
	if s := b.init.ProcessState; s != nil && !s.Success() {
		how := errors.New("its init: " + s.String())
		if why == nil || hungUp(why) {
			return &endedError{how}
		}
		return &endedError{fmt.Errorf("%w: %w", why, how)}
	}
	if hungUp(why) {
		why = nil
	}
	return &endedError{why}
}
