package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

type event struct {
	Type    string          `json:"type"`
	Message message         `json:"message"`       // of message_start
	Index   int             `json:"index"`         // of the block events
	Block   json.RawMessage `json:"content_block"` // of content_block_start
	Delta   json.RawMessage `json:"delta"`
	Usage   json.RawMessage `json:"usage"` // of message_delta
}

// pieces reads a stream into the message that it would have been. Its last event has to
// come: without it something is missing.
func (c *Client) pieces(r io.Reader, tell func(model.Delta)) (message, error) {
	var (
		out    message
		blocks []*streamed
		ended  bool
	)
	err := wire.Events(r, func(data []byte) (bool, error) {
		var e event
		err := json.Unmarshal(data, &e)
		if err == nil {
			switch e.Type {
			case "error":
				return false, c.reported(data)
			case "message_start":
				out.counts.add(e.Message.Usage)
			case "content_block_start":
				b := &streamed{index: e.Index}
				blocks = append(blocks, b)
				err = b.fields.Merge(e.Block)
			case "content_block_delta":
				i := slices.IndexFunc(blocks, func(b *streamed) bool { return b.index == e.Index })
				if i < 0 {
					err = fmt.Errorf("block %d did not begin", e.Index)
					break
				}
				err = blocks[i].add(e.Delta, tell)
			case "message_delta":
				out.counts.add(e.Usage)
				if rawjson.Given(e.Delta) {
					err = json.Unmarshal(e.Delta, &out)
				}
			case "message_stop":
				ended = true
				return true, nil
			}
		}
		if err != nil {
			return false, c.wire.NotOurs("the stream holds what is no event of a message", data, err)
		}
		return false, nil
	})
	switch {
	case err != nil:
		return message{}, err
	case !ended:
		return message{}, c.wire.Short(0, "the stream ended before the reply was whole")
	}
	slices.SortStableFunc(blocks, func(a, b *streamed) int { return a.index - b.index })
	out.args = map[int]string{}
	for i, b := range blocks {
		if args, object := b.end(); !object {
			out.args[i] = args
		}
	}
	out.Content = rawjson.List(blocks, func(b *streamed) json.RawMessage { return b.fields.Bytes() })
	return out, nil
}

// A streamed is a content block that is put together from its deltas.
type streamed struct {
	index  int
	fields rawjson.Object
	input  rawjson.Object // field "partial_json": the text of a call's arguments
}

// add adds a delta. Its fields continue the block's fields of the same names; only a call's
// arguments and citations come under other names than they have in the block.
func (b *streamed) add(delta json.RawMessage, tell func(model.Delta)) error {
	err := rawjson.Each(delta, func(key string, value json.RawMessage) error {
		switch key {
		case "type":
			return nil
		case "partial_json":
			return b.input.Add(key, value)
		case "citation":
			return b.fields.Add("citations", slices.Concat([]byte("["), value, []byte("]")))
		}
		return b.fields.Add(key, value)
	})
	if err != nil || tell == nil {
		return err
	}
	var d struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	}
	_ = json.Unmarshal(delta, &d) // deltas of other things tell nothing
	if d.Text != "" || d.Thinking != "" {
		tell(model.Delta{Text: d.Text, Reasoning: d.Thinking})
	}
	return nil
}

// end gives a call its arguments. Arguments that a limit cut off, or that the model wrote
// badly, are no object: the block keeps the empty one that it began with, since the API takes
// nothing else back, and their text is returned for the harness to judge. Where none came,
// only the reply's end tells whether there are none or they were cut off.
func (b *streamed) end() (args string, object bool) {
	args = b.input.Text("partial_json")
	if b.fields.Text("type") == "tool_use" && !b.fields.Has("input") {
		b.fields.Set("input", json.RawMessage("{}"))
	}
	if !rawjson.IsObject([]byte(args)) {
		return args, false
	}
	b.fields.Set("input", json.RawMessage(args))
	return args, true
}
