package delegate

import (
	"fmt"
	"strings"
	"unicode"
)

// A Brief is what a child is told before its task. Everything in it follows from the
// parent's replies and from files, so that the same replies give the same bytes.
type Brief struct {
	Mode        Mode
	MayDelegate bool
	Place       Place
}

// Place is where a child works.
type Place struct {
	Live        bool     // in the parent's own tree, not in a copy
	Frozen      bool     // in a copy whose changes are thrown away
	Branch      string   // git branch of the parent, "" when there is none
	Snapshot    string   // commit that a copy starts from, "" when Live
	Uncommitted int      // files with uncommitted work that the copy holds
	Left        []string // files that are not there, each with the reason

	// Where a copy cannot be shown at the parent's path: its own path, and the parent's,
	// which file tools take to mean the copy.
	Path, Alias string
}

// Text is the child's first user message: preamble, base manifest, task.
func (b Brief) Text(d *Delegation) string {
	var s strings.Builder
	s.WriteString("You are a subagent.")
	switch b.Mode {
	case Full, NoTools:
		s.WriteString(" What stands above is your parent's conversation, given as background; its instructions are not addressed to you.")
	default:
		s.WriteString(" Nothing stands above but the system message: your parent's conversation is not shown to you.")
	}
	s.WriteString(" Do only the task below.")
	if b.MayDelegate {
		s.WriteString(" You may delegate parts of it.")
	} else {
		s.WriteString(" Do not delegate: delegate_task is refused.")
	}
	if d.Access == Writing {
		if b.Place.Live {
			s.WriteString(" You may change files; you work in your parent's own tree.")
		} else {
			s.WriteString(" You may change files; your changes are merged by the parent.")
		}
	} else {
		s.WriteString(" You may read only: edits are refused, and " + b.Place.writes() + ".")
	}
	switch {
	case d.Tools == nil:
	case len(d.Tools) == 0:
		s.WriteString(" Use no tools: all are refused.")
	default:
		fmt.Fprintf(&s, " Of the tools use only %s: others are refused.", strings.Join(d.Tools, ", "))
	}
	s.WriteString(" End with an answer that stands alone: your parent sees nothing else of what you did.\n\n")
	b.Place.write(&s)
	d.limits(&s)
	d.others(&s)
	if d.role != "" {
		fmt.Fprintf(&s, "\nYour role, as this project describes %s:\n%s\n", d.Role, d.role)
	}
	s.WriteString("\nTask:\n")
	s.WriteString(d.Task.Task)
	return s.String()
}

// limits tells what the task asks of the change and of the answer.
func (d *Delegation) limits(s *strings.Builder) {
	if len(d.Paths) > 0 {
		fmt.Fprintf(s, "- change only: %s. If you change anything else, nothing of your change is merged\n", strings.Join(shown(d.Paths), ", "))
	}
	if d.Schema != nil {
		fmt.Fprintf(s, "- your answer has to be one JSON value of this schema, with nothing around it: %s\n", d.Schema)
	}
}

func (p Place) write(s *strings.Builder) {
	if p.Branch != "" {
		fmt.Fprintf(s, "- branch: %s\n", p.Branch)
	}
	if p.Live {
		s.WriteString("- you work in the live tree, uncommitted work included\n")
		return
	}
	fmt.Fprintf(s, "- your copy starts from snapshot %.12s; your parent's uncommitted work is included (%s)\n", p.Snapshot, count(p.Uncommitted, "file"))
	if p.Alias != "" {
		fmt.Fprintf(s, "- your workspace is %s. File tools take paths below %s to mean your copy; in commands use your own path, never that one\n", p.Path, p.Alias)
	}
	if !p.Frozen {
		// Not only where copies are made of layers: what a child reads does not depend on that.
		s.WriteString("- rename folders with mv: git mv and rename(2) can fail for a folder of a copy\n")
	}
	s.WriteString("- not there: files that git ignores\n")
	const most = 20
	for i, l := range p.Left {
		if i == most {
			fmt.Fprintf(s, "- not there: %d more\n", len(p.Left)-most)
			break
		}
		fmt.Fprintf(s, "- not there: %s\n", oneLine(l))
	}
}

// others names the other delegations of the reply, the first of them: a thousand children that
// are told of a thousand cost a million lines.
func (d *Delegation) others(s *strings.Builder) {
	const most = 20
	shown := 0
	for _, other := range d.siblings {
		switch {
		case other == d:
		case shown == most:
			fmt.Fprintf(s, "- and %s more work at the same time\n", count(len(d.siblings)-1-most, "subagent"))
			return
		default:
			fmt.Fprintf(s, "- another subagent works on: %s\n", other.Label())
			shown++
		}
	}
}

// Label names the delegation in one line, for reports and faces: its title, or the start
// of its task.
func (d *Delegation) Label() string {
	if d.Title != "" {
		return oneLine(d.Title)
	}
	return oneLine(d.Task.Task)
}

// oneLine cuts text to one line of at most 80 characters.
func oneLine(s string) string { return inLine(s, 80) }

// inLine cuts text to one line of so many characters.
func inLine(s string, most int) string {
	s = plain(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// plain takes the characters out that could move a cursor, or pass for the end of a line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// writes is what becomes of what a reader's commands write.
func (p Place) writes() string {
	if !p.Frozen {
		return "commands cannot write the workspace"
	}
	return "what commands write in your copy is thrown away with it"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
