package ollama

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// beside are the parameters that stand beside the server's options.
var beside = []string{"keep_alive", "logprobs", "top_logprobs"}

// setUp makes the parts of requests that do not differ.
func (c *Client) setUp(o Options) error {
	name, err := rawjson.Encode(o.Model)
	if err != nil {
		return err
	}
	// Older servers know neither truncate nor shift, and go on cutting: see compare.
	c.head = fmt.Appendf(nil, `{"model":%s,"stream":%t,"truncate":false,"shift":false`, name, o.Stream)
	switch think, err := think(o.Model, o.Params.Reasoning); {
	case err != nil:
		return err
	case think != "":
		c.head = fmt.Appendf(c.head, `,"think":%s`, think)
	}
	top, options := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for name, value := range o.Params.Extra {
		options[name] = value
	}
	for _, name := range beside {
		if value, there := options[name]; there {
			top[name] = value
			delete(options, name)
		}
	}
	if value, there := options["num_ctx"]; there {
		if json.Unmarshal(value, &c.window.fixed) != nil || c.window.fixed <= 0 {
			return fmt.Errorf("parameter %q: want a number of tokens", "num_ctx")
		}
		delete(options, "num_ctx")
	}
	ours := []string{"num_predict"}
	if t := o.Params.Temperature; t != nil {
		value, err := rawjson.Encode(*t)
		if err != nil {
			return err
		}
		c.options = fmt.Appendf(c.options, `,"temperature":%s`, value)
		ours = append(ours, "temperature")
	}
	if s := o.Params.Seed; s != nil {
		c.options = fmt.Appendf(c.options, `,"seed":%d`, *s)
		ours = append(ours, "seed")
	}
	more, err := wire.Fields(options, ours...)
	if err != nil {
		return err
	}
	c.options = append(c.options, more...)
	more, err = wire.Fields(top)
	c.head = append(append(c.head, more...), `,"messages":[`...)
	return err
}

// think says a level of reasoning in the API's terms. Only the gpt-oss models have levels,
// and servers refuse a level for others; those think or do not.
func think(model, reasoning string) (string, error) {
	switch reasoning {
	case "":
		return "", nil
	case "off":
		return "false", nil
	case "low", "medium", "high":
		if strings.Contains(model, "gpt-oss") {
			return strconv.Quote(reasoning), nil
		}
		return "true", nil
	}
	return "", fmt.Errorf("reasoning %q: this API knows off, low, medium and high", reasoning)
}

// size is how many bytes of a request are the prompt.
func size(req model.Request) int64 {
	n := int64(len(req.Tools))
	for _, m := range req.Messages {
		n += int64(len(m.Raw))
	}
	return n
}

// tail is what a request's body has behind the messages.
func (c *Client) tail(req model.Request, prompt int64) []byte {
	tail := []byte("]")
	if len(req.Tools) > 0 && !req.NoCalls {
		tail = append(append(tail, `,"tools":`...), req.Tools...)
	}
	if len(req.Schema) > 0 {
		tail = append(append(tail, `,"format":`...), req.Schema...)
	}
	tail = fmt.Appendf(tail, `,"options":{"num_ctx":%d`, c.window.fit(prompt, int64(req.MaxTokens)))
	if req.MaxTokens > 0 {
		tail = fmt.Appendf(tail, `,"num_predict":%d`, req.MaxTokens)
	}
	return append(append(tail, c.options...), "}}"...)
}
