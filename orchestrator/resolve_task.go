package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"skein/tools"
)

// What a resolver is shown, in bytes and in changes.
const (
	taskBytes   = 2000 // of a task, and of an answer
	diffBytes   = 6000 // of the diff of one change
	wrongBytes  = 5000 // of what was wrong with the try before
	mostChanges = 8    // that were merged before
)

// resolveTask is what a resolver has to do: what clashes, whose changes those are, the rules,
// and what was wrong with the try before, if there was one.
func (b *batch) resolveTask(ctx context.Context, k *clash, wrong string) string {
	var s strings.Builder
	checked := len(k.list) > 0 && k.list[0].Kind == kindVerify
	if checked {
		s.WriteString("Changes of subagents merge as text, but what that makes fails a check. Your workspace holds it. Make the check succeed.\n\n")
		fmt.Fprintf(&s, "The check: %s\n", k.list[0].Text)
	} else {
		s.WriteString("Changes of subagents do not merge. Your workspace holds them merged as far as that goes, with both sides between markers (<<<<<<<, =======, >>>>>>>) where a text conflicts. Solve the conflicts.\n\nConflicts:\n")
		for _, line := range k.lines() {
			s.WriteString("- " + tools.Show(line) + "\n")
		}
	}
	s.WriteString("\nRules:\n- Do what both tasks want, as far as that goes together. Take nothing out that either change is for.\n")
	fmt.Fprintf(&s, "- Change only these files: %s\n", listed(slices.Concat(k.touch, k.aside)))
	if !checked {
		s.WriteString("- Leave no markers. Where there are none (a file removed here and changed there, a binary file, a link) look what stands there, and make it right or leave it.\n")
	}
	for _, name := range k.aside {
		fmt.Fprintf(&s, "- %s holds one of two things that had the same name. Give it a right name among these files, or bring both together; the name itself has to go.\n", tools.Show(name))
	}
	if v := b.run.o.Verify; v != "" {
		fmt.Fprintf(&s, "- This has to succeed: %s\n", v)
	}
	if v := b.run.o.VerifyMerge; v != "" && !checked {
		fmt.Fprintf(&s, "- This has to succeed on the result: %s\n", v)
	}
	s.WriteString("- Answer with what you decided, and why.\n")
	if wrong != "" {
		fmt.Fprintf(&s, "\nAnother subagent tried this and was refused; its work is not here. What was wrong:\n%s", quoted(wrong, wrongBytes))
	}
	before := b.involved(k)
	if len(before) > mostChanges {
		fmt.Fprintf(&s, "\n%d changes that were merged before are not shown here.\n", len(before)-mostChanges)
		before = before[len(before)-mostChanges:]
	}
	for _, c := range before {
		b.show(ctx, &s, "Merged before: the change of "+c.name, c, k)
	}
	b.show(ctx, &s, "To be merged: the change of "+k.of.name, k.of, k)
	return s.String()
}

// listed names files, as many as a list can show; the diffs below name the others.
func listed(names []string) string {
	const most = 50
	shown := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			shown = append(shown, fmt.Sprintf("and %d more that the changes below touch", len(names)-most))
			break
		}
		shown = append(shown, tools.Show(name))
	}
	return strings.Join(shown, ", ")
}

// involved are the changes merged before that touch what clashes; all where none does, as when
// a folder was renamed.
func (b *batch) involved(k *clash) []*child {
	list := slices.DeleteFunc(slices.Clone(b.base.merged), func(c *child) bool { return len(k.touched(c)) == 0 })
	if len(list) == 0 {
		return b.base.merged
	}
	return list
}

// touched lists the files of a child's change that clash.
func (k *clash) touched(c *child) []string {
	return slices.DeleteFunc(names(c.change.Files), func(name string) bool { return !k.mayTouch(name) })
}

// show tells of a change: what was asked for, what was answered, and what was done to the files
// that clash. All of it is somebody else's words, so it is quoted.
func (b *batch) show(ctx context.Context, s *strings.Builder, title string, c *child, k *clash) {
	fmt.Fprintf(s, "\n%s\nIts task:\n%s", title, quoted(c.d.Task.Task, taskBytes))
	if answer := strings.TrimSpace(c.out.Text); answer != "" {
		fmt.Fprintf(s, "Its answer:\n%s", quoted(answer, taskBytes))
	}
	diff, err := b.run.repo.Diff(ctx, c.change.Base, c.change.Commit, k.touched(c)...)
	if err == nil && diff != "" {
		fmt.Fprintf(s, "Its diff:\n%s", quoted(diff, diffBytes))
	}
}

// quoted sets a text off, a mark before each line, and cuts what is longer than so many bytes.
func quoted(text string, most int) string {
	var s strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if room := most - s.Len(); len(line) > room {
			s.WriteString("| " + strings.ToValidUTF8(line[:max(room, 0)], "") + "[…]\n")
			break
		}
		s.WriteString("| " + line + "\n")
	}
	return s.String()
}
