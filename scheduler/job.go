package scheduler

import "context"

// Effect is what a job does to the workspace of whoever asked for it. It decides which
// jobs may run at the same time.
type Effect int

// The effects, from harmless to alone. The zero value is the strictest.
const (
	Execute  Effect = iota // runs a command there: alone in its stage
	Write                  // changes files there: alone in its stage
	Read                   // changes nothing: runs beside other Read and Isolated jobs
	Isolated               // changes a copy, brought back in Settle: runs beside them too
)

// String names the effect as in docs and events.
func (e Effect) String() string {
	switch e {
	case Write:
		return "write"
	case Read:
		return "read"
	case Isolated:
		return "isolated"
	default:
		return "execute"
	}
}

// Shared reports whether jobs of this effect may overlap with others of a stage.
func (e Effect) Shared() bool { return e == Read || e == Isolated }

// A Job is one piece of a batch.
type Job struct {
	Effect Effect

	// Slot is set when Run is a worker that needs a slot of its own: it starts when one is
	// free, and its ctx carries it. While a stage with such jobs runs, whoever asked for it
	// gives its own slot back.
	Slot bool

	// Run does the work. It runs in a goroutine of its own, together with the others of
	// its stage; a panic becomes the job's error.
	Run func(ctx context.Context) error

	// Settle finishes the job: merges a writer's change, for one. It is called after all
	// jobs of the stage have ended, one job at a time and in request order, and only if
	// Run returned nil. It may be nil.
	Settle func(ctx context.Context) error
}
