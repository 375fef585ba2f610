package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skein/cmd/internal/face"
	"skein/worktree"
)

func newKeptMerge() *cobra.Command {
	var run string
	c := &cobra.Command{
		Use:   "merge [flags] N",
		Short: "Bring a kept change into the files as they are now, all of it or nothing",
		Long: `Bring a kept change into the files as they are now, by a three-way merge: all of it, or nothing where it
does not fit. What is staged stays so. Once merged it is kept no more.`,
		Example: `  skein worktrees merge 0.2
  skein worktrees merge 0.2 --run 20261130-101530-a1b2c3`,
		Args: arguments(1, 1, "change named", "name one: skein worktrees merge 0.2", "one at a time"),

		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return runKeptMerge(c, args[0], run) },
	}
	runVar(c.Flags(), &run)
	return c
}

func runKeptMerge(c *cobra.Command, name, run string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("worktrees merge: %w", err)
		}
	}()
	repo, err := repository(c)
	if err != nil {
		return err
	}
	defer func() {
		_, closed := repo.Close(context.WithoutCancel(c.Context()))
		err = errors.Join(err, closed)
	}()
	k, err := find(c.Context(), repo, name, run)
	if err != nil {
		return err
	}
	if err := unreadable(k); err != nil {
		return err
	}
	applied, err := repo.MergeKept(c.Context(), k)
	if conflict := (*worktree.ConflictError)(nil); errors.As(err, &conflict) {
		for _, at := range conflict.Conflicts {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "conflict: %s (%s)\n%s", face.Line(at.Path, 500), at.Kind, quoted(at.Text))
		}
		return &hinted{err, "nothing was changed; bring in what fits with skein worktrees show " + k.Name + " | git apply --reject, the rest by hand, then drop it"}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "merged %s of run %s: %s\n", k.Name, runOf(k), listed(applied.Files))
	return err
}

// quoted is a text behind a bar, its middle left out where it is long.
func quoted(text string) string {
	const most = 60
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		return ""
	}
	if over := len(lines) - most; over > 0 {
		lines = slices.Concat(lines[:most/2], []string{fmt.Sprintf("… %d lines …", over)}, lines[len(lines)-most/2:])
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("  | " + face.Visible(line) + "\n")
	}
	return b.String()
}

// listed is what changed, in a line.
func listed(files []worktree.FileStat) string {
	const most = 8
	var names []string
	for i, f := range files {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(files)-most))
			break
		}
		names = append(names, face.Line(f.Path, 200))
	}
	if len(names) == 0 {
		return "all of it was there already"
	}
	return extent(files) + ": " + strings.Join(names, ", ")
}

func newKeptDrop() *cobra.Command {
	var run string
	var yes bool
	c := &cobra.Command{
		Use:   "drop [flags] N",
		Short: "Forget a kept change for good, after asking",
		Example: `  skein worktrees drop 0.2
  skein worktrees drop --yes 0.2`,
		Args: arguments(1, 1, "change named", "name one: skein worktrees drop 0.2", "one at a time"),

		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return runKeptDrop(c, args[0], run, yes) },
	}
	runVar(c.Flags(), &run)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func runKeptDrop(c *cobra.Command, name, run string, yes bool) error {
	repo, err := repository(c)
	if err != nil {
		return fmt.Errorf("worktrees drop: %w", err)
	}
	k, err := find(c.Context(), repo, name, run)
	if err != nil {
		return fmt.Errorf("worktrees drop: %w", err)
	}
	what := fmt.Sprintf("%s of run %s, %s, %q", k.Name, runOf(k), extent(k.Files), face.Line(taskOf(k), 100))
	if k.Err != nil {
		what = fmt.Sprintf("%s of run %s, which cannot be read", k.Name, runOf(k))
	}
	if !yes {
		if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
			return &unaskedError{"worktrees drop: nobody can be asked whether " + k.Name + " is to be dropped"}
		}
		switch yes, err := confirm(c.Context(), keyboard{os.Stdin}, os.Stderr, "drop "+what+" for good? [y/N] "); {
		case err != nil:
			return fmt.Errorf("worktrees drop: %w", err)
		case !yes:
			_, err = fmt.Fprintln(c.ErrOrStderr(), "nothing was dropped")
			return err
		}
	}
	if err := repo.Drop(c.Context(), k); err != nil {
		return fmt.Errorf("worktrees drop: %w", err)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), "dropped "+what)
	return err
}

// confirm asks a person for a yes. What was typed before the question answers nothing.
func confirm(ctx context.Context, in keyboard, out io.Writer, question string) (bool, error) {
	if err := in.Flush(); err != nil {
		return false, fmt.Errorf("ask: %w", err)
	}
	if _, err := io.WriteString(out, question); err != nil {
		return false, fmt.Errorf("ask: %w", err)
	}
	answer := make(chan string, 1)
	// Nobody waits for this goroutine once ctx has ended: the read of a terminal ends only
	// with a line or with the process, which ends now.
	go func() {
		line := make([]byte, 100)
		n, _ := in.Read(line) // a terminal gives a line at a time
		answer <- string(line[:n])
	}()
	select {
	case word := <-answer:
		if !strings.HasSuffix(word, "\n") { // the end of the input leaves the cursor where it is
			_, _ = io.WriteString(out, "\n")
		}
		word = strings.ToLower(strings.TrimSpace(word))
		return word == "y" || word == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// An unaskedError is something that wants a yes which nobody could give.
type unaskedError struct{ text string }

func (e *unaskedError) Error() string { return e.text }

// Hint says how to do without.
func (e *unaskedError) Hint() string { return "run it in a terminal, or with --yes" }

func newGC() *cobra.Command {
	older := worktree.KeptFor
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove what was kept for long, and say what that was",
		Long: `Remove kept changes, files that were left out of changes, and records of what runs changed that are older
than --older, and pack what remains. What is removed is printed.`,
		Example: `  skein worktrees gc
  skein worktrees gc --older 168h`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runGC(c, older) },
	}
	c.Flags().DurationVar(&older, "older", older, "age from which things go")
	return c
}

func runGC(c *cobra.Command, older time.Duration) error {
	if older < 0 {
		return usage(c, fmt.Sprintf("--older %v is less than 0s", older), "as in --older 168h")
	}
	repo, err := repository(c)
	if err != nil {
		return fmt.Errorf("worktrees gc: %w", err)
	}
	done, err := repo.GC(c.Context(), older)
	var b strings.Builder
	for _, k := range done.Dropped {
		fmt.Fprintf(&b, "dropped %s of run %s, %s, %q; its commit was %s\n", k.Name, runOf(k), extent(k.Files), face.Line(taskOf(k), 100), k.Commit)
	}
	for _, folder := range done.Left {
		fmt.Fprintf(&b, "removed %s, files that were left out of a change\n", face.Line(folder, 1000))
	}
	if done.Records > 0 {
		fmt.Fprintf(&b, "forgot %d records of what runs changed\n", done.Records)
	}
	if done.Packs > 0 {
		fmt.Fprintf(&b, "put %d packs together\n", done.Packs)
	}
	if b.Len() == 0 && err == nil {
		b.WriteString("nothing is that old\n")
	}
	if _, failed := io.WriteString(c.OutOrStdout(), b.String()); err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("worktrees gc: %w", err)
	}
	return nil
}
