// Package face shows runs to people and to programs. Everything in it reads the events of the
// journal and nothing else, so that it shows the same of a run that goes on and of one that is
// over.
package face

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
)

// A Progress writes a plain line for each step of a run, as it happens. Its Watch may be given
// to a run as it is: events come one at a time.
type Progress struct {
	out     io.Writer
	verbose bool
	args    map[string]string // of the calls not answered yet, by agent and call id
	said    map[string]bool   // agents whose next result is of a child that was settled
	ended   map[string]string // how children ended that are not settled yet, as was said
}

// NewProgress returns a face that writes to out; verbose adds what models say and tools return.
func NewProgress(out io.Writer, verbose bool) *Progress {
	return &Progress{out: out, verbose: verbose, args: map[string]string{}, said: map[string]bool{}, ended: map[string]string{}}
}

// Watch shows one event. An event of a kind it does not know is left out.
func (p *Progress) Watch(e journal.Event) {
	if e.Kind == "message" || e.Kind == "reply" && !p.verbose {
		return // they are the largest, and not shown
	}
	payload, err := e.Decode()
	if err != nil {
		return
	}
	switch d := payload.(type) {
	case *journal.Notice:
		p.say("", "note: %s", d.Text)
		if d.Hint != "" {
			p.say("", "hint: %s", d.Hint)
		}
	case *journal.AgentQueued:
		p.say(e.Agent, "queued: %s, %s%s", role(d), title(d), foreseen(d))
	case *journal.AgentStarted:
		if e.Agent != parent {
			p.say(e.Agent, "started")
		}
	case *journal.Reply:
		if p.verbose && d.Message.Text != "" {
			p.block(e.Agent, d.Message.Text)
		}
	case *journal.Attempt:
		p.say(e.Agent, "waiting %.1f s: %s", d.Wait, d.Error)
	case *journal.Call:
		p.args[e.Agent+" "+d.ID] = d.Args
	case *journal.Result:
		p.result(e.Agent, d)
	case *journal.Checked:
		p.checked(e.Agent, d)
	case *journal.AgentEnded:
		if e.Agent != parent {
			p.ended[e.Agent] = because(d.Stop, d.Cause)
			p.say(e.Agent, "ended: %s, %s, %s", p.ended[e.Agent], count(d.Turns, "turn"), tokens(d.Usage, d.Counted))
		}
	case *journal.Resolved:
		if d.Cause == "" {
			p.say(d.Child, "resolved by %s: %s", d.Resolver, strings.Join(d.Conflicts, ", "))
		} else {
			p.say(d.Child, "not resolved by %s: %s", d.Resolver, d.Cause)
		}
	case *journal.Settled:
		p.said[e.Agent] = true
		p.settled(d)
	case *journal.Fault:
		p.say(e.Agent, "fault: %s", d.Text)
		if p.verbose && d.Stack != "" {
			p.block(e.Agent, d.Stack)
		}
	case *journal.RunEnded:
		for _, line := range Receipt(d) {
			p.say("", "%s", line)
		}
	}
}

// parent is the ordinal of the agent that everything else belongs to; its lines bear no name.
const parent = "0"

func (p *Progress) say(agent, format string, args ...any) {
	_, _ = fmt.Fprintln(p.out, name(agent)+Line(fmt.Sprintf(format, args...), 400))
}

func name(agent string) string {
	if agent == "" || agent == parent {
		return ""
	}
	return agent + " "
}

// block shows a longer text, set in.
func (p *Progress) block(agent, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		_, _ = fmt.Fprintf(p.out, "%s| %s\n", name(agent), Visible(strings.TrimRight(line, "\r\n")))
	}
}

func (p *Progress) result(agent string, d *journal.Result) {
	key := agent + " " + d.ID
	args := p.args[key]
	delete(p.args, key)
	if d.Tool == delegate.Name {
		said := p.said[agent]
		delete(p.said, agent)
		if d.OK || said {
			return // when the child was settled
		}
	}
	line := "[tool] " + d.Tool + " " + Arguments(args)
	if !d.OK {
		line = Line(line, 250) + " (failed: " + failure(d) + ")"
	}
	p.say(agent, "%s", line)
	if p.verbose && d.Text != "" {
		p.block(agent, d.Text)
	}
}

// failure is why a call failed: the first line of what the model is told, without what it is told to
// do then.
func failure(d *journal.Result) string {
	if d.Command != "" && d.Exit != 0 {
		return fmt.Sprintf("exit %d", d.Exit)
	}
	why, _, _ := strings.Cut(strings.TrimSpace(d.Text), "\n")
	why, _, _ = strings.Cut(why, ". ")
	return Line(strings.TrimPrefix(why, d.Tool+": "), 140)
}

func (p *Progress) checked(agent string, d *journal.Checked) {
	end := fmt.Sprintf("exit %d", d.Exit)
	if d.Killed != "" {
		end = d.Killed
	}
	what := "verify"
	if d.Merge != "" {
		what = "verify the merge"
	}
	p.say(agent, "[%s] %s (%s)", what, d.Command, end)
	if p.verbose && d.Text != "" {
		p.block(agent, d.Text)
	}
}

// settled says what became of a child's work. How it ended is not said twice.
func (p *Progress) settled(d *journal.Settled) {
	text, said := strings.CutPrefix(d.People, p.ended[d.Child])
	delete(p.ended, d.Child)
	if said && text != "" {
		text, said = strings.CutPrefix(text, "; ")
	}
	if !said {
		text = d.People
	}
	if text != "" {
		p.say(d.Child, "%s", text)
	}
	if d.Show != "" {
		p.say(d.Child, "see it with: %s", d.Show)
	}
}

// Receipt sums up a run: what it came to and what it took, then what became of the children.
func Receipt(d *journal.RunEnded) []string {
	lines := []string{fmt.Sprintf("run: %s, %s, %s, %.1f s", because(d.Stop, d.Cause), tokens(d.Usage, d.Counted), cost(d), d.Seconds)}
	if d.Children == 0 {
		return lines
	}
	line := fmt.Sprintf("run: %s, %d merged, %d kept", count(d.Children, "child"), d.Merged, d.Kept)
	if d.Cancelled > 0 {
		line += fmt.Sprintf(", %d cancelled", d.Cancelled)
	}
	if d.Unfinished > 0 {
		line += fmt.Sprintf(", %d unfinished", d.Unfinished)
	}
	return append(lines, fmt.Sprintf("%s; %.1f s of their work in %.1f s", line, d.Busy, d.Seconds))
}

// Arguments shows a call's arguments as name=value, in the order of the names. What is no JSON
// object is shown as it is.
func Arguments(args string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) != nil {
		return Line(args, 120)
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	parts := make([]string, 0, len(names))
	for _, name := range names {
		value := string(fields[name])
		var text string
		if json.Unmarshal(fields[name], &text) == nil {
			value = text
			if strings.ContainsAny(text, " \t\n") || text == "" {
				value = fmt.Sprintf("%q", text)
			}
		}
		parts = append(parts, name+"="+Line(value, 80))
	}
	return strings.Join(parts, " ")
}

func because(stop, cause string) string {
	if cause == "" || stop == "completed" {
		return stop
	}
	return stop + " (" + cause + ")"
}

func role(d *journal.AgentQueued) string {
	who := "reader"
	if d.Access == "write" {
		who = "writer"
	}
	if d.Role != "" {
		who += " as " + d.Role
	}
	if d.Model != "" {
		who += " by " + d.Model
	}
	return who
}

func title(d *journal.AgentQueued) string {
	if d.Title != "" {
		return d.Title
	}
	return Line(d.Task, 60)
}

// foreseen says what a child's first request is expected to read.
func foreseen(d *journal.AgentQueued) string {
	all := d.Cached.Plus(d.New)
	if !all.Known {
		return ""
	}
	return fmt.Sprintf("; reads about %s tokens (%s cached)", all, d.Cached)
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if thing == "child" {
		return fmt.Sprintf("%d children", n)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// tokens shows what exchanges took. Where that cannot be known it is at least what those took that
// were counted, and unavailable where none was.
func tokens(u, counted model.Usage) string {
	least := ""
	if !u.Prompt().Known && !u.Output.Known {
		if counted.Prompt().N == 0 {
			return "tokens unavailable"
		}
		u, least = counted, "at least "
	}
	in := u.Prompt()
	cached := u.CacheRead.String() + " cached"
	if in.N > 0 && u.CacheRead.N > 0 {
		cached += fmt.Sprintf(", %d%%", 100*u.CacheRead.N/in.N) // rounded down
	}
	return fmt.Sprintf("%s%s tokens in (%s), %s out", least, in, cached, u.Output)
}

func cost(d *journal.RunEnded) string {
	switch {
	case d.Cost != nil:
		return model.Dollars(*d.Cost)
	case d.AtLeast != nil:
		return "cost at least " + model.Dollars(*d.AtLeast)
	}
	return "cost unavailable"
}
