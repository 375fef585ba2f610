package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// exampleScript is a script whole, as the help topic shows it.
const exampleScript = `  - when: {agent: "0", turn: 1}
    call: {delegate_task: {title: greeting, access: write, task: write hello.txt}}
  - when: {agent: "0.*", turn: 1}
    call: {write_file: {path: hello.txt, content: "hello\n"}}
  - when: {agent: "0.*", result: "(?P<file>\\w+\\.txt)"}
    say: "I wrote ${file}"
  - say: done                              # whatever else is asked
`

// scriptTools names the tools that a script may call and the arguments that most calls need.
const scriptTools = `  read_file {path}  list_files {path}  glob {pattern}  grep {pattern, path}
  write_file {path, content}  search_replace {path, search, replace}  bash {command}
  delegate_task {title, task, access, paths, role, model, output_schema}
`

// newScripts is the help topic on models that need no provider: scripts and programs.
func newScripts() *cobra.Command {
	c := &cobra.Command{
		Use:   "scripts",
		Short: "Models for trying things out: replies from a file, or from a program of yours",
		Long: `A scripted model takes its replies from a file: no key, no network, the same each time. Such a turns.yaml
is run with skein run --model script/turns.yaml, or served to several programs with skein model serve.

` + exampleScript + `
The first rule that fits a request answers it. In when, agent is "0", its second subagent "0.2", the first
of that one "0.2.1", or a pattern of these, and turn is which reply of the agent it is, from 1. Task, user,
result and conversation are regular expressions, found in the agent's task, the last message of its user, the
results of its last calls, or all that was said; ${1} or ${name} in the answer is what a group captured.

The answer: say TEXT, call {TOOL: ARGUMENTS} or calls [...], reasoning, refusal. Latency 500ms comes before
it, slow 20ms before each write, in writes of split BYTES; keepalive while it waits; usage {input, output}.
Faults: status 429, retry_after "2", body TEXT, garbage true, cut BYTES, call_raw {name, arguments} of no JSON.

The tools, with the arguments that most calls need:

` + scriptTools + `
A program as a model gets the conversation on its standard input, each message below a line such as
"=== user", and answers on its standard output: text, and calls in the form that the first message describes.`,
		Example: `  skein run --model script/turns.yaml --access auto "write a greeting"
  skein model serve --script turns.yaml
  skein run --model "command/./my-model.sh --fast" --access read-only "what is this project?"`,
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		_, _ = fmt.Fprintf(c.OutOrStdout(), "%s\n\nExamples:\n%s\n", c.Long, c.Example)
	})
	return c
}
