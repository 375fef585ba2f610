package delegate

import (
	"fmt"
	"slices"
	"strconv"
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
	Lost     = "lost"     // somebody removed the copy with them
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
	Cause     string // in words that follow from replies and files, "" when it completed
	Turns     int
	Calls     int // tool calls it made

	Change         string   // NoChange, Merged, …; "" for readers
	Files          []string // that it changed
	Added, Removed int      // lines
	Conflicts      []string // path and kind, one line each
	Resolved       string   // ordinal of the child that resolved them; "" if nobody did
	Tries          []string // to resolve them that failed, with why
	Hunks          string   // where it conflicts
	Left           []string // changed files that were not taken, with the reason
	Show           string   // the command that shows a change that was kept, "" where no ref keeps it
	Why            string   // it was not merged, in words like those of Cause
	Unasked        bool     // since nobody answered whether to merge it
	Shared         []Shared // files that other writers of the batch changed, too
	Idle           bool     // it was to change files in place and did nothing that could have

	Stale    []string // files that changed since it read them
	Commands []tools.Command
	Denied   []string       // each call that was denied, and why, in order
	Verify   *tools.Command // its check as that ended last, nil without one
	Answer   string

	// What only people are shown: it depends on this machine and this time.
	Detail  string // the errors behind Cause and Why
	Elapsed time.Duration
	Usage   model.Usage
	Counted model.Usage // the part of it that is known
	By      string      // the model that worked, "" for the run's own
}

// GoOn is what a model is told to do after a question that nobody answered.
const GoOn = ". Go on without it, and say so in your answer"

// whyRunes is how much a report says of why a child ended, or its change was not merged: it may
// name files, and say what to do.
const whyRunes = 400

// Failed reports whether the parent must be told that the task was not done.
func (r Report) Failed() bool {
	return r.Stop != "completed" || r.Change == Conflict || r.Change == Kept || r.Change == Lost
}

// Model is the text of the parent's tool result: the evidence envelope, written by the
// harness, then, behind a line of its own, the child's answer. Names that come from files
// or from the child cannot pass for a line of the envelope.
func (r Report) Model() string {
	var b strings.Builder
	fmt.Fprintf(&b, "child %d of %d %q · %s", r.Index, r.Of, r.Label, r.Stop)
	if r.Cause != "" {
		cause := inLine(r.Cause, whyRunes)
		if strings.ContainsRune(cause, '·') { // it may hold a tool's name of the child's making
			cause = strconv.QuoteToGraphic(cause)
		}
		fmt.Fprintf(&b, " (%s)", cause)
	}
	if r.Turns > 0 {
		fmt.Fprintf(&b, " · %s", count(r.Turns, "turn"))
	}
	if why := r.unverified(); why != "" {
		b.WriteString(" · unverified: " + why)
	}
	b.WriteByte('\n')
	r.change(&b)
	r.evidence(&b)
	if answer := strings.TrimSpace(r.Answer); answer != "" {
		b.WriteString("answer:\n" + answer)
	} else {
		b.WriteString("it gave no answer")
	}
	return b.String()
}

// unverified says why nothing shows that a child which says it is done did its task.
func (r Report) unverified() string {
	switch {
	case r.Stop != "completed":
	case r.Calls == 0:
		return "it made no tool call"
	case r.Change == NoChange && len(r.Left) == 0, r.Change == InPlace && r.Idle:
		return "it was to change files and changed none"
	}
	return ""
}

func (r Report) change(b *strings.Builder) {
	switch r.Change {
	case "", InPlace:
	case NoChange:
		b.WriteString("no changes\n")
	default:
		which := "files unknown" // they could not be read
		if len(r.Files) > 0 {
			which = fmt.Sprintf("%s · +%d −%d · %s", count(len(r.Files), "file"), r.Added, r.Removed, list(shown(r.Files)))
		}
		fmt.Fprintf(b, "%s · %s\n", r.Change, which)
	}
	for _, t := range r.Tries {
		fmt.Fprintf(b, "not resolved: %s\n", tools.Show(inLine(t, whyRunes)))
	}
	if r.Resolved != "" {
		fmt.Fprintf(b, "resolved by %s: %s\n", r.Resolved, list(shown(r.Conflicts)))
	}
	if r.Resolved == "" {
		each(b, "conflict", r.Conflicts)
	}
	if r.Why != "" {
		why := inLine(r.Why, whyRunes)
		if r.Unasked {
			why += GoOn
		}
		fmt.Fprintf(b, "not merged: %s\n", why)
	}
	switch {
	case r.Change == Lost:
		b.WriteString("nothing of this change is in the tree, and nothing is left of it. Do the work again from the tree as it is now\n")
	case r.Change != Conflict && r.Change != Kept:
	case r.Show == "":
		b.WriteString("nothing of this change is in the tree; its copy alone holds it, which the user is told of. Do the work again from the tree as it is now, or leave it to the user\n")
	default:
		fmt.Fprintf(b, "nothing of this change is in the tree; it is kept: %s. Do the work again from the tree as it is now, or leave it to the user\n", r.Show)
	}
	each(b, "left out", r.Left)
	for i, s := range r.Shared {
		if i == mostNamed {
			fmt.Fprintf(b, "overlap: %d files more\n", len(r.Shared)-mostNamed)
			break
		}
		fmt.Fprintf(b, "overlap: %s is changed by %s, too\n", tools.Show(s.File), s.who())
	}
	if r.Hunks != "" {
		b.WriteString("where it conflicts:\n")
		for line := range strings.Lines(cut(r.Hunks)) {
			b.WriteString("| " + plain(strings.TrimRight(line, "\r\n")) + "\n")
		}
	}
}

// each names things one a line, the first of them.
func each(b *strings.Builder, what string, names []string) {
	for i, name := range names {
		if i == mostNamed {
			fmt.Fprintf(b, "%s: %d more\n", what, len(names)-mostNamed)
			return
		}
		fmt.Fprintf(b, "%s: %s\n", what, tools.Show(name))
	}
}

func (r Report) evidence(b *strings.Builder) {
	var parts []string
	if len(r.Commands) > 0 {
		var lines []string
		for _, c := range r.Commands {
			lines = append(lines, ran(c))
		}
		parts = append(parts, "commands: "+list(lines))
	}
	if r.Verify != nil {
		parts = append(parts, "verify: "+ran(*r.Verify))
	}
	if n := len(r.Denied); n > 0 {
		parts = append(parts, fmt.Sprintf("denied: %d (%s)", n, denials(r.Denied)))
	}
	if len(parts) > 0 {
		b.WriteString(strings.Join(parts, " · ") + "\n")
	}
	if len(r.Stale) > 0 {
		fmt.Fprintf(b, "changed since it read them: %s\n", list(shown(r.Stale)))
	}
}

// ran is a command and how it ended.
func ran(c tools.Command) string {
	end := fmt.Sprintf("exit %d", c.Exit)
	if c.Killed != "" {
		end = c.Killed
	}
	return fmt.Sprintf("%s (%s)", item(oneLine(c.Line)), end)
}

// item makes words of a child's safe to stand among others in a line: what looks like the end of
// one thing there and the beginning of the next is quoted.
func item(text string) string {
	if strings.ContainsRune(text, '·') || strings.Contains(text, ", ") || strings.Contains(text, "(exit ") {
		return strconv.QuoteToGraphic(text)
	}
	return tools.Show(text)
}

// denials names the first few kinds of denials, each once.
func denials(all []string) string {
	const most = 3
	var kinds []string
	for _, d := range all {
		if d = tools.Show(oneLine(d)); !slices.Contains(kinds, d) {
			kinds = append(kinds, d)
		}
	}
	if len(kinds) > most {
		kinds = append(kinds[:most], "…")
	}
	return strings.Join(kinds, "; ")
}

// People is what a person is shown, in one line.
func (r Report) People() string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.Stop != "completed" {
		say("%s", r.Stop)
		if r.Cause != "" {
			parts[0] += " (" + inLine(r.Cause, whyRunes) + ")"
		}
	}
	switch r.Change {
	case "":
		if r.Stop == "completed" {
			say("reported")
		}
	case NoChange:
		say("no changes")
	case InPlace:
		say("worked in place")
	default:
		which := "files unknown"
		if len(r.Files) > 0 {
			which = fmt.Sprintf("%s, +%d -%d: %s", count(len(r.Files), "file"), r.Added, r.Removed, list(shown(r.Files)))
		}
		say("%s: %s", r.Change, which)
	}
	switch {
	case r.Resolved != "":
		say("resolved by %s: %s", r.Resolved, list(shown(r.Conflicts)))
	case len(r.Conflicts) > 0:
		say("conflicts: %s", list(shown(r.Conflicts)))
	}
	if r.Why != "" {
		say("not merged: %s", inLine(r.Why, whyRunes))
	}
	if len(r.Left) > 0 {
		say("left out: %s", list(shown(r.Left)))
	}
	if why := r.unverified(); why != "" {
		say("unverified: %s", why)
	}
	if len(r.Stale) > 0 {
		say("changed since it read them: %s", list(shown(r.Stale)))
	}
	if r.Detail != "" {
		say("%s", plain(strings.Join(strings.Fields(r.Detail), " ")))
	}
	return strings.Join(parts, "; ")
}

// shown makes names of files safe to stand in a line.
func shown(names []string) []string {
	safe := make([]string, len(names))
	for i, n := range names {
		safe[i] = item(n)
	}
	return safe
}

// hunkBytes is how much of that a report carries.
const hunkBytes = 4000

// cut shortens a diff at a line's end.
func cut(diff string) string {
	if len(diff) <= hunkBytes {
		return strings.TrimSuffix(diff, "\n") + "\n"
	}
	head := diff[:strings.LastIndexByte(diff[:hunkBytes], '\n')+1]
	return head + fmt.Sprintf("… %d bytes more\n", len(diff)-len(head))
}

// mostNamed is how many of a kind of thing a report names.
const mostNamed = 10

// list joins names, the first of them.
func list(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
