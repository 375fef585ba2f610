package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"skein/agent/model"
	"skein/delegate"
)

// bar is the width of the time line in characters.
const bar = 44

// timeline shows who worked when, one line for each agent.
func timeline(out io.Writer, h *history) error {
	column := max(h.ended.Sub(h.began)/bar, 1)
	var b strings.Builder
	fmt.Fprintf(&b, "Who did what when (= works, . waits, M merged; a column is %.2f s)\n", column.Seconds())
	for _, w := range h.agents {
		fmt.Fprintf(&b, "  %-4s %-6s |%s| %s\n", w.ordinal, w.role(), row(h, w, column), w.title)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (w *worker) role() string {
	switch {
	case w.title == "":
		return "parent"
	case w.writes:
		return "writer"
	default:
		return "reader"
	}
}

// row draws one agent: what it did in the middle of each column.
func row(h *history, w *worker, column time.Duration) string {
	cells := make([]byte, bar)
	for i := range cells {
		at := h.began.Add(time.Duration(i)*column + column/2)
		switch {
		case w.title == "" && (at.Before(w.started) || at.After(w.ended)):
			cells[i] = ' '
		case w.title == "" && h.waits(at):
			cells[i] = '.'
		case w.title == "":
			cells[i] = '='
		case at.Before(w.queued) || at.After(w.settled):
			cells[i] = ' '
		case at.Before(w.started) || at.After(w.ended):
			cells[i] = '.'
		default:
			cells[i] = '='
		}
	}
	if w.change == delegate.Merged {
		cells[min(int(w.settled.Sub(h.began)/column), bar-1)] = 'M'
	}
	return string(cells)
}

// waits reports whether the parent has handed out work that was not brought back yet.
func (h *history) waits(at time.Time) bool {
	for _, w := range h.agents {
		if w.title != "" && !at.Before(w.queued) && !at.After(w.settled) {
			return true
		}
	}
	return false
}

// costs shows each agent's tokens, and how much of them the provider's cache had.
func costs(out io.Writer, h *history) error {
	var b strings.Builder
	b.WriteString("Tokens\n  agent  turns       in   cached        out\n")
	for _, w := range h.agents {
		share := ""
		if in := w.usage.Prompt(); in.Known && w.usage.CacheRead.Known && in.N > 0 {
			share = fmt.Sprintf("%d %%", w.usage.CacheRead.N*100/in.N)
		}
		fmt.Fprintf(&b, "  %-5s %6d %8s %8s %5s %5s\n", w.ordinal, w.turns, figure(w.usage.Prompt()), figure(w.usage.CacheRead), share, figure(w.usage.Output))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// figure is a count in a column: what could not be measured is no zero.
func figure(c model.Count) string {
	if !c.Known {
		return "n/a"
	}
	return c.String()
}
