package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/cmd/internal/config"
	"skein/cmd/internal/face"
	"skein/cmd/internal/provider"
)

func newList() *cobra.Command {
	var o modelOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "List the providers there are keys for, the models known and running here, and the one in use",
		Example: `  skein model list
  skein model list --model ollama/qwen3:8b`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runList(c, o) },
	}
	group(c, "Model", func(f *pflag.FlagSet) { o.choice(f) })
	return c
}

func runList(c *cobra.Command, o modelOptions) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("model list: find the current folder: %w", err)
	}
	found, ring, err := o.find(c, dir, &notes{out: c.ErrOrStderr()})
	if found == nil {
		return err
	}
	var b strings.Builder
	if fault := (*usageError)(nil); errors.As(err, &fault) {
		fmt.Fprintf(&b, "in use: none: %s; %s\n", fault.text, fault.hint)
	} else {
		fmt.Fprintf(&b, "in use: %s, chosen by %s\n", found.choice.Model, found.choice.Why)
	}
	b.WriteString("\nproviders:\n")
	for _, s := range provider.States(c.Context(), ring, os.Getenv) {
		fmt.Fprintf(&b, "  %-11s %s\n", s.Provider, s.Text)
	}
	b.WriteString("\nmodels known:\n")
	for _, name := range found.config.Names() {
		fmt.Fprintf(&b, "  %s: %s\n", name, rowText(found.config.Row(name)))
	}
	_, err = fmt.Fprint(c.OutOrStdout(), face.Visible(string(found.mask.Written([]byte(b.String())))))
	return err
}

func rowText(r config.Row) string {
	text := fmt.Sprintf("window %d, output %d", r.Window, r.Output)
	if p := r.Price; p != nil {
		text += fmt.Sprintf(", $%g in, $%g cache read, $%g cache write, $%g out for a million tokens", p.Input, p.CacheRead, p.CacheWrite, p.Output)
	} else {
		text += ", prices not known"
	}
	if r.Date != "" {
		text += ", as of " + r.Date
	}
	return text
}
