package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skein/cmd/internal/face"
	"skein/worktree"
)

func newDiff() *cobra.Command {
	var stat bool
	c := &cobra.Command{
		Use:   "diff [flags] [RUN]",
		Short: "Show what a run's writers changed in the files here, the newest run's or RUN's",
		Long: `Show what a run changed by merging its writers, of the newest run that did or of RUN: each file from how
it was before the run to how it was after, whatever was committed since.`,
		Example: `  skein diff
  skein diff --stat
  skein diff 20261130-101530-a1b2c3 | git apply --reverse`,
		Args: arguments(0, 1, "run", "", "see skein diff --help"),

		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return runDiff(c, strings.Join(args, ""), stat) },
	}
	c.Flags().BoolVar(&stat, "stat", false, "list the files only")
	return c
}

func runDiff(c *cobra.Command, run string, stat bool) error {
	repo, err := repository(c)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	change, err := repo.RunDiff(c.Context(), run)
	if none := (*worktree.NoRunError)(nil); errors.As(err, &none) {
		text := "no run has changed anything here by a writer"
		if run != "" {
			text = "run " + run + " has changed nothing here by a writer, or that is forgotten"
		}
		return &hinted{errors.New("diff: " + text), "git diff shows all that is not committed; skein worktrees list shows what was not merged"}
	}
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	_, _ = fmt.Fprintf(c.ErrOrStderr(), "run %s, %s ago: %s\n", runName(change.Session, change.Run), age(time.Since(change.When)), extent(change.Files))
	out := c.OutOrStdout()
	if stat {
		var b strings.Builder
		for _, f := range change.Files {
			name := f.Path
			if f.From != "" {
				name = f.From + " => " + f.Path
			}
			fmt.Fprintf(&b, "%s %s +%d −%d\n", f.Status, face.Line(name, 500), max(f.Added, 0), max(f.Removed, 0))
		}
		_, err = io.WriteString(out, b.String())
	} else {
		err = writeDiff(c.Context(), out, os.Stdout, repo, change.From, change.To)
	}
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	return nil
}

// writeDiff writes a diff: whole, byte for byte, where a program reads it, made safe to show
// and coloured on a terminal.
func writeDiff(ctx context.Context, out io.Writer, terminal *os.File, repo *worktree.Repo, from, to string) error {
	shown := term.IsTerminal(int(terminal.Fd()))
	var diff string
	var err error
	if shown {
		diff, err = repo.Diff(ctx, from, to)
		diff = face.Diff(diff, colourful(terminal))
	} else {
		diff, err = repo.Patch(ctx, from, to)
	}
	if err == nil {
		_, err = io.WriteString(out, diff)
	}
	return err
}
