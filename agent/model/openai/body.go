package openai

import (
	"fmt"

	"skein/agent/model"
)

// tail is what a request's body has behind the messages.
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
