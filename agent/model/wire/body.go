package wire

import "io"

// A Body is a request body as the pieces it is made of. It refers to the messages' bytes
// instead of joining them, so making one costs no copy of the conversation. Piece gives the
// same bytes whenever it is asked, from several goroutines too; Pieces is how many there are.
type Body struct {
	Pieces int
	Piece  func(i int) []byte
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
