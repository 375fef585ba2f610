package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// setHelp gives all commands below root one form of help: what it does, how it is called,
// its flags by purpose, examples, exit codes.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { writeHelp(c.OutOrStderr(), c); return nil })
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, helpOn
	}
}

// helpOn shows the help of the command or the topic that the words name.
func helpOn(c *cobra.Command, words []string) error {
	found, rest, err := c.Root().Find(words)
	if err != nil || len(rest) > 0 {
		return usage(c, "no command or topic "+strings.Join(words, " "), "skein --help lists all")
	}
	return found.Help()
}

func writeHelp(out io.Writer, c *cobra.Command) {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(&b, "%s\n\nUsage:", about)
	if c.HasSubCommands() {
		fmt.Fprintf(&b, " %s COMMAND [flags]\n\nCommands:\n", c.CommandPath())
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-9s %s\n", sub.Name(), sub.Short)
			}
		}
		title := "\nTopics, with skein help TOPIC:\n"
		for _, sub := range c.Commands() {
			if sub.IsAdditionalHelpTopicCommand() {
				fmt.Fprintf(&b, "%s  %-9s %s\n", title, sub.Name(), sub.Short)
				title = ""
			}
		}
	} else {
		fmt.Fprintf(&b, " %s\n", c.UseLine())
		for _, set := range groups(c) {
			if topic(set) == "" {
				fmt.Fprintf(&b, "\n%s:\n%s", set.Name(), set.FlagUsages())
			}
		}
		for _, name := range topicsOf(c) {
			fmt.Fprintf(&b, "\nMore flags, rarely needed: skein help %s\n", name)
		}
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	fmt.Fprintf(&b, "\n%s\n", exitCodesOf(c))
	_, _ = io.WriteString(out, b.String())
}

// ownExitCodes is the annotation of a command whose exit codes are not the usual ones.
const ownExitCodes = "exit codes"

func exitCodesOf(c *cobra.Command) string {
	if own, ok := c.Annotations[ownExitCodes]; ok {
		return own
	}
	return exitCodes
}
