package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"skein/agent"
	"skein/delegate"
	"skein/orchestrator"
)

// An outcome is everything that the promises are judged by.
type outcome struct {
	run           orchestrator.Outcome
	history       *history
	before, after map[string]string // files
	index         [2][]byte         // git's index before and after, nil without git
	tests         error             // of the project's own tests afterwards
	delegated     bool              // the script hands work to children
}

// A promise is something that a run must keep, and whether it was.
type promise struct {
	kept bool
	text string
}

// promises judges a run.
func (o outcome) promises() []promise {
	list := []promise{{o.run.Stop == agent.Completed, "the run ended by itself: " + string(o.run.Stop)}}
	if o.delegated {
		list = append(list, o.readers(), o.refusal())
		list = append(list, o.writers()...)
	}
	if o.index[0] != nil {
		list = append(list, promise{bytes.Equal(o.index[0], o.index[1]), "what was staged is staged still: git's index is the same to the byte"})
	}
	return append(list, o.untouched(), promise{o.tests == nil, "go test ./... passes in the project"})
}

func (o outcome) readers() promise {
	readers := o.history.children(false)
	all, shortest := overlap(readers)
	return promise{
		len(readers) == 3 && all > 0,
		fmt.Sprintf("three readers worked at once: %.2f s together, the shortest %.2f s", all.Seconds(), shortest.Seconds()),
	}
}

// refusal is that of the reader's attempt to write.
func (o outcome) refusal() promise {
	const attempt = "echo x > README.md"
	tried := slices.IndexFunc(o.history.results, func(r result) bool { return strings.Contains(r.args, attempt) })
	text := "a reader's " + attempt + " was refused"
	if tried < 0 {
		return promise{false, text + ": it was never tried"}
	}
	r := o.history.results[tried]
	reason := strings.TrimSpace(r.text)
	if i := strings.LastIndexByte(reason, '\n'); i >= 0 {
		reason = reason[i+1:]
	}
	return promise{!r.ok && o.before["README.md"] == o.after["README.md"], text + ": " + reason}
}

func (o outcome) writers() []promise {
	writers := o.history.children(true)
	asked := ordinals(writers)
	ended := finished(writers)
	isolated := len(writers) > 0 && !slices.ContainsFunc(writers, func(w *worker) bool { return !w.isolated })
	if !isolated {
		return []promise{{
			len(writers) == 3 && slices.Equal(ended, asked),
			"three writers worked one after another, in place: " + strings.Join(ended, ", "),
		}}
	}
	return []promise{
		{len(writers) == 3 && !slices.Equal(ended, asked), "three writers finished in another order than asked: " + strings.Join(ended, ", ")},
		{slices.Equal(o.history.merges, asked), "they were merged in the order asked: " + strings.Join(o.history.merges, ", ")},
		{len(shared(writers)) == 1, "two of them changed the same file without conflict: " + strings.Join(shared(writers), ", ")},
	}
}

// shared returns the files that more than one writer brought back.
func shared(writers []*worker) []string {
	count := map[string]int{}
	var twice []string
	for _, w := range writers {
		for _, f := range w.files {
			if count[f]++; count[f] == 2 && w.change == delegate.Merged {
				twice = append(twice, f)
			}
		}
	}
	return twice
}

// untouched is that no file changed save those that were edited by whom they were given to.
func (o outcome) untouched() promise {
	var edited []string
	for _, r := range o.history.results {
		var args struct {
			Path string `json:"path"`
		}
		if r.tool == "search_replace" && r.ok && json.Unmarshal([]byte(r.args), &args) == nil {
			edited = append(edited, args.Path)
		}
	}
	edited = names(edited)
	return promise{slices.Equal(edited, changed(o.before, o.after)), "nothing else changed: " + strings.Join(edited, ", ")}
}
