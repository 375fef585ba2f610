package boxinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	"golang.org/x/sys/unix"
)

// MaxFrame bounds one message, bytes. It is above what the kernel takes as arguments and
// environment of one program.
const MaxFrame = 8 << 20

// HeaderLen is the length of what precedes a message: its size, big-endian. Descriptors
// travel with the header.
const HeaderLen = 4

// Encode makes a message ready to send: header and body.
func Encode(v any) ([]byte, error) {
	frame, err := encode(make([]byte, HeaderLen), reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	if n := len(frame) - HeaderLen; n > MaxFrame {
		return nil, fmt.Errorf("message of %d bytes: longer than %d", n, MaxFrame)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-HeaderLen))
	return frame, nil
}

// Decode reads one message from r into what v points to.
func Decode(r io.Reader, v any) error {
	var header [HeaderLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	return decodeBody(r, header, v)
}

func decodeBody(r io.Reader, header [HeaderLen]byte, v any) error {
	n := binary.BigEndian.Uint32(header[:])
	if n > MaxFrame {
		return fmt.Errorf("message of %d bytes: longer than %d", n, MaxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return decode(string(body), reflect.ValueOf(v).Elem())
}

// socket is the init's end of the control socket.
type socket int

func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// receive reads one message and the descriptors that came with it, which do not
// survive an exec.
func (s socket) receive(v any) (fds []int, err error) {
	var header [HeaderLen]byte
	oob := make([]byte, unix.CmsgSpace(4*4))
	for got := 0; got < HeaderLen; {
		n, oobn, flags, _, err := unix.Recvmsg(int(s), header[got:], oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fds, err
		case n == 0:
			return fds, io.EOF
		case flags&unix.MSG_CTRUNC != 0:
			return fds, fmt.Errorf("receive: too many descriptors")
		}
		got += n
		more, err := rights(oob[:oobn])
		fds = append(fds, more...)
		if err != nil {
			return fds, err
		}
	}
	return fds, decodeBody(s, header, v)
}

func rights(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return fds, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

func (s socket) send(v any) error {
	frame, err := Encode(v)
	if err != nil {
		return err
	}
	for len(frame) > 0 {
		n, err := unix.SendmsgN(int(s), frame, nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		frame = frame[n:]
	}
	return nil
}
