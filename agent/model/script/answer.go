package script

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.speak(chat{}))
	mux.HandleFunc("POST /v1/messages", s.speak(messages{}))
	mux.HandleFunc("POST /api/chat", s.speak(ollama{}))
	for path, body := range map[string]string{
		"/v1/models":   `{"object":"list","data":[{"id":"script","object":"model","created":0,"owned_by":"skein"}]}`,
		"/api/tags":    `{"models":[{"name":"script:latest","model":"script:latest","modified_at":"` + epoch + `","size":0,"digest":"","details":{}}]}`,
		"/api/version": `{"version":"0.0.0"}`,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, []byte(body)) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		send(w, http.StatusNotFound, chat{}.problem(http.StatusNotFound, "not_found", "nothing at "+r.Method+" "+r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.busy.Done()
		mux.ServeHTTP(w, r)
	})
}

// speak answers requests in one protocol.
func (s *Server) speak(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status int, kind string, err error) { send(w, status, p.problem(status, kind, err.Error())) }
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
		if err != nil {
			refuse(http.StatusBadRequest, "invalid_request_error", fmt.Errorf("read the body: %w", err))
			return
		}
		req, err := p.read(r.Header, body)
		if err == nil {
			err = req.origin(r.Header.Get("Skein-Agent"))
		}
		if err != nil {
			refuse(http.StatusBadRequest, "invalid_request_error", err)
			return
		}
		note := Recorded{Agent: req.agent, Turn: req.turn, Body: body}
		rule, got := s.script.find(&req)
		if rule == nil {
			s.record(note)
			refuse(http.StatusUnprocessableEntity, "no_rule_fits", noRule(&req)) // no fault that passes
			return
		}
		note.Line = rule.line
		if !rule.replies() && !rule.Cut.given || rule.Body != nil || rule.Status != 0 && rule.Status != http.StatusOK {
			s.record(note)
			wait(r.Context(), rule.Latency)
			rule.fail(r.Context(), w, p, &req, got)
			return
		}
		if err := s.reply(r.Context(), w, p, &req, rule, got, note); err != nil {
			refuse(http.StatusInternalServerError, "script_error", fmt.Errorf("line %d: %w", rule.line, err))
		}
	}
}

// find returns the first rule that fits, or nil.
func (s *Script) find(req *request) (*rule, captures) {
	for i := range s.rules {
		if got, ok := s.rules[i].When.match(req); ok {
			return &s.rules[i], got
		}
	}
	return nil, nil
}

// reply sends a reply, and does what a provider's cache does meanwhile: the input is stored
// when it has been read, the output when it has been written. An error means that nothing
// was sent.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, p protocol, req *request, r *rule, got captures, note Recorded) error {
	a, err := r.answer(req, got)
	if err != nil {
		return err
	}
	pieces, err := p.pieces(a)
	if err != nil {
		return err
	}
	count := func(given *int64, counted int64) int64 {
		if given != nil {
			return *given
		}
		return counted
	}
	note.Input, note.Output = count(r.Usage.Input, total(req.pieces)), count(r.Usage.Output, total(pieces))
	at := ends(req.pieces)
	stored := note.Input
	if req.cached < len(req.pieces) {
		stored = min(stored, total(req.pieces[:req.cached]))
	}
	note.Hit = s.cache.input(at[:req.cached], stored)

	seen := note.Input
	if req.window > 0 && r.Usage.Input == nil {
		seen = min(seen, req.window)
	}
	a.figures = figures{
		input: seen, hit: note.Hit, cached: stored, output: note.Output,
		reasoning: min(note.Output, count(r.Usage.Reasoning, tokens([]byte(a.reasoning)))),
	}
	d, err := compose(p, req, r, a)
	if err != nil {
		return err
	}
	s.record(note)
	wait(ctx, r.Latency)
	end := at[len(at)-1]
	if after := end.ends(pieces); len(after) > 0 {
		end = after[len(after)-1]
	}
	d.whole = func() {
		if req.cached == len(req.pieces) {
			s.cache.output(end, note.Input+note.Output)
		}
	}
	r.deliver(ctx, w, d)
	return nil
}

// compose gives the body of a reply, with the faults that are of its own making.
func compose(p protocol, req *request, r *rule, a answer) (delivery, error) {
	h := p.habits()
	if !req.streams {
		data, err := p.whole(a)
		if r.Garbage {
			data = data[:len(data)/2]
		}
		return delivery{status: http.StatusOK, kind: typeJSON, chunks: [][]byte{data}, alive: h.wholeAlive}, err
	}
	chunks, err := p.stream(a)
	if r.Garbage && err == nil {
		malform(chunks)
	}
	return delivery{status: http.StatusOK, kind: h.streamType, chunks: chunks, alive: h.streamAlive, lines: true}, err
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

// noRule names the request that no rule fits, so that its author can write one.
func noRule(r *request) error {
	last := "user message"
	text := r.user
	if r.hasResults {
		last, text = "results", r.results
	}
	if head := []rune(text); len(head) > 200 {
		text = string(head[:200]) + "…"
	}
	return fmt.Errorf("no rule of the script fits agent %s, turn %d, %s %q", r.agent, r.turn, last, text)
}
