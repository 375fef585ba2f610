package sandbox

import "context"

// A Report tells what the self-test tried on this system, in order, and what came of it.
type Report struct {
	Steps []Step
	Held  Held // of the boxes it was tried in; zero without any
}

// A Step is one thing that was tried.
type Step struct {
	What   string
	Held   bool   // it went as it must: was refused, or worked
	Detail string // what the system said
}

// Probe is [Examine] for those who only want to know whether boxes hold, with the network
// [ExamineNet] too: nil means that they do.
func Probe(ctx context.Context, net bool) error {
	_, err := Examine(ctx)
	if err == nil && net {
		err = ExamineNet(ctx)
	}
	return err
}

func (r *Report) add(what, detail string) {
	r.Steps = append(r.Steps, Step{What: what, Held: true, Detail: detail})
}

// broken ends a report with what went wrong.
func (r *Report) broken(what string, err error) (Report, error) {
	r.Steps = append(r.Steps, Step{What: what, Detail: answer(err)})
	return *r, err
}
