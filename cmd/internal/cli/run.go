package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"skein/cmd/internal/face"
	"skein/delegate"
	"skein/orchestrator"
	"skein/sandbox"
	"skein/tools/gate"
	"skein/tools/mask"
	"skein/worktree"
)

// runOptions is what run is told by its flags.
type runOptions struct {
	model    modelOptions
	single   bool
	delegate string
	access   string
	sandbox  string
	allowNet bool
	readable []string
	conflict string
	verify   string
	checks   string // of merges
	copies   string
	readers  string
	tools    string
	json     bool
	verbose  bool

	jobs, maxDepth, maxChildren    int
	maxTurns, maxTokens, childTurn int
	budget                         int64
	budgetUSD                      float64
	childBudget                    int64
	childUSD, confirmUSD           float64
	processJobs                    int
	schema                         string
	timeout, childTimeout          time.Duration

	confirmEach bool
	askTimeout  time.Duration
}

const runExample = `  skein run --model openai/gpt-4.1 "rename Store.Get to Store.Fetch, keep the tests green"
  skein run --access read-only "where is the retry back-off decided? list every place"
  git diff main | skein run --access auto --timeout 10m -`

func newRun() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:     "run [flags] INSTRUCTION|-",
		Short:   "Carry out one instruction in the current folder; the answer is on stdout",
		Long:    `Carry out one instruction in the current folder (- reads it from stdin); the answer is on stdout.`,
		Example: runExample,
		Args:    arguments(1, 1, "instruction", `say what to do: skein run "fix the failing test"`, "put the instruction in quotes"),

		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			instruction, err := instructionOf(c, args[0])
			if err != nil {
				return err
			}
			return runRun(c, o, instruction)
		},
	}
	group(c, "Model", func(f *pflag.FlagSet) {
		o.model.choice(f)
		o.model.requests(f)
		o.model.tapes(f)
	})
	group(c, "What may happen", func(f *pflag.FlagSet) {
		choiceVar(f, &o.access, "access", string(gate.Confirm), "what may run without asking", string(gate.ReadOnly), string(gate.Confirm), string(gate.Auto))
		choiceVar(f, &o.sandbox, "sandbox", "auto", "off runs commands without a box", "auto", "off")
		f.BoolVar(&o.allowNet, "allow-net", false, "commands in the box have the network that you have")
		f.StringArrayVar(&o.readable, "readable", nil, readableText)
		f.StringVar(&o.tools, "tools", "all", "`A,B,C` offers these tools only; none offers none")
	})
	group(c, "Subagents", func(f *pflag.FlagSet) {
		choiceVar(f, &o.delegate, "delegate", string(delegate.TaskOnly), "what a subagent is told of the conversation", modeWords()...)
		f.BoolVar(&o.single, "single", false, "one agent does everything; the same as --delegate off")
		f.IntVar(&o.jobs, "jobs", 8, "agents at work at once")
	})
	group(c, "Limits and output", func(f *pflag.FlagSet) {
		f.IntVar(&o.maxTurns, "max-turns", 50, "replies of the model, before a last one to report")
		f.IntVar(&o.maxTokens, "max-tokens", 8192, "tokens of one reply")
		f.Int64Var(&o.budget, "budget-tokens", 0, "tokens of the whole run, input and output; 0 is no limit")
		f.Float64Var(&o.budgetUSD, "budget-usd", 0, "`DOLLARS` of the whole run; needs the model's prices; 0 is no limit")
		f.DurationVar(&o.timeout, "timeout", 0, "time of the whole run; 0 is no limit")
		f.StringVar(&o.verify, "verify", "", "`CMD` that has to succeed before an agent that may write is done")
		f.StringVar(&o.schema, "output-schema", "", "`FILE` with a JSON Schema that the answer has to fit")
		f.BoolVar(&o.json, "json", false, "print every event as a line of JSON in place of the answer")
		f.BoolVar(&o.verbose, "verbose", false, "show what models say and tools return")
	})
	rare(c, "subagents", "How subagents work", func(f *pflag.FlagSet) {
		choiceVar(f, &o.readers, "readers", string(orchestrator.Live), "snapshot: each works in a frozen copy of the tree", string(orchestrator.Live), string(orchestrator.Frozen))
		choiceVar(f, &o.copies, "worktree-backend", worktree.Auto, "how writers' copies are made", worktree.Auto, worktree.Overlay, worktree.Fresh)
	})
	rare(c, "subagents", "What becomes of changes", func(f *pflag.FlagSet) {
		choiceVar(f, &o.conflict, "on-conflict", string(orchestrator.Resolve), "what becomes of a change that does not merge", string(orchestrator.Resolve), string(orchestrator.Report), string(orchestrator.Stop))
		f.StringVar(&o.checks, "verify-merge", "", "`CMD` that has to succeed on each merge; one that fails counts as a conflict")
	})
	rare(c, "subagents", "What a person is asked", func(f *pflag.FlagSet) {
		f.BoolVar(&o.confirmEach, "confirm-each", false, "at --access confirm ask about what writers do in their copies, too")
		f.DurationVar(&o.askTimeout, "ask-timeout", 10*time.Minute, "time for an answer; then it is no")
	})
	rare(c, "subagents", "Limits of subagents", func(f *pflag.FlagSet) {
		f.IntVar(&o.maxDepth, "max-depth", 1, "levels of subagents")
		f.IntVar(&o.maxChildren, "max-children", 64, "subagents of the whole run")
		f.IntVar(&o.childTurn, "child-max-turns", 30, "replies of each subagent, before a last one to report")
		f.DurationVar(&o.childTimeout, "child-timeout", 15*time.Minute, "time of each subagent, from when it starts to work")
		f.IntVar(&o.processJobs, "process-jobs", 0, "commands in flight over the whole run; 0 is as many as there are CPUs")
		f.Int64Var(&o.childBudget, "child-budget-tokens", 0, "tokens of each subagent, out of the run's; 0 is no limit")
		f.Float64Var(&o.childUSD, "child-budget-usd", 0, "`DOLLARS` of each subagent; needs the model's prices; 0 is no limit")
		f.Float64Var(&o.confirmUSD, "confirm-usd", 0, "`DOLLARS` of first requests from which you are asked before subagents start; 0 is never")
	})
	return c
}

// instructionOf returns what to do: the argument, or all of stdin.
func instructionOf(c *cobra.Command, arg string) (string, error) {
	if arg == "-" {
		all, err := io.ReadAll(c.InOrStdin())
		if err != nil {
			return "", fmt.Errorf("read the instruction: %w", err)
		}
		arg = string(all)
	}
	if strings.TrimSpace(arg) == "" {
		return "", usage(c, "the instruction is empty", `say what to do: skein run "fix the failing test"`)
	}
	return arg, nil
}

func runRun(c *cobra.Command, o runOptions, instruction string) (err error) {
	options, err := o.orchestrator(c)
	if err != nil {
		return err
	}
	o.model.atOnce = o.jobs
	said := &notes{out: c.ErrOrStderr()}
	m, err := o.model.connect(c, options.Dir, said)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.link.Close()) }()
	if options.Price, err = m.price(o.inDollars()); err != nil {
		return err
	}
	options.Client, options.ModelName, options.Params, options.Mask, options.Date = m.link, m.choice.Model, m.params, m.mask, m.date
	options.MaxTokens = m.maxTokens(o.maxTokens, o.verbose, said.say)
	children, closeChildren := m.children(c.Context(), o, said)
	defer func() { err = errors.Join(err, closeChildren()) }()
	options.ChildModels = children
	if options.Asker != nil {
		options.Asker = quiet{masked{options.Asker, m.mask}, said}
	}

	out := c.OutOrStdout()
	options.Watch = face.NewProgress(said, o.verbose).Watch
	events := face.NewJSON(out)
	if o.json {
		options.Watch = events.Watch
	}
	options.Control = &orchestrator.Control{}
	defer ofRun(c.Context(), said.urgent, options.Control.EndChildren)()
	outcome, failed := orchestrator.Run(c.Context(), options, instruction)
	if answer := string(m.mask.Written([]byte(outcome.Answer))); !o.json && answer != "" {
		if _, err := fmt.Fprintln(out, strings.TrimRight(face.Visible(answer), "\n")); err != nil {
			return errors.Join(unprinted(fmt.Errorf("run: print the answer: %w", err), outcome), failed)
		}
	}
	if failed != nil {
		return fmt.Errorf("run: %w", failed)
	}
	if err := events.Err(); err != nil {
		return unprinted(fmt.Errorf("run: print the events: %w", err), outcome)
	}
	return ended(outcome)
}

// unprinted is a run that ended as it should and could not be told of: it need not be run again.
func unprinted(err error, o orchestrator.Outcome) error {
	return &hinted{err, "the run is over and its changes are made: its answer is in .skein/sessions/" + o.Session + "/journal.jsonl of " + o.Dir}
}

// masked asks with the secrets hidden, in questions about calls that hold some.
type masked struct {
	gate.Asker
	mask *mask.Mask
}

// Ask implements [gate.Asker].
func (m masked) Ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	q.Title = string(m.mask.Written([]byte(q.Title)))
	q.Purpose = string(m.mask.Written([]byte(q.Purpose)))
	q.Detail = string(m.mask.Written([]byte(q.Detail)))
	return m.Asker.Ask(ctx, q)
}

// orchestrator turns the flags into the options of a run. What the flags say that cannot be is
// found here, before anything is begun.
func (o runOptions) orchestrator(c *cobra.Command) (orchestrator.Options, error) {
	dir, err := os.Getwd()
	if err != nil {
		return orchestrator.Options{}, fmt.Errorf("run: find the current folder: %w", err)
	}
	names, err := toolNames(o.tools)
	if err != nil {
		return orchestrator.Options{}, err
	}
	for _, limit := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"jobs", int64(o.jobs), 1},
		{"max-depth", int64(o.maxDepth), 1},
		{"max-children", int64(o.maxChildren), 1},
		{"child-max-turns", int64(o.childTurn), 1},
		{"max-turns", int64(o.maxTurns), 1},
		{"max-tokens", int64(o.maxTokens), 1},
		{"budget-tokens", o.budget, 0},
		{"child-budget-tokens", o.childBudget, 0},
		{"process-jobs", int64(o.processJobs), 0},
	} {
		if limit.value < limit.least {
			return orchestrator.Options{}, usage(c, fmt.Sprintf("--%s %d is less than %d", limit.flag, limit.value, limit.least), flagHint(c, c.Flag(limit.flag)))
		}
	}
	for _, limit := range []struct {
		flag         string
		value, least time.Duration
		hint         string
	}{
		{"child-timeout", o.childTimeout, 1, "15m"},
		{"ask-timeout", o.askTimeout, 1, "10m"},
		{"timeout", o.timeout, 0, "30m; 0 is no limit"},
	} {
		if limit.value < limit.least {
			return orchestrator.Options{}, &usageError{command: "run", text: fmt.Sprintf("--%s %v is too short", limit.flag, limit.value), hint: "as in --" + limit.flag + " " + limit.hint}
		}
	}
	if o.confirmEach && o.access != string(gate.Confirm) {
		return orchestrator.Options{}, &usageError{command: "run", text: "--confirm-each asks nothing at --access " + o.access, hint: "leave one of them away"}
	}
	for _, limit := range o.dollars() {
		if !(limit.usd >= 0) || math.IsInf(limit.usd, 0) {
			return orchestrator.Options{}, usage(c, fmt.Sprintf("%s %g is no amount of dollars", limit.flag, limit.usd), flagHint(c, c.Flag(strings.TrimPrefix(limit.flag, "--"))))
		}
	}
	answer, err := form(o.schema)
	if err != nil {
		return orchestrator.Options{}, err
	}
	mode, err := modeOf(c, o.delegate, o.single)
	if err != nil {
		return orchestrator.Options{}, err
	}
	shown, err := readable("run", o.readable, sandbox.Environment(os.Environ()))
	if err != nil {
		return orchestrator.Options{}, err
	}
	options := orchestrator.Options{
		Dir: dir, Mode: mode, Access: gate.Access(o.access), Each: o.confirmEach, Tools: names, Form: answer,
		Verify: o.verify, VerifyMerge: o.checks, OnConflict: orchestrator.OnConflict(o.conflict),
		Readers: orchestrator.Readers(o.readers), Copies: o.copies,
		Boxes: orchestrator.Boxes{NoSandbox: o.sandbox == "off", AllowNet: o.allowNet, Readable: shown, Environ: os.Environ()},
		Limits: orchestrator.Limits{
			Jobs: o.jobs, ProcessJobs: o.processJobs, MaxDepth: o.maxDepth, MaxChildren: o.maxChildren,
			MaxTurns: o.maxTurns, ChildTurns: o.childTurn,
			Timeout: o.timeout, ChildTime: o.childTimeout, AskTime: o.askTimeout,
			Budget: o.budget, BudgetUSD: o.budgetUSD, ChildBudget: o.childBudget, ChildBudgetUSD: o.childUSD, ConfirmUSD: o.confirmUSD,
		},
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())) {
		options.Asker = gate.Terminal(keyboard{os.Stdin}, os.Stderr)
	}
	return options, nil
}

// toolNames reads the value of --tools: nil means all.
func toolNames(list string) ([]string, error) {
	switch list {
	case "all":
		return nil, nil
	case "none":
		return []string{}, nil
	}
	known := orchestrator.ToolNames()
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known, name) {
			return nil, &usageError{
				command: "run", text: fmt.Sprintf("unknown tool %q", name),
				hint: "the tools are " + strings.Join(known, ", "),
			}
		}
		names = append(names, name)
	}
	return names, nil
}
