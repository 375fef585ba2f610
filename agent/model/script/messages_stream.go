package script

import "encoding/json"

// stream tells a message block by block: each begins empty, grows, and ends.
func (p messages) stream(a answer) ([][]byte, error) {
	s := &blockStream{}
	start := p.reply(a)
	start.Usage.Output = 1 // the whole count comes at the end
	s.event("message_start", struct {
		Type    string       `json:"type"`
		Message messageReply `json:"message"`
	}{"message_start", start})
	for _, b := range p.content(a) {
		switch b := b.(type) {
		case thinkingBlock:
			s.block(thinkingBlock{Type: b.Type}, func() {
				for _, text := range bits(b.Thinking) {
					s.delta(map[string]string{"type": "thinking_delta", "thinking": text})
				}
				s.delta(map[string]string{"type": "signature_delta", "signature": b.Signature})
			})
		case textBlock:
			s.block(textBlock{Type: b.Type}, func() {
				for _, text := range bits(b.Text) {
					s.delta(map[string]string{"type": "text_delta", "text": text})
				}
			})
		case useBlock:
			args := string(b.Input)
			if args == "{}" { // no arguments are nothing to write
				args = ""
			}
			b.Input = json.RawMessage("{}")
			s.block(b, func() {
				for _, text := range append([]string{""}, bits(args)...) {
					s.delta(map[string]string{"type": "input_json_delta", "partial_json": text})
				}
			})
		}
	}
	type ending struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	}
	s.event("message_delta", struct {
		Type  string           `json:"type"`
		Delta ending           `json:"delta"`
		Usage map[string]int64 `json:"usage"`
	}{"message_delta", ending{StopReason: a.stopReason()}, map[string]int64{"output_tokens": a.figures.output}})
	s.event("message_stop", map[string]string{"type": "message_stop"})
	return s.chunks, s.err
}

// A blockStream numbers the blocks of a stream.
type blockStream struct {
	sequence
	index int
}

func (s *blockStream) event(name string, v any) { s.add("event: "+name+"\ndata: ", v, "\n\n") }

func (s *blockStream) block(empty any, grow func()) {
	s.event("content_block_start", struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}{"content_block_start", s.index, empty})
	grow()
	s.event("content_block_stop", struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}{"content_block_stop", s.index})
	s.index++
}

func (s *blockStream) delta(d map[string]string) {
	s.event("content_block_delta", struct {
		Type  string            `json:"type"`
		Index int               `json:"index"`
		Delta map[string]string `json:"delta"`
	}{"content_block_delta", s.index, d})
}
