package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// defaultLimit is how many bytes of a stream are kept when the command does not say.
const defaultLimit = 1 << 20

const (
	// drainFor bounds how long output is awaited once no process of the command is left. A
	// descriptor that was handed to another command keeps the pipe open.
	drainFor = time.Second
	// deliverFor bounds how long whoever is given the output of a command that was ended is
	// waited for: what ends a command must not wait for a pager.
	deliverFor = 200 * time.Millisecond
	// pipeHolds is what the kernel keeps of a pipe that nobody made larger, bytes.
	pipeHolds = 64 << 10
)

// A capture reads what one command writes.
type capture struct {
	merge  bool
	live   [2]io.Writer // where the streams are handed on to; nil for nowhere
	reads  []*os.File
	writes []*os.File // ends for the command; out and err are the same when merged

	over func()        // called once more than most has been written
	done chan struct{} // closed when all has been read and handed on

	delivering sync.Mutex // held while a live writer is written to, however long that takes

	mu                    sync.Mutex
	reading               int   // streams that are not at their end
	left                  bool  // finish has: nothing is handed on any more
	most                  int64 // bytes; 0 = no limit
	seen                  int64
	combined, stdout, err clip
}

// newCapture calls over as soon as more than most bytes are written.
func newCapture(c Command, most int64, over func()) (*capture, error) {
	limit := int(c.Limit)
	if limit <= 0 {
		limit = defaultLimit
	}
	k := &capture{
		merge: c.Merge, live: [2]io.Writer{c.Out, c.Err}, most: most, over: over, done: make(chan struct{}),
		combined: clip{limit: limit}, stdout: clip{limit: limit}, err: clip{limit: limit},
	}
	keep := []*clip{&k.stdout, &k.err}
	if c.Merge {
		keep = keep[:1]
	}
	for range keep {
		r, w, err := pipe()
		if err != nil {
			k.started()
			k.close()
			return nil, err
		}
		k.reads, k.writes = append(k.reads, r), append(k.writes, w)
	}
	k.reading = len(keep)
	for i, r := range k.reads {
		// finish waits, save for one that is kept in a Write of the caller's: that ends when
		// the caller lets it.
		go k.read(r, keep[i], k.live[i])
	}
	return k, nil
}

func (k *capture) out() *os.File    { return k.writes[0] }
func (k *capture) errOut() *os.File { return k.writes[len(k.writes)-1] }

func (k *capture) read(r *os.File, to *clip, live io.Writer) {
	defer k.ended()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		k.take(buf[:n], to, live)
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			k.rest(r, to, live)
		}
		return
	}
}

// rest reads what a pipe still holds once its time is over: a slow writer behind us may have
// taken all of it. More than it can hold was not written by the command.
func (k *capture) rest(r *os.File, to *clip, live io.Writer) {
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, pipeHolds)
	for got := 0; got < pipeHolds; {
		n := 0
		err := raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), buf[got:]) }) // it does not block
		if err != nil || n <= 0 {
			return
		}
		k.take(buf[got:got+n], to, live)
		got += n
	}
}

// take keeps a piece of output and hands it on.
func (k *capture) take(p []byte, to *clip, live io.Writer) {
	if len(p) == 0 || !k.keep(p, to) || live == nil {
		return
	}
	k.delivering.Lock()
	defer k.delivering.Unlock()
	if k.delivers() {
		_, _ = live.Write(p)
	}
}

// keep reports whether the piece is still wanted.
func (k *capture) keep(p []byte, to *clip) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left {
		return false
	}
	k.combined.write(p)
	if k.seen += int64(len(p)); k.most > 0 && k.seen > k.most {
		k.over()
	}
	if !k.merge {
		to.write(p)
	}
	return true
}

func (k *capture) delivers() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.left
}

// ended counts a stream that is at its end.
func (k *capture) ended() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reading--; k.reading == 0 {
		close(k.done)
	}
}

// started closes our copies of the command's ends.
func (k *capture) started() {
	for _, w := range k.writes {
		_ = w.Close()
	}
}

func (k *capture) close() {
	for _, r := range k.reads {
		_ = r.Close()
	}
}

// finish returns all output once the command has ended. What is still to be handed on when the
// command's life is over is given up soon after that.
func (k *capture) finish(life context.Context) Output {
	deadline := time.Now().Add(drainFor)
	for _, r := range k.reads {
		_ = r.SetReadDeadline(deadline)
	}
	k.await(life)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
	k.close()
	o := Output{Combined: k.combined.bytes(), Dropped: k.combined.dropped, Stderr: k.err.bytes()}
	if o.Stdout = k.stdout.bytes(); k.merge {
		o.Stdout = o.Combined
	}
	return o
}

func (k *capture) await(life context.Context) {
	if k.live[0] == nil && k.live[1] == nil {
		<-k.done // reading alone has its own bound
		return
	}
	select {
	case <-k.done:
		return
	case <-life.Done():
	}
	timer := time.NewTimer(deliverFor)
	defer timer.Stop()
	select {
	case <-k.done:
	case <-timer.C:
	}
}
