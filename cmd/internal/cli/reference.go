package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/cmd/internal/config"
	"skein/cmd/internal/provider"
)

// Reference renders the tree of commands as the Markdown of docs/reference.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the tree of commands; `make docs` makes it anew.\n\n" + exitCodes + ".\n")
	referTo(&b, New())
	b.WriteString("\n## Environment\n\n| variable | meaning |\n|---|---|\n")
	for _, v := range variables() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v[0], v[1])
	}
	b.WriteString("\n## Configuration\n\nThe file `~/.config/skein/config.yaml`. What a flag or a variable says comes before it; " +
		"an unknown key or a bad value is an error with its line.\n\n```yaml\n" + config.Example + "```\n")
	return b.String()
}

func referTo(b *strings.Builder, c *cobra.Command) {
	c.InitDefaultHelpFlag()
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n", about)
	if !c.HasSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", c.UseLine())
	}
	for _, set := range groups(c) {
		if c.HasSubCommands() {
			break // --help alone
		}
		fmt.Fprintf(b, "\n%s:\n\n| flag | default | meaning |\n|---|---|---|\n", set.Name())
		set.VisitAll(func(f *pflag.Flag) {
			value, text := pflag.UnquoteUsage(f)
			name := strings.TrimSpace("--" + f.Name + " " + value)
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", cell(name), cell(standard(f)), cell(text))
		})
	}
	if c.HasExample() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	if own, ok := c.Annotations[ownExitCodes]; ok {
		fmt.Fprintf(b, "\n%s.\n", strings.ReplaceAll(own, "\n", " "))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			referTo(b, sub)
		}
	}
}

// standard is a flag's default as a reader wants to see it.
func standard(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	return "`" + f.DefValue + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// variables are the environment variables that skein itself reads, each with its meaning.
func variables() [][2]string {
	v := [][2]string{
		{provider.ModelVar, "the model, where `--model` does not name it"},
		{provider.BaseURLVar, "where the model answers, where `--base-url` does not say it; not for a model of `--model`"},
	}
	for _, k := range provider.Keys() {
		v = append(v, [2]string{k.Variable, "key for the provider `" + k.Provider + "`; may also stand in a `.env` that git does not track"})
	}
	v = append(
		v,
		[2]string{"OLLAMA_HOST", "where Ollama answers on this machine, if not at port 11434; another machine needs `--base-url`"},
		[2]string{"XDG_CONFIG_HOME", "folder of `skein/config.yaml`, else `~/.config`"},
	)
	return v
}
