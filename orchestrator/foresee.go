package orchestrator

import (
	"context"
	"fmt"
	"strings"

	"skein/agent/model"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// bytesPerToken is what a token is taken to hold before anybody has counted.
const bytesPerToken = 4

// A foresight is what a child will read with its first request: tokens that a cache of the
// provider is expected to hold, and others. It is an estimate.
type foresight struct{ cached, fresh int64 }

func (f foresight) plus(g foresight) foresight {
	return foresight{f.cached + g.cached, f.fresh + g.fresh}
}

func (f foresight) String() string {
	return fmt.Sprintf("about %d tokens, %d of them cached", f.cached+f.fresh, f.cached)
}

// usage is what is read, in the terms of prices.
func (f foresight) usage() model.Usage {
	u := model.NoUsage()
	u.CacheRead, u.Input = model.Tokens(f.cached), model.Tokens(f.fresh)
	return u
}

// foresee estimates what a delegation will read. In full mode its request begins with the last
// one of its parent, whose provider has counted what it read, in the others with the tools and the
// system message; another model than the parent's has seen nothing of it.
func (b *batch) foresee(d *delegate.Delegation, mode delegate.Mode) foresight {
	f := b.measure(d, mode)
	if mode == delegate.Full && b.engineOf(d.Model) == b.engine && b.read.Known {
		f.cached = b.read.N
	}
	return f
}

// measure is foresee by the size of messages alone: what models are told follows from them, and
// from no provider's figures.
func (b *batch) measure(d *delegate.Delegation, mode delegate.Mode) foresight {
	e := b.engineOf(d.Model)
	brief := delegate.Brief{Mode: mode, MayDelegate: b.depth+1 < b.run.o.MaxDepth, Place: delegate.Place{Live: d.Access != delegate.Writing}}
	fresh := int64(len(brief.Text(d))) / bytesPerToken
	front, cached := int64(0), int64(len(e.tools))/bytesPerToken
	for _, m := range delegate.Front(mode, b.before) {
		if n := int64(len(m.Raw)) / bytesPerToken; m.Role == model.System {
			cached += n
		} else {
			front += n
		}
	}
	switch {
	case e != b.engine:
		return foresight{0, cached + front + fresh}
	case mode == delegate.Full:
		return foresight{cached + front, fresh}
	}
	return foresight{cached, front + fresh}
}

// confirm asks a person once before the children of a reply start, if their first requests
// together cost more than may be spent unasked. After a no none of them is started, and each
// call is told why.
func (b *batch) confirm(ctx context.Context, jobs []scheduler.Job) {
	limit := b.run.o.ConfirmUSD
	if limit == 0 {
		return
	}
	var all, measured foresight
	var usd float64
	var lines []string
	for _, o := range b.outcomes {
		if o.child == nil {
			continue
		}
		f := b.foresee(o.child.d, b.run.o.Mode)
		one, _ := b.engineOf(o.child.d.Model).Price.Cost(f.usage()) // a limit in dollars has prices
		all, usd, measured = all.plus(f), usd+one, measured.plus(b.measure(o.child.d, b.run.o.Mode))
		lines = append(lines, fmt.Sprintf("%s %s: %v, %s", o.child.name, o.child.d.Label(), f, model.Dollars(one)))
	}
	if usd <= limit {
		return
	}
	v := b.ask(ctx, gate.Question{
		Agent: b.ordinal, Title: b.title, Tool: delegate.Name, Dir: b.place.ws.Path, Detail: strings.Join(lines, "\n"),
		Purpose: fmt.Sprintf("start %s: their first requests read %v, for %s", children(len(lines)), all, model.Dollars(usd)),
	})
	if v.granted {
		return
	}
	if b.run.o.Asker == nil {
		b.run.notice(fmt.Sprintf("not started: %s, whose first requests would read %v, for %s", children(len(lines)), all, model.Dollars(usd)),
			"run it on a terminal to be asked, or raise --confirm-usd")
	}
	text := fmt.Sprintf("%s refused: the first requests of %s, about %d tokens by their size, cost more than the %s that need no consent: %s. Do the work yourself, or delegate less at once.",
		delegate.Name, children(len(lines)), measured.cached+measured.fresh, model.Dollars(limit), v.told())
	for i := range b.outcomes {
		if o := &b.outcomes[i]; o.child != nil {
			*o = outcome{result: tools.Fail(text), denied: true}
			jobs[i] = b.only(i)
		}
	}
	clear(b.children)
	b.born -= len(lines) // their ordinals and places are free: none of them ever was
	b.run.children.Release(int64(len(lines)))
}

// children counts them in words.
func children(n int) string {
	if n == 1 {
		return "1 subagent"
	}
	return fmt.Sprintf("%d subagents", n)
}
