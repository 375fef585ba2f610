package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/cmd/internal/face"
	"skein/cmd/internal/probe"
)

func newCheck() *cobra.Command {
	var o modelOptions
	c := &cobra.Command{
		Use:   "check",
		Short: "Try the configured model: a few real exchanges that cost some hundred tokens",
		Long: `Try the configured model with a few real exchanges, a tool call among them, and say what works: ok,
no, or unavailable where it cannot be told. It costs some hundred tokens. Exit code 0 if the model
answers and calls tools, 1 if not.`,
		Example: `  skein model check
  skein model check --model deepseek/deepseek-flash
  skein model check --model vllm/some --base-url http://127.0.0.1:8000/v1 --stream off`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runCheck(c, o) },
	}
	group(c, "Model", func(f *pflag.FlagSet) {
		o.choice(f)
		o.requests(f)
	})
	return c
}

// checkRetries is how long a check asks again, unless --retry-for says otherwise: somebody
// waits for it.
const checkRetries = 20 * time.Second

func runCheck(c *cobra.Command, o modelOptions) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("model check: find the current folder: %w", err)
	}
	o.patience = checkRetries
	said := &notes{out: c.ErrOrStderr()}
	m, err := o.connect(c, dir, said)
	if err != nil {
		return err
	}
	defer func() { _ = m.link.Close() }() // everything was read
	out := c.OutOrStdout()
	if _, err := fmt.Fprintf(out, "%s at %s, chosen by %s\n", m.hide(m.choice.Model), m.hide(m.link.Where), m.choice.Why); err != nil {
		return err
	}
	found := probe.Model(c.Context(), m.link, m.streams)
	for _, f := range found.Findings {
		if err := line(out, f.What, string(f.Verdict), m.hide(f.Detail)); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(said, "this cost %s tokens in, %s out\n", found.Usage.Prompt(), found.Usage.Output)
	if found.Err != nil {
		return fmt.Errorf("model check: %w", found.Err)
	}
	return nil
}

// hide is a text as it may be shown, on one line.
func (m *connected) hide(text string) string {
	return face.Line(string(m.mask.Written([]byte(text))), 300)
}

func line(out io.Writer, what, verdict, detail string) error {
	_, err := fmt.Fprintf(out, "%-15s %-12s %s\n", what, verdict, detail)
	return err
}
