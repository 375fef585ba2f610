package orchestrator

import (
	"context"
	"io"

	"golang.org/x/sync/semaphore"

	"skein/sandbox"
	"skein/tools"
)

// A processor runs the commands of one place.
type processor interface {
	tools.Exec
	io.Closer
}

// runCommands has the commands of the place run by x, in turn with those of all other places.
func (p *place) runCommands(places *semaphore.Weighted, x processor) {
	p.exec, p.ws.Exec = x, &queued{x, places}
}

// queued runs commands once there is a place for them among those of the run, in the order of
// asking. A command's own time begins when it starts. One of which ctx ends leaves the line.
type queued struct {
	exec   tools.Exec
	places *semaphore.Weighted
}

// Run implements [tools.Exec].
func (q *queued) Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error) {
	if err := q.places.Acquire(ctx, 1); err != nil {
		return sandbox.Output{}, err
	}
	defer q.places.Release(1)
	return q.exec.Run(ctx, c)
}
