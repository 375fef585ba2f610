package text

import (
	"strings"

	"skein/agent/model"
)

// A shower passes a reply on while it is written, and holds back a line that may become a
// call, and everything from one that begins a call. What it held for nothing comes at the end.
type shower struct {
	to    func(model.Delta)
	text  strings.Builder
	shown int    // bytes of text passed on
	line  int    // where the line begins that is being written
	block *fence // of another language, that the line is in
	held  bool   // the line begins a call
}

func (s *shower) add(d model.Delta) {
	s.text.WriteString(d.Text)
	to := max(s.shown, s.ready())
	d.Text, s.shown = s.text.String()[s.shown:to], to
	if d != (model.Delta{}) {
		s.to(d)
	}
}

// ready returns how much of the text holds no call for certain.
func (s *shower) ready() int {
	text := s.text.String()
	for !s.held {
		line, next := lineAt(text, s.line)
		whole := next > s.line+len(line) // its end was written
		switch {
		case s.block != nil:
			if whole && s.block.closes(line) {
				s.block = nil
			}
		case s.begins(line, whole):
			return s.line
		}
		if !whole {
			return len(text)
		}
		s.line = next
	}
	return s.line
}

// begins reports whether a line begins a call or, while it is being written, may come to.
func (s *shower) begins(line string, whole bool) bool {
	if f, ok := openFence(line); ok && whole {
		if f.mayCall() {
			s.held = true
		} else {
			s.block = &f
		}
		return s.held
	}
	line = strings.TrimLeft(line, " \t")
	for _, mark := range []string{callMark, "<tool_call>"} {
		if strings.HasPrefix(line, mark) {
			s.held = true
			return true
		}
	}
	if whole {
		return false
	}
	for _, mark := range []string{callMark, "<tool_call>", "```", "~~~"} {
		if strings.HasPrefix(mark, line) || len(mark) == 3 && strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// end passes on what was held back of text, which is the reply without its call.
func (s *shower) end(text string) {
	if len(text) > s.shown && text[:s.shown] == s.text.String()[:s.shown] {
		s.to(model.Delta{Text: text[s.shown:]})
	}
}
