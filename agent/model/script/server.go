package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	headerTimeout = 10 * time.Second // of a request's headers; a client on loopback is quicker
	requestLimit  = 64 << 20         // bytes of one request's body
	recordLimit   = 64 << 20         // bytes of all recorded bodies
)

// A Server answers requests from a script. Close it.
type Server struct {
	script *Script
	cache  cache
	root   string
	stop   func() error // ends connections and the requests that wait; then Serve returns
	served chan struct{}
	busy   sync.WaitGroup // handlers

	mu       sync.Mutex
	closed   bool
	recorded []Recorded
	bodies   int // bytes of the recorded bodies
}

// Recorded is one request that the server could read, in order of arrival.
type Recorded struct {
	Agent string // the ordinal from the header, "x" without it
	Turn  int
	Line  int    // of the rule that answered, 0 if none did
	Body  []byte // as it came; nil for the oldest once all bodies together exceed 64 MiB

	Input, Hit, Output int64 // tokens as reported; zero where a fault was the answer
}

// An AddressError tells that a server was to listen at what is no address, or where others could
// reach it.
type AddressError struct{ Addr string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("serve script: %q is no loopback address", e.Addr)
}

// Hint says what to do next.
func (e *AddressError) Hint() string {
	return "the scripted model asks nobody who they are: listen on 127.0.0.1:0"
}

// Listen starts a server on a loopback address such as "127.0.0.1:0". Cancelling ctx ends
// the answers that still wait; the server itself ends with Close.
func Listen(ctx context.Context, s *Script, addr string) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &AddressError{addr}
	}
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return nil, &AddressError{addr}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve script: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() { // whatever localhost is here
		return nil, errors.Join(&AddressError{l.Addr().String()}, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	srv := &Server{script: s, root: "http://" + l.Addr().String(), served: make(chan struct{})}
	web := &http.Server{
		Handler:           srv.routes(),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	srv.stop = func() error { cancel(); return web.Close() }
	go func() { // Close waits for it
		defer close(srv.served)
		_ = web.Serve(l) // always an error, after Close the expected one
	}()
	return srv, nil
}

// URL is the base URL for clients of chat completions, such as "http://127.0.0.1:41234/v1".
func (s *Server) URL() string { return s.root + "/v1" }

// Root is the base URL for clients of Anthropic's Messages and of Ollama's own protocol,
// such as "http://127.0.0.1:41234".
func (s *Server) Root() string { return s.root }

// Requests returns what was asked so far.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.recorded)
}

// Close ends the server and waits for its handlers. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.stop()
	<-s.served
	s.busy.Wait()
	return err
}

// enter counts a handler in, unless the server is closed already.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.busy.Add(1)
	return true
}

// record keeps a request; the oldest bodies go first when they become too many.
func (s *Server) record(r Recorded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded = append(s.recorded, r)
	s.bodies += len(r.Body)
	for i := 0; s.bodies > recordLimit && i < len(s.recorded); i++ {
		s.bodies -= len(s.recorded[i].Body)
		s.recorded[i].Body = nil
	}
}
