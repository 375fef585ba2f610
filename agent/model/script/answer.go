package script

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, []byte(`{"object":"list","data":[{"id":"script","object":"model","created":0,"owned_by":"skein"}]}`))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "not_found", "nothing at "+r.Method+" "+r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.busy.Done()
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "read the body: "+err.Error())
		return
	}
	req, err := read(r.Header.Get("Skein-Agent"), body)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	note := Recorded{Agent: req.agent, Turn: req.turn, Body: body}
	rule, got := s.script.find(req)
	if rule == nil {
		s.record(note)
		fail(w, http.StatusInternalServerError, "no_rule_fits", noRule(req))
		return
	}
	note.Line = rule.line
	if rule.Status != 0 && rule.Status != http.StatusOK || rule.Body != nil || rule.Garbage {
		s.record(note)
		wait(r.Context(), rule.Latency)
		rule.fail(w, got)
		return
	}
	s.reply(r.Context(), w, req, rule, got, note)
}

// find returns the first rule that fits, or nil.
func (s *Script) find(req request) (*rule, captures) {
	for i := range s.rules {
		if got, ok := s.rules[i].When.match(req); ok {
			return &s.rules[i], got
		}
	}
	return nil, nil
}

// reply sends a completion, and does what a provider's cache does meanwhile: the input is
// stored when it has been read, the output when it has been written.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, req request, r *rule, got captures, note Recorded) {
	raw, finish, err := r.message(req, got)
	if err != nil {
		fail(w, http.StatusInternalServerError, "script_error", fmt.Sprintf("line %d: %v", r.line, err))
		return
	}
	count := func(given *int64, counted int64) int64 {
		if given != nil {
			return *given
		}
		return counted
	}
	var input int64
	for _, piece := range req.pieces {
		input += tokens(piece)
	}
	note.Input, note.Output = count(r.Usage.Input, input), count(r.Usage.Output, tokens(raw))
	at := ends(req.pieces)
	note.Hit = s.cache.input(at, note.Input)
	s.record(note)

	u := usageReport{Prompt: note.Input, Hit: note.Hit, Miss: note.Input - note.Hit, Completion: note.Output, Total: note.Input + note.Output}
	u.PromptDetails.Cached = note.Hit
	u.CompletionDetails.Reasoning = min(note.Output, count(r.Usage.Reasoning, tokens([]byte(got.expand(r.Reasoning)))))
	data, err := encode(completion{
		ID:      fmt.Sprintf("chatcmpl_%s_%d", req.agent, req.turn),
		Object:  "chat.completion",
		Model:   req.model,
		Choices: [1]choice{{Message: raw, Finish: finish}},
		Usage:   &u,
	})
	if err != nil {
		fail(w, http.StatusInternalServerError, "script_error", fmt.Sprintf("line %d: %v", r.line, err))
		return
	}
	wait(ctx, r.Latency)
	if r.Cut {
		cut(w, http.StatusOK, data)
	}
	s.cache.output(at[len(at)-1], raw, note.Input+note.Output)
	send(w, http.StatusOK, data)
}

// fail answers with the rule's fault.
func (r *rule) fail(w http.ResponseWriter, got captures) {
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	var data []byte
	switch {
	case r.Body != nil:
		data = []byte(got.expand(*r.Body))
	case r.Garbage:
		data = []byte("<!doctype html><p>this is no JSON {\"")
	default:
		data = problem("scripted_fault", fmt.Sprintf("scripted fault: %s", strings.ToLower(http.StatusText(status))))
	}
	if r.Cut {
		cut(w, status, data)
	}
	send(w, status, data)
}

// wait lets the latency pass. If the client goes or the server is closed meanwhile, it does
// not return: the connection ends, since returning would send an empty reply.
func wait(ctx context.Context, p pause) {
	timer := time.NewTimer(time.Duration(p))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		panic(http.ErrAbortHandler)
	}
}

// cut sends half of the body and ends the connection; it does not return.
func cut(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data[:len(data)/2]) // the client may have gone: nobody is left to tell
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func send(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have gone: nobody is left to tell
}

func fail(w http.ResponseWriter, status int, kind, words string) {
	send(w, status, problem(kind, words))
}

// problem is an error body in the dialect's form.
func problem(kind, words string) []byte {
	var p struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}
	p.Error.Message, p.Error.Type = words, kind
	data, _ := encode(p) // two strings always encode
	return data
}

// noRule names the request that no rule fits, so that its author can write one.
func noRule(r request) string {
	last := "user message"
	text := r.user
	if r.hasResults {
		last, text = "results", r.results
	}
	if head := []rune(text); len(head) > 200 {
		text = string(head[:200]) + "…"
	}
	return fmt.Sprintf("no rule of the script fits agent %s, turn %d, %s %q", r.agent, r.turn, last, text)
}
