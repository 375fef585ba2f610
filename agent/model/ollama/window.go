package ollama

import "sync/atomic"

const (
	windowStep   = 2048 // tokens
	promptBytes  = 3    // of a prompt for each token: more tokens than text has, about as many as code
	defaultReply = 8192 // tokens kept for a reply without a limit
)

// A window is the num_ctx that a client asks for. The server loads the model anew for every
// other one, which takes seconds and forgets the cached prompt: the window never shrinks, and
// where it has to grow it grows by a quarter at least, so that a long conversation causes a
// few loads and not one for each turn.
type window struct {
	fixed int64 // by the user; 0 lets it grow
	size  atomic.Int64
}

// fit returns the window for a prompt of so many bytes and a reply of so many tokens.
func (w *window) fit(prompt, reply int64) int64 {
	if w.fixed > 0 {
		return w.fixed
	}
	if reply <= 0 {
		reply = defaultReply
	}
	need := prompt/promptBytes + reply
	for {
		now := w.size.Load()
		if need <= now {
			return now
		}
		size := (max(need, now+now/4) + windowStep - 1) / windowStep * windowStep
		if w.size.CompareAndSwap(now, size) {
			return size
		}
	}
}
