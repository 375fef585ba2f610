package search

import (
	"fmt"
	"strings"
)

// The largest answer of each of these tools, notices included.
const (
	maxHits   = 100
	maxResult = 10_000 // bytes
)

// noticeRoom is kept free for what is said below the hits.
const noticeRoom = 300

// hits gathers lines until the answer is full.
type hits struct {
	narrow string // how to get fewer, for the notice
	out    strings.Builder
	count  int
	full   string // the limit that was met, "" while there is room
}

// add takes a hit with the lines that belong to it, each with its newline. It reports whether
// there was room.
func (h *hits) add(lines string) bool {
	switch {
	case h.full != "":
	case h.count == maxHits:
		h.full = fmt.Sprintf("%d hits", maxHits)
	case h.out.Len()+len(lines) > maxResult-noticeRoom:
		h.full = fmt.Sprintf("%d bytes", maxResult)
	default:
		h.count++
		h.out.WriteString(lines)
		return true
	}
	return false
}

// note adds a line below the hits if n is not zero.
func (h *hits) note(n int, what string) {
	if n > 0 {
		fmt.Fprintf(&h.out, "[%d %s]\n", n, what)
	}
}

// text ends the answer; none is what to say if there is no hit.
func (h *hits) text(none string) string {
	if h.count == 0 && h.full == "" {
		return none + "\n" + h.out.String()
	}
	if h.full != "" {
		fmt.Fprintf(&h.out, "[stopped at %s, there are more; narrow it with %s]\n", h.full, h.narrow)
	}
	return h.out.String()
}
