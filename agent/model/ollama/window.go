package ollama

import (
	"math"
	"sync"

	"skein/agent/model"
)

const (
	windowStep   = 2048 // tokens
	defaultReply = 8192 // tokens kept for a reply without a limit

	// density is the tokens that a byte of a prompt is taken to make, until a reply tells
	// more: more than text has, about as many as code. Other scripts can have twice as many.
	density = 1.0 / 3
	// A token is a byte at least; and in a short prompt the server's own words count more
	// than ours, which would say nothing about a long one.
	mostDensity = 1.0
	telling     = 2048 // bytes of a prompt that tells its density
)

// A window is the num_ctx that a client asks for. The server loads the model anew for every
// other one, which takes seconds and forgets the cached prompt: the window never shrinks, and
// where it has to grow it grows by a quarter at least, so that a long conversation causes a
// few loads and not one for each turn.
type window struct {
	fixed int64 // by the user; 0 lets it grow

	mu    sync.Mutex
	size  int64
	dense float64 // the most tokens for each byte that a reply told, 0 before
}

// fit returns the window for a prompt of so many bytes and a reply of so many tokens.
func (w *window) fit(prompt, reply int64) int64 {
	if w.fixed > 0 {
		return w.fixed
	}
	if reply <= 0 {
		reply = defaultReply
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	need := int64(math.Ceil(float64(prompt)*max(density, w.dense))) + reply
	if need > w.size {
		w.size = (max(need, w.size+w.size/4) + windowStep - 1) / windowStep * windowStep
	}
	return w.size
}

// learn takes in how many tokens a prompt of so many bytes had.
func (w *window) learn(prompt int64, read model.Count) {
	if !read.Known || prompt < telling {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dense = max(w.dense, min(float64(read.N)/float64(prompt), mostDensity))
}
