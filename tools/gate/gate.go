// Package gate decides whether a tool call may run: it compares the call's effect with the
// access level. Every call passes it, whoever asks: parent, child, grandchild.
package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"skein/scheduler"
)

// Access is how much may happen without asking. The zero value is no level at all and
// allows reading only.
type Access string

// The access levels.
const (
	ReadOnly Access = "read-only" // nothing changes
	Confirm  Access = "confirm"   // writes, commands and merges are asked
	Auto     Access = "auto"      // everything goes
)

// A Policy is what one agent may do. A child's policy never allows more than its parent's.
// Commands of a Reader, and of every agent under [ReadOnly], run without asking in a box: it
// is for the caller to see to it that this box holds the workspace read-only.
type Policy struct {
	Access   Access
	Reader   bool // the agent may only read, whatever the level
	Isolated bool // the agent works in a copy of its own: its merge is what gets asked
	Each     bool // what it does in the copy gets asked, too

	Tools []string // that alone the agent may call; nil: all
}

// A Call is what the gate needs to know of a tool call.
type Call struct {
	Tool   string
	Effect scheduler.Effect
	Boxed  bool // commands of this agent run in a box

	// Outside says that neither the agent's box nor its copy holds what the call does: a tool
	// of the program that Skein is a part of.
	Outside bool
}

// A Verdict is what may become of a call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// A Decision is a verdict and, for [Deny], the reason as the model is told it.
type Decision struct {
	Verdict Verdict
	Reason  string
}

// Decide decides on a call. A level that is not known counts as [ReadOnly].
func (p Policy) Decide(c Call) Decision {
	if p.Tools != nil && !slices.Contains(p.Tools, c.Tool) {
		return deny(c, "your role has only these tools: "+cmp.Or(strings.Join(p.Tools, ", "), "none"))
	}
	if c.Effect == scheduler.Read {
		return Decision{Verdict: Allow}
	}
	if c.Outside || p.Each {
		p.Isolated = false
	}
	if c.Effect == scheduler.Execute && (p.Reader || p.Access == ReadOnly) && !c.Outside {
		// A box that cannot write the workspace makes a command a way of reading.
		if c.Boxed {
			return Decision{Verdict: Allow}
		}
		return deny(c, "commands of a reader need a box, and there is none here. Use read_file, glob and grep")
	}
	switch {
	case p.Reader:
		return deny(c, "you may read only. Answer with what should be changed")
	case p.Access == Auto:
		return Decision{Verdict: Allow}
	case p.Access != Confirm:
		return deny(c, "the access level is read-only. Answer with what should be changed; the user can run with --access auto")
	case c.Effect == scheduler.Isolated && !c.Outside,
		p.Isolated && c.Effect == scheduler.Write,
		p.Isolated && c.Effect == scheduler.Execute && c.Boxed:
		return Decision{Verdict: Allow}
	}
	return Decision{Verdict: Ask}
}

func deny(c Call, why string) Decision {
	return Decision{Verdict: Deny, Reason: fmt.Sprintf("%s refused: %s.", c.Tool, why)}
}
