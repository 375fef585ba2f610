package openai

import (
	"errors"
	"fmt"
	"io"

	"skein/agent/model"
)

// A body is a request body as the pieces it is made of. It refers to the messages' bytes
// instead of joining them, so making one costs no copy of the conversation.
type body struct {
	head     []byte // {"model":"…","messages":[
	messages []model.Message
	tools    []byte // the tool list with its field name, or empty
	tail     []byte // max_tokens and the closing brace
}

func newBody(head []byte, req model.Request) (*body, error) {
	if len(req.Messages) == 0 {
		return nil, errors.New("the request has no messages")
	}
	for i, m := range req.Messages {
		if len(m.Raw) == 0 {
			return nil, fmt.Errorf("message %d (%s) was not encoded", i, m.Role)
		}
	}
	b := &body{head: head, messages: req.Messages, tail: []byte("}")}
	if len(req.Tools) > 0 {
		b.tools = append([]byte(`,"tools":`), req.Tools...)
	}
	if req.MaxTokens > 0 {
		b.tail = fmt.Appendf(nil, `,"max_tokens":%d}`, req.MaxTokens)
	}
	return b, nil
}

var comma, bracket = []byte{','}, []byte{']'}

// piece returns the i-th piece of the body: head, messages with commas between them, the
// closing bracket, tools, tail; false after the last.
func (b *body) piece(i int) ([]byte, bool) {
	last := 2 * len(b.messages) // of the closing bracket; messages stand at odd places
	switch {
	case i == 0:
		return b.head, true
	case i < last && i%2 == 1:
		return b.messages[i/2].Raw, true
	case i < last:
		return comma, true
	case i == last:
		return bracket, true
	case i == last+1:
		return b.tools, true
	case i == last+2:
		return b.tail, true
	}
	return nil, false
}

func (b *body) size() int64 {
	var n int64
	for i := 0; ; i++ {
		p, ok := b.piece(i)
		if !ok {
			return n
		}
		n += int64(len(p))
	}
}

// reader returns a new reader of the whole body; the transport asks for another when it
// has to send again.
func (b *body) reader() io.Reader { return &bodyReader{body: b} }

type bodyReader struct {
	body *body
	next int    // the piece to read after rest
	rest []byte // what is left of the current piece
}

// Read implements [io.Reader].
func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.rest) == 0 {
			piece, ok := r.body.piece(r.next)
			if !ok {
				break
			}
			r.rest = piece
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
