package wire

import (
	"errors"
	"fmt"
	"io"

	"skein/agent/model"
)

// A Body is a request body as the pieces it is made of. It refers to the messages' bytes
// instead of joining them, so making one costs no copy of the conversation. Piece gives the
// same bytes whenever it is asked, from several goroutines too; Pieces is how many there are.
type Body struct {
	Pieces int
	Piece  func(i int) []byte
}

var comma = []byte{','}

// Join returns the body that is the head, the messages with commas between them, the tail.
func Join(head []byte, messages []model.Message, tail []byte) (Body, error) {
	if len(messages) == 0 {
		return Body{}, errors.New("the request has no messages")
	}
	for i, m := range messages {
		if len(m.Raw) == 0 {
			return Body{}, fmt.Errorf("message %d (%s) was not encoded", i, m.Role)
		}
	}
	last := 2 * len(messages) // of the tail; messages stand at odd places
	return Body{Pieces: last + 1, Piece: func(i int) []byte {
		switch {
		case i == 0:
			return head
		case i == last:
			return tail
		case i%2 == 1:
			return messages[i/2].Raw
		}
		return comma
	}}, nil
}

// Size is the length in bytes.
func (b Body) Size() int64 {
	var n int64
	for i := range b.Pieces {
		n += int64(len(b.Piece(i)))
	}
	return n
}

// Reader returns a new reader of the whole body; the transport asks for another when it has
// to send again.
func (b Body) Reader() io.Reader { return &bodyReader{body: b} }

type bodyReader struct {
	body Body
	next int    // the piece to read after rest
	rest []byte // what is left of the current piece
}

// Read implements [io.Reader].
func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			if r.next == r.body.Pieces {
				break
			}
			r.rest = r.body.Piece(r.next)
			r.next++
			continue
		}
		k := copy(p[n:], r.rest)
		r.rest = r.rest[k:]
		n += k
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
