package cli

import (
	"os"

	"github.com/spf13/cobra"

	"skein/cmd/internal/demo"
	"skein/delegate"
)

// demoOptions is what demo is told by its flags.
type demoOptions struct {
	keep, single, verbose bool
	delegate, sandbox     string
}

func newDemo() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a small real project with a scripted model: no key, no network",
		Long: `Show the main job on a small real project in a temporary folder, with a scripted model: three
readers search it at once, three writers change it at once, their changes are merged in the
order asked, and the tests pass. Needs go, and git for isolated writers; no key, no network.`,
		Example: `  skein demo
  skein demo --keep --delegate full
  skein demo --single`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runDemo(c, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.keep, "keep", false, "leave the project on disk and say where")
	choiceVar(f, &o.delegate, "delegate", string(delegate.TaskOnly), "what a subagent is told of the conversation", modeWords()...)
	f.BoolVar(&o.single, "single", false, "one agent does everything; the same as --delegate off")
	choiceVar(f, &o.sandbox, "sandbox", "auto", "off runs commands without a box", "auto", "off")
	f.BoolVar(&o.verbose, "verbose", false, "show what models say and tools return")
	return c
}

func runDemo(c *cobra.Command, o demoOptions) error {
	mode, err := modeOf(c, o.delegate, o.single)
	if err != nil {
		return err
	}
	return demo.Run(c.Context(), demo.Options{
		Out: c.OutOrStdout(), Err: c.ErrOrStderr(),
		Colour: colourful(os.Stdout),
		Keep:   o.keep, Mode: mode, NoSandbox: o.sandbox == "off", Verbose: o.verbose,
	})
}
