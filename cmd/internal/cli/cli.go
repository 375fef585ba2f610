// Package cli is the command line of skein: the tree of commands, what each flag means, and how
// faults become exit codes. It is the place that picks the adapters a run works with.
package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Main carries out the command line of this process and returns its exit code.
func Main() int {
	ctx, stop := interruptible(context.Background())
	defer stop()
	c, err := New().ExecuteContextC(ctx)
	return report(os.Stderr, c, err)
}

// New returns the tree of commands.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:   "skein",
		Short: "Carry out an instruction in the current folder with a model and its subagents",
		Long: `Skein carries out an instruction in the current folder: a model works on it with tools, and
hands parts of it to subagents that work at the same time without getting in each other's way.`,
		Example: `  skein demo
  skein run --model openai/gpt-4.1 "rename Store.Get to Store.Fetch, keep the tests green"
  skein run --access read-only "where is the retry back-off decided? list every place"`,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	run := newRun()
	root.AddCommand(run, newDemo(), newDiff(), newDoctor(), newModel(), newSandbox(), newScripts(), newSubagents(run), newVersion(), newWorktrees())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagFault)
	setHelp(root)
	return root
}

// noArguments takes none.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && c.HasSubCommands():
		return usage(c, "unknown command "+args[0], "see "+c.CommandPath()+" --help")
	case len(args) > 0:
		return usage(c, "unexpected argument "+args[0], "see "+c.CommandPath()+" --help")
	}
	return nil
}

// arguments takes between least and most arguments, which are named by what; the hints are
// for too few and for too many.
func arguments(least, most int, what, few, many string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) > most:
			return usage(c, "more than one argument, also: "+strings.Join(args[most:], " "), many)
		case len(args) < least:
			return usage(c, "no "+what, few)
		}
		return nil
	}
}
