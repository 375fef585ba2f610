package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/cmd/internal/face"
	"skein/sandbox"
	"skein/worktree"
)

func newWorktrees() *cobra.Command {
	c := &cobra.Command{
		Use:   "worktrees",
		Short: "See, merge or drop what writers changed and what was not merged",
		Long: `See, merge or drop what writers changed and what was not merged: for a conflict, because the run was
ended before, or because the answer was no. It is kept in a git directory of Skein's own, .git/skein, until it
is merged or dropped; what is older than 30 days goes by itself, once a day, or with gc.`,
		Example: `  skein worktrees
  skein worktrees show 0.2
  skein worktrees merge 0.2`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runKept(c, false) },
	}
	c.AddCommand(newKeptList(), newKeptShow(), newKeptMerge(), newKeptDrop(), newGC())
	return c
}

func newKeptList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List what is kept, of the newest run first: run, writer, files, age, why",
		Example: `  skein worktrees list
  skein worktrees list --json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runKept(c, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the same as JSON")
	return c
}

func newKeptShow() *cobra.Command {
	var run string
	c := &cobra.Command{
		Use:   "show [flags] N",
		Short: "Show a kept change: where it comes from, why it is kept, and its diff",
		Example: `  skein worktrees show 0.2
  skein worktrees show 0.2 | git apply --reject      # by hand: what does not fit is in *.rej`,
		Args: arguments(1, 1, "change named", "name one: skein worktrees show 0.2", "one at a time"),

		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return runKeptShow(c, args[0], run) },
	}
	runVar(c.Flags(), &run)
	return c
}

// runVar defines the flag that chooses a run.
func runVar(f *pflag.FlagSet, run *string) {
	f.StringVar(run, "run", "", "`RUN` that the change is of, instead of the newest that something is kept of")
}

// repository opens that of the current folder. What dead runs left is kept or removed first,
// and said on stderr.
func repository(c *cobra.Command) (*worktree.Repo, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the current folder: %w", err)
	}
	repo, err := worktree.Open(c.Context(), dir, worktree.Options{Closed: sandbox.Obeyed})
	if errors.Is(err, worktree.ErrUnavailable) {
		return nil, &hinted{err, "go to a folder of a git repository; skein doctor tells what there is"}
	}
	if err != nil {
		return nil, err
	}
	found, err := repo.Recover(c.Context())
	for _, w := range found {
		text, _ := w.Describe()
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "note: "+face.Line(text, 1000))
	}
	return repo, err
}

// A hinted error has a hint of the command's own.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// Hint says what to do next.
func (e *hinted) Hint() string { return e.hint }

// find finds the kept change of a writer: of a run, or of the newest.
func find(ctx context.Context, repo *worktree.Repo, name, run string) (worktree.KeptChange, error) {
	list, err := repo.Kept(ctx, run)
	if err != nil {
		return worktree.KeptChange{}, err
	}
	if len(list) == 0 && run == "" {
		return worktree.KeptChange{}, &hinted{errors.New("nothing is kept"), "all that writers changed is merged or was dropped; skein diff shows what a run changed"}
	}
	if len(list) == 0 {
		return worktree.KeptChange{}, &hinted{fmt.Errorf("nothing is kept of run %s", run), "skein worktrees list shows what is"}
	}
	for _, k := range list {
		newest := k.Session == list[0].Session && k.Run == list[0].Run
		if k.Name == name && newest {
			return k, nil
		}
	}
	text := fmt.Sprintf("no change %s is kept of run %s", name, runOf(list[0]))
	for _, k := range list {
		if k.Name == name {
			return k, &hinted{errors.New(text), fmt.Sprintf("of an earlier run there is one: %s --run %s", name, runOf(k))}
		}
	}
	return worktree.KeptChange{}, &hinted{errors.New(text), "skein worktrees list shows what is"}
}

// runOf is the run of a kept change as a person names it.
func runOf(k worktree.KeptChange) string { return runName(k.Session, k.Run) }

func runName(session, run string) string {
	if run == "1" { // so far every session has one
		return session
	}
	return session + "/" + run
}

func runKept(c *cobra.Command, asJSON bool) error {
	repo, err := repository(c)
	if err != nil {
		return fmt.Errorf("worktrees list: %w", err)
	}
	list, err := repo.Kept(c.Context(), "")
	if err != nil {
		return fmt.Errorf("worktrees list: %w", err)
	}
	elsewhere, err := notListed(repo)
	if err != nil {
		return fmt.Errorf("worktrees list: %w", err)
	}
	for _, text := range elsewhere {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "note: "+face.Line(text, 1000))
	}
	out := c.OutOrStdout()
	switch {
	case asJSON:
		err = writeJSON(out, rows(list))
	case len(list) == 0 && len(elsewhere) > 0:
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "nothing else is kept here")
	case len(list) == 0:
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "nothing is kept: all that writers changed is merged or was dropped")
	default:
		err = writeKept(out, list, time.Now())
		if old := list[len(list)-1]; runOf(old) != runOf(list[0]) {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "note: show, merge and drop mean the newest run; for another name it: skein worktrees show %s --run %s\n", old.Name, runOf(old))
		}
	}
	if err != nil {
		return fmt.Errorf("worktrees list: print it: %w", err)
	}
	return nil
}

// notListed tells of work that is not kept as a change of this repository, or not found as one.
func notListed(repo *worktree.Repo) (notes []string, err error) {
	strays, err := repo.Strays()
	for _, s := range strays {
		notes = append(notes, fmt.Sprintf("files of writer %s of run %s, of which nothing else is known any more, are in %s: take what you need, then remove %s",
			s.Name, runName(s.Session, s.Run), s.Files, s.Folder))
	}
	if err != nil {
		return nil, err
	}
	stores, err := repo.Moved()
	for _, s := range stores {
		notes = append(notes, fmt.Sprintf("changes are kept in %s of a repository that is not at %s any more: they are listed when it is there again",
			s.Store, strings.TrimSuffix(s.Was, "/.git")))
	}
	return notes, err
}

// A keptRow is a kept change as programs read it.
type keptRow struct {
	Run    string    `json:"run"`
	Child  string    `json:"child"`
	Task   string    `json:"task"`
	Why    string    `json:"why"`
	When   time.Time `json:"when"`
	Commit string    `json:"commit"`
	Base   string    `json:"base"`
	Files  []string  `json:"files"`
	Left   string    `json:"left,omitempty"` // folder with the files that were left out
}

func rows(list []worktree.KeptChange) []keptRow {
	all := []keptRow{}
	for _, k := range list {
		row := keptRow{runOf(k), k.Name, taskOf(k), whyOf(k), k.When.UTC(), k.Commit, k.Base, nil, k.Left}
		for _, f := range k.Files {
			row.Files = append(row.Files, f.Path)
		}
		all = append(all, row)
	}
	return all
}

// writeJSON writes a value for programs.
func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeKept writes the table of kept changes.
func writeKept(out io.Writer, list []worktree.KeptChange, now time.Time) error {
	const columns, gap = 0, 2
	t := tabwriter.NewWriter(out, columns, 1, gap, ' ', 0)
	_, _ = fmt.Fprintln(t, "run\tchild\tchange\tage\ttask, and why it is kept")
	for _, k := range list {
		size, old, why := extent(k.Files), age(now.Sub(k.When)), face.Line(taskOf(k)+": "+k.Why, 200)
		if k.Err != nil {
			size, old, why = "?", "?", face.Line(whyOf(k), 500)
		}
		if k.Left != "" {
			why += "; with files that were left out"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", runOf(k), k.Name, size, old, why)
	}
	return t.Flush()
}

// whyOf is why a change is not merged.
func whyOf(k worktree.KeptChange) string {
	if k.Err != nil {
		return k.Err.Error()
	}
	return k.Why
}

// unreadable is the error for a change that cannot be read, nil for others.
func unreadable(k worktree.KeptChange) error {
	if k.Err == nil {
		return nil
	}
	return &hinted{k.Err, "git --git-dir=.git/skein fsck tells what is broken; skein worktrees drop " + k.Name + " forgets it"}
}

// taskOf is the title of the task that made the change.
func taskOf(k worktree.KeptChange) string {
	return strings.TrimPrefix(k.Title, "skein: "+k.Name+" ")
}

// extent is how large a change is.
func extent(files []worktree.FileStat) string {
	added, removed := 0, 0
	for _, f := range files {
		added += max(f.Added, 0)
		removed += max(f.Removed, 0)
	}
	word := "files"
	if len(files) == 1 {
		word = "file"
	}
	return fmt.Sprintf("%d %s +%d −%d", len(files), word, added, removed)
}

// age is a time that has passed, as exactly as anybody wants to know it.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", max(d, 0)/time.Second)
}

func runKeptShow(c *cobra.Command, name, run string) error {
	repo, err := repository(c)
	if err != nil {
		return fmt.Errorf("worktrees show: %w", err)
	}
	k, err := find(c.Context(), repo, name, run)
	if err != nil {
		return fmt.Errorf("worktrees show: %w", err)
	}
	if err := unreadable(k); err != nil {
		return fmt.Errorf("worktrees show: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of run %s, kept %s\n", k.Name, runOf(k), k.When.Format("2006-01-02 15:04:05"))
	fmt.Fprintf(&b, "task: %s\nnot merged: %s\nchange: %s\n", face.Line(taskOf(k), 200), face.Line(k.Why, 1000), extent(k.Files))
	if k.Left != "" {
		fmt.Fprintf(&b, "left out of it, files in: %s\n", face.Line(k.Left, 1000))
	}
	if _, err = io.WriteString(c.OutOrStdout(), b.String()+"\n"); err == nil {
		err = writeDiff(c.Context(), c.OutOrStdout(), os.Stdout, repo, k.Base, k.Commit)
	}
	if err != nil {
		return fmt.Errorf("worktrees show: print it: %w", err)
	}
	return nil
}
