package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"skein/agent/model/script"
	"skein/cmd/internal/provider"
)

func newModel() *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Work with models",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCheck(), newList(), newServe())
	return c
}

// serveOptions is what model serve is told by its flags.
type serveOptions struct {
	script string
	listen string
}

func newServe() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve --script FILE",
		Short: "Serve a scripted model over HTTP until interrupted; its base URL is printed",
		Example: `  skein model serve --script turns.yaml
  skein run --model script --base-url http://127.0.0.1:40123/v1 "fix the greeting"`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.script == "" {
				return usage(c, "no script", "name one: skein model serve --script turns.yaml")
			}
			return runServe(c.Context(), o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&o.script, "script", "", "`FILE` of rules that say what the model answers: skein help scripts")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback `ADDRESS` to serve on; port 0 takes a free one")
	return c
}

func runServe(ctx context.Context, o serveOptions, out io.Writer) error {
	s, err := script.Load(o.script)
	if err != nil {
		return &usageError{command: "model serve", text: err.Error(), hint: provider.ScriptHint}
	}
	server, err := script.Listen(ctx, s, o.listen)
	if open := (*script.AddressError)(nil); errors.As(err, &open) {
		return &usageError{command: "model serve", text: err.Error(), hint: open.Hint()}
	}
	if err != nil {
		return fmt.Errorf("model serve: %w", err)
	}
	if _, err := fmt.Fprintln(out, server.URL()); err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}
