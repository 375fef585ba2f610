package openai

import (
	"errors"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/wire"
)

var comma = []byte{','}

// body returns a request's body: the head, the messages with commas between them, the tail.
func (c *Client) body(req model.Request) (wire.Body, error) {
	if len(req.Messages) == 0 {
		return wire.Body{}, errors.New("the request has no messages")
	}
	for i, m := range req.Messages {
		if len(m.Raw) == 0 {
			return wire.Body{}, fmt.Errorf("message %d (%s) was not encoded", i, m.Role)
		}
	}
	last := 2 * len(req.Messages) // of the tail; messages stand at odd places
	tail := c.tail(req)
	return wire.Body{Pieces: last + 1, Piece: func(i int) []byte {
		switch {
		case i == 0:
			return c.head
		case i == last:
			return tail
		case i%2 == 1:
			return req.Messages[i/2].Raw
		}
		return comma
	}}, nil
}

func (c *Client) tail(req model.Request) []byte {
	tail := []byte("]")
	if len(req.Tools) > 0 && !req.NoCalls {
		tail = append(append(tail, `,"tools":`...), req.Tools...)
	}
	if req.MaxTokens > 0 {
		tail = fmt.Appendf(tail, `,%q:%d`, c.limit, req.MaxTokens)
	}
	if len(req.Schema) > 0 {
		tail = fmt.Appendf(tail, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":%s}}`, req.Schema)
	}
	return append(tail, '}')
}
