package retry

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// waits says how long to wait between the attempts of one exchange. The library's own
// policy knows nothing of what servers ask for, and its jitter may shorten a wait; here it
// only gives the series.
type waits struct {
	series   *backoff.ExponentialBackOff
	patience time.Duration // how long after the first failure an attempt may begin
	rand     func() float64

	first time.Time     // of the failures; zero before
	asked time.Duration // by the server at the last failure
}

var _ backoff.BackOff = (*waits)(nil)

func newWaits(o Options) *waits {
	return &waits{
		series: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(o.First),
			backoff.WithMaxInterval(o.Longest),
			backoff.WithMultiplier(2),
			backoff.WithRandomizationFactor(0),
			backoff.WithMaxElapsedTime(0),
		),
		patience: o.For,
		rand:     o.Rand,
	}
}

// failed notes a failure, and how long the server asked to wait after it.
func (w *waits) failed(asked time.Duration) {
	if w.first.IsZero() {
		w.first = time.Now()
	}
	w.asked = asked
}

// passed is the time since the first failure.
func (w *waits) passed() time.Duration { return time.Since(w.first) }

// left is how long from now an attempt may still begin.
func (w *waits) left() time.Duration { return w.patience - w.passed() }

// NextBackOff implements [backoff.BackOff].
func (w *waits) NextBackOff() time.Duration {
	wait, left := max(w.series.NextBackOff(), w.asked), w.left()
	if wait > left {
		return backoff.Stop
	}
	return min(wait+time.Duration(w.rand()*jitter*float64(wait)), left)
}

// Reset implements [backoff.BackOff].
func (w *waits) Reset() { w.series.Reset() }
