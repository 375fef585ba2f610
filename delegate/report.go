package delegate

import (
	"fmt"
	"strings"
	"time"

	"skein/agent/model"
	"skein/tools"
)

// What became of a child's changes.
const (
	NoChange = "none"     // there were none
	Merged   = "merged"   // they are in the parent's tree
	Conflict = "conflict" // they do not merge; kept
	Kept     = "kept"     // not merged for another reason; kept
	InPlace  = "in place" // the child worked in the parent's own tree
)

// A Report is what a child brings back. It has two renderings: [Report.Model] for the
// parent's model, which holds only what follows from replies and files, and
// [Report.People], which has the rest.
type Report struct {
	Index, Of int
	Label     string
	Child     string // ordinal
	Stop      string // how the child ended: completed, max-turns, …, or "refused"
	Cause     string // in words, for every stop but completed
	Turns     int
	Calls     int // tool calls it made

	Change         string   // NoChange, Merged, …; "" for readers
	Files          []string // that it changed
	Added, Removed int      // lines
	Conflicts      []string // path and kind, one line each
	Left           []string // changed files that were not taken, with the reason
	WhyKept        string
	Lost           string // why its changes could neither be merged nor kept, "" otherwise

	Commands []tools.Command
	Denied   int
	Answer   string

	Elapsed time.Duration
	Usage   model.Usage
}

// Failed reports whether the parent must be told that the task was not done.
func (r Report) Failed() bool {
	return r.Stop != "completed" || r.Change == Conflict || r.Change == Kept || r.Lost != ""
}

// Model is the text of the parent's tool result: the evidence envelope, written by the
// harness, then the child's answer.
func (r Report) Model() string {
	var b strings.Builder
	fmt.Fprintf(&b, "child %d of %d %q · %s", r.Index, r.Of, r.Label, r.Stop)
	if r.Cause != "" {
		fmt.Fprintf(&b, " (%s)", oneLine(r.Cause))
	}
	if r.Turns > 0 {
		fmt.Fprintf(&b, " · %s", count(r.Turns, "turn"))
	}
	if r.Stop == "completed" && r.Calls == 0 {
		b.WriteString(" · unverified: it made no tool call")
	}
	b.WriteByte('\n')
	r.change(&b)
	r.evidence(&b)
	b.WriteString(r.Answer)
	return strings.TrimRight(b.String(), "\n")
}

func (r Report) change(b *strings.Builder) {
	if r.Lost != "" {
		fmt.Fprintf(b, "its changes could not be brought back: %s\n", r.Lost)
	}
	switch r.Change {
	case "", InPlace:
	case NoChange:
		b.WriteString("no changes\n")
	default:
		fmt.Fprintf(b, "%s · %s · +%d −%d · %s\n", r.Change, count(len(r.Files), "file"), r.Added, r.Removed, list(r.Files))
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(b, "conflict: %s\n", c)
	}
	if r.Change == Conflict {
		b.WriteString("nothing of this change was merged; the tree is as it was before it.\n")
	}
	if r.Change == Kept {
		fmt.Fprintf(b, "not merged: %s\n", r.WhyKept)
	}
	if r.Change == Conflict || r.Change == Kept {
		fmt.Fprintf(b, "kept: as %s; do the work again from the present tree, or ask the user\n", r.Child)
	}
	for _, l := range r.Left {
		fmt.Fprintf(b, "left out: %s\n", l)
	}
}

func (r Report) evidence(b *strings.Builder) {
	var parts []string
	if len(r.Commands) > 0 {
		var lines []string
		for _, c := range r.Commands {
			end := fmt.Sprintf("exit %d", c.Exit)
			if c.Killed != "" {
				end = c.Killed
			}
			lines = append(lines, fmt.Sprintf("%s (%s)", oneLine(c.Line), end))
		}
		parts = append(parts, "commands: "+list(lines))
	}
	if r.Denied > 0 {
		parts = append(parts, fmt.Sprintf("denied: %d", r.Denied))
	}
	if len(parts) > 0 {
		b.WriteString(strings.Join(parts, " · ") + "\n")
	}
}

// People is the line a person is shown.
func (r Report) People() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %s", r.Child, r.Label, r.Stop)
	switch r.Change {
	case "", NoChange, InPlace:
	default:
		fmt.Fprintf(&b, ", %s %s +%d −%d", r.Change, count(len(r.Files), "file"), r.Added, r.Removed)
	}
	fmt.Fprintf(&b, ", %s, %.1f s, %s in (%s cached), %s out", count(r.Turns, "turn"), r.Elapsed.Seconds(),
		r.Usage.Prompt(), r.Usage.CacheRead, r.Usage.Output)
	return b.String()
}

// list joins names, the first ten of them.
func list(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
