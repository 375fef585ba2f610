package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o wire.Options) *wire.Client {
	t.Helper()
	if o.BaseURL == "" {
		o.BaseURL = "http://127.0.0.1:1/v1"
	}
	o.Name, o.Model = "acme", "m"
	c, err := wire.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var hello = wire.Body{Pieces: 2, Piece: func(i int) []byte { return [][]byte{[]byte("hel"), []byte("lo")}[i] }}

func TestBodyReader(t *testing.T) {
	pieces := [][]byte{[]byte("{"), nil, []byte(`"a":`), []byte("1}"), nil}
	b := wire.Body{Pieces: len(pieces), Piece: func(i int) []byte { return pieces[i] }}
	const want = `{"a":1}`
	if got := b.Size(); got != int64(len(want)) {
		t.Errorf("Size() = %d, want %d", got, len(want))
	}
	if err := iotest.TestReader(b.Reader(), []byte(want)); err != nil {
		t.Error(err)
	}
	again, err := io.ReadAll(iotest.OneByteReader(b.Reader())) // a body is sent again after a broken connection
	if err != nil || string(again) != want {
		t.Errorf("second reader = %s, %v, want %s", again, err, want)
	}
}

// slow answers with pieces of a body, waiting before each, in virtual time.
type slow []time.Duration

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&slowBody{r.Context(), s}), Request: r}, nil
}

type slowBody struct {
	ctx   context.Context
	waits []time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.waits) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.waits[0]):
		b.waits = b.waits[1:]
		return copy(p, "x"), nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

func TestTimeLimits(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name   string
		stream bool
		waits  slow
		limits wire.Limits
		want   string // of the error
		after  time.Duration
	}{
		{"a stream that begins late and goes on slowly", true, slow{119 * s, 59 * s, 59 * s, 59 * s}, wire.Limits{}, "", 296 * s},
		{"no first byte", true, slow{121 * s}, wire.Limits{}, "the reply did not begin within 2m0s", 120 * s},
		{"no next byte", true, slow{100 * s, 61 * s}, wire.Limits{}, "the reply did not go on within 1m0s", 160 * s},
		{"no next byte, later", true, slow{s, 50 * s, 61 * s}, wire.Limits{}, "the reply did not go on within 1m0s", 111 * s},
		{"not streamed", false, slow{599 * s}, wire.Limits{}, "", 599 * s},
		{"not streamed, too slow", false, slow{590 * s, 11 * s}, wire.Limits{}, "no whole reply within 10m0s", 600 * s},
		{"other limits", true, slow{2 * s}, wire.Limits{FirstByte: s}, "the reply did not begin within 1s", s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client(t, wire.Options{HTTP: &http.Client{Transport: tc.waits}, Limits: tc.limits})
				start := time.Now()
				err := c.Ask(t.Context(), wire.Call{Body: hello, Stream: tc.stream}, func(r io.Reader) error {
					_, err := io.Copy(io.Discard, r)
					return err
				})
				if took := time.Since(start); took != tc.after {
					t.Errorf("Ask took %v, want %v", took, tc.after)
				}
				var failed *model.Error
				if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &failed) || failed.Message != tc.want || !failed.Again || failed.Status != 0) {
					t.Errorf("Ask = %v, want %q, to be tried again", err, tc.want)
				}
			})
		})
	}
}

func TestCancelledContextIsItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, wire.Options{HTTP: &http.Client{Transport: slow{time.Hour}}})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := c.Ask(ctx, wire.Call{Body: hello, Stream: true}, func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		var failed *model.Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &failed) {
			t.Errorf("Ask = %v, want the context's error", err)
		}
	})
}

// TestEndThatDoesNotCome shows that an answer that is complete is not held up by a server
// that keeps the connection open, and not failed by it.
func TestEndThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, wire.Options{HTTP: &http.Client{Transport: slow{0, time.Hour}}})
		start := time.Now()
		err := c.Ask(t.Context(), wire.Call{Body: hello, Stream: true}, func(r io.Reader) error {
			_, err := io.ReadFull(r, make([]byte, 1))
			return err
		})
		if took := time.Since(start); err != nil || took > 100*time.Millisecond {
			t.Errorf("Ask = %v after %v, want none, soon", err, took)
		}
	})
}

func TestStatus(t *testing.T) {
	const date = "Sun, 29 Nov 2026 10:00:00 GMT"
	for _, tc := range []struct {
		status     int
		retryAfter string
		body       string
		again      bool
		wait       time.Duration
		tooLong    bool
	}{
		{status: 400, body: `{"error":{"message":"bad"}}`},
		{status: 401},
		{status: 403},
		{status: 404},
		{status: 422},
		{status: 302},
		{status: 408, again: true},
		{status: 409, again: true},
		{status: 500, again: true},
		{status: 529, again: true},
		{status: 429, retryAfter: "2", again: true, wait: 2 * time.Second},
		{status: 429, retryAfter: "0.5", again: true, wait: time.Second / 2},
		{status: 503, retryAfter: "Sun, 29 Nov 2026 10:00:07 GMT", again: true, wait: 7 * time.Second},
		{status: 503, retryAfter: "Sun, 29 Nov 2026 09:59:59 GMT", again: true},
		{status: 503, retryAfter: "soon", again: true},
		{status: 503, retryAfter: "-3", again: true},
		{status: 503, retryAfter: "NaN", again: true},
		{status: 503, retryAfter: "1e300", again: true, wait: 24 * time.Hour},
		{status: 401, retryAfter: "2"},
		{status: 400, body: `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, tooLong: true},
		{status: 400, body: `{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}`, tooLong: true},
		{status: 500, body: `{"error":"the input length exceeds the context length"}`, tooLong: true},
		{status: 413, tooLong: true},
		{status: 429, body: `{"error":"too many tokens per minute for this context length"}`, again: true},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date)
			if tc.retryAfter != "" {
				w.Header().Set("Retry-After", tc.retryAfter)
			}
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		}))
		err := client(t, wire.Options{BaseURL: srv.URL}).Ask(t.Context(), wire.Call{Body: hello}, func(io.Reader) error {
			t.Error("the body of a bad answer was read as a good one")
			return nil
		})
		srv.Close()
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Status != tc.status || failed.Message == "" ||
			failed.Usage != model.NoUsage() || failed.Again != tc.again || failed.RetryAfter != tc.wait || failed.TooLong != tc.tooLong {
			t.Errorf("%d, Retry-After %q, %s: Ask = %+v, want again %t, wait %v, too long %t", tc.status, tc.retryAfter, tc.body, failed, tc.again, tc.wait, tc.tooLong)
		}
	}
}

// TestBrokenConnections shows which faults of the way pass by themselves.
func TestBrokenConnections(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half/x" {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tc := range []struct {
		name, url, hint string
		again           bool
		usage           model.Usage
	}{
		{"reset before an answer", srv.URL, "", true, model.Usage{}},
		{"reset in the middle", srv.URL + "/half", "", true, model.Usage{}},
		{"nobody listens", gone.URL, "is the server running at ", false, model.NoUsage()},
		{"encryption where there is none", strings.Replace(srv.URL, "http:", "https:", 1), "check the base URL ", false, model.Usage{}},
	} {
		err := client(t, wire.Options{BaseURL: tc.url, Path: "x"}).Ask(t.Context(), wire.Call{Body: hello}, func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Status != 0 || failed.Again != tc.again || failed.Usage != tc.usage || !strings.HasPrefix(failed.Hint(), tc.hint) {
			t.Errorf("%s: Ask = %+v, want again %t, usage %v, hint %q…", tc.name, failed, tc.again, tc.usage, tc.hint)
		}
	}
}

// failing fails every request as a transport does.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		err   net.DNSError
		says  string
		again bool
	}{
		{net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}, "no such host: api.example", false},
		{net.DNSError{Err: "server misbehaving", Name: "api.example", Server: "127.0.0.53:53", IsTemporary: true}, "lookup api.example on 127.0.0.53:53: server misbehaving", true},
		{net.DNSError{Err: "i/o timeout", Name: "api.example", IsTimeout: true, IsTemporary: true}, "lookup api.example: i/o timeout", true},
	} {
		way := failing{&net.OpError{Op: "dial", Net: "tcp", Err: &tc.err}} // as a dialer reports it
		c := client(t, wire.Options{BaseURL: "https://api.example", HTTP: &http.Client{Transport: way}})
		err := c.Ask(t.Context(), wire.Call{Body: hello}, nil)
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Message != tc.says || failed.Again != tc.again || failed.Usage != model.NoUsage() {
			t.Errorf("Ask = %+v, want %q, again %t, at no cost", failed, tc.says, tc.again)
		}
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	var from []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from = append(from, r.RemoteAddr)
		_, _ = io.WriteString(w, "data: [DONE]\n\n"+strings.Repeat("\n", 100))
	}))
	defer srv.Close()
	c := client(t, wire.Options{BaseURL: srv.URL})
	for range 3 {
		err := c.Ask(t.Context(), wire.Call{Body: hello, Stream: true}, func(r io.Reader) error {
			return wire.Events(r, func([]byte) (bool, error) { return true, nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if from[0] != from[1] || from[1] != from[2] {
		t.Errorf("three requests came from %v, want one connection", from)
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	const key = "sk-verysecret"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"you sent %s"}}`, r.Header.Get("X-Key"))
	}))
	defer srv.Close()
	c := client(t, wire.Options{BaseURL: srv.URL + "?token=" + key, Key: key, Header: http.Header{"X-Key": {key}}})
	err := c.Ask(t.Context(), wire.Call{Body: hello}, nil)
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Message != "you sent [key]" || strings.Contains(fmt.Sprintf("%+v", failed), key) {
		t.Errorf("Ask = %+v, want the key masked", failed)
	}
}
