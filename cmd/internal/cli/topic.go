package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topicOf is the annotation that says which help topic lists a flag in place of its command's help.
const topicOf = "skein-topic"

// rare defines flags that belong together under a title, as group does. The command's own help,
// which fits a screen, names the topic that lists them.
func rare(c *cobra.Command, topic, title string, define func(*pflag.FlagSet)) {
	group(c, title, func(f *pflag.FlagSet) {
		define(f)
		f.VisitAll(func(flag *pflag.Flag) { _ = f.SetAnnotation(flag.Name, topicOf, []string{topic}) }) // it exists
	})
}

// topicsOf returns the topics that list flags of the command, in order.
func topicsOf(c *cobra.Command) []string {
	var names []string
	for _, set := range groups(c) {
		if t := topic(set); t != "" && (len(names) == 0 || names[len(names)-1] != t) {
			names = append(names, t)
		}
	}
	return names
}

// topic is the one that lists a group of flags, "" for the command's own help.
func topic(set *pflag.FlagSet) (name string) {
	set.VisitAll(func(f *pflag.Flag) {
		if t := f.Annotations[topicOf]; len(t) == 1 {
			name = t[0]
		}
	})
	return name
}

// newSubagents is the help topic on subagents and on the flags of run that are about them.
func newSubagents(run *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   "subagents",
		Short: "What subagents are, and the flags of run about them that few need",
		Long: `A model hands parts of its work to subagents, several in one reply if they are independent. Readers search
the folder at the same time; each writer works in a copy of its own, and the changes are merged in the order
asked. What does not merge another subagent resolves, who has to leave no markers and to touch nothing else;
after two tries it is kept: skein worktrees list. Ctrl-C ends all subagents and keeps what they did; the
agent goes on with their reports. Twice ends the run, three times within 2 s leaves at once.

At 80 % of a limit (5 replies or more, time, tokens, dollars) a model is told so, once. Whoever
comes to one has a last reply, without tools, to report what was done and what is missing.

A role is a file of the project, .agents/agents/NAME.md: what a kind of subagent is for, and what it may not
do. Other models that subagents may be given are child_models of ~/.config/skein/config.yaml.

  ---
  description: finds faults and changes nothing
  access: read                           # no writer has this role
  tools: [read_file, grep, glob]         # others are refused
  model: vllm/small-model                # if child_models has it
  ---
  Trust nothing that you did not see yourself.`,
		Example: `  skein run --jobs 3 "find every caller of Store.Get; one subagent for each package"
  skein run --max-depth 2 --child-timeout 5m "port the three drivers to the new interface"
  skein run --single "fix the failing test"`,
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { writeTopic(c.OutOrStdout(), c, run) })
	return c
}

// writeTopic writes a help topic on flags of a command.
func writeTopic(out io.Writer, c, command *cobra.Command) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.Long)
	for _, set := range groups(command) {
		if topic(set) == c.Name() {
			fmt.Fprintf(&b, "\n%s, of %s:\n%s", set.Name(), command.CommandPath(), set.FlagUsages())
		}
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\n\nThe other flags: %s --help\n", c.Example, command.CommandPath())
	_, _ = io.WriteString(out, b.String())
}
