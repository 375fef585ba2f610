package script

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/goccy/go-yaml"
)

// An answer is what a rule says to one request, before a protocol puts it into words.
type answer struct {
	agent string // who asked, and for which of its replies: ids follow from them
	turn  int
	model string

	say       *string
	refusal   string
	reasoning string
	calls     []call
	finish    string // in the words of chat completions

	figures figures
	counts  bool // the figures were asked for in a stream, where that has to be asked
}

type call struct{ name, args string }

// figures are token counts. Hit and cached are parts of the input: what the cache had, and
// what it has now.
type figures struct{ input, hit, cached, output, reasoning int64 }

// id names the reply; equal requests get equal ids.
func (a answer) id(kind string) string { return fmt.Sprintf("%s_%s_%d", kind, a.agent, a.turn) }

// callID names the i-th call.
func (a answer) callID(kind string, i int) string { return fmt.Sprintf("%s_%d", a.id(kind), i+1) }

// answer gives what the rule answers, without figures.
func (r *rule) answer(req *request, got captures) (answer, error) {
	a := answer{
		agent: req.agent, turn: req.turn, model: req.model, counts: req.counts,
		refusal: got.expand(r.Refusal), reasoning: got.expand(r.Reasoning), finish: r.Finish,
	}
	if r.Say != nil {
		say := got.expand(*r.Say)
		a.say = &say
	}
	var err error
	a.calls, err = r.toolCalls(got)
	switch {
	case a.finish != "":
	case len(a.calls) > 0:
		a.finish = "tool_calls"
	default:
		a.finish = "stop"
	}
	return a, err
}

func (r *rule) toolCalls(got captures) ([]call, error) {
	var out []call
	calls := r.Calls
	if r.Call != nil {
		calls = []yaml.MapSlice{r.Call}
	}
	for _, c := range calls {
		if len(c) != 1 {
			return nil, fmt.Errorf("a call names one tool, this one %d: list several under calls", len(c))
		}
		args, err := arguments(c[0].Value, got)
		if err != nil {
			return nil, fmt.Errorf("call %v: %w", c[0].Key, err)
		}
		out = append(out, call{fmt.Sprint(c[0].Key), args})
	}
	if r.CallRaw != nil {
		out = append(out, call{r.CallRaw.Name, got.expand(r.CallRaw.Arguments)})
	}
	return out, nil
}

// arguments gives a call's arguments as JSON, in the order in which the script has them.
func arguments(v any, got captures) (string, error) {
	switch v.(type) {
	case nil:
		return "{}", nil
	case yaml.MapSlice:
	default:
		return "", errors.New("arguments are a map; text that is no JSON goes into call_raw")
	}
	var buf bytes.Buffer
	if err := write(&buf, v, got); err != nil {
		return "", err
	}
	return buf.String(), nil
}

func write(buf *bytes.Buffer, v any, got captures) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		return writeList(buf, "{}", len(v), func(i int) error {
			key, err := encode(fmt.Sprint(v[i].Key))
			if err != nil {
				return err
			}
			buf.Write(append(key, ':'))
			return write(buf, v[i].Value, got)
		})
	case []any:
		return writeList(buf, "[]", len(v), func(i int) error { return write(buf, v[i], got) })
	case string:
		return writeValue(buf, got.expand(v))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%v is no number in JSON", v)
		}
	}
	return writeValue(buf, v)
}

func writeList(buf *bytes.Buffer, brackets string, n int, item func(i int) error) error {
	buf.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := item(i); err != nil {
			return err
		}
	}
	buf.WriteByte(brackets[1])
	return nil
}

func writeValue(buf *bytes.Buffer, v any) error {
	b, err := encode(v)
	buf.Write(b)
	return err
}
