package modeltest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"skein/agent/model"
)

// A player answers every request with the same recorded body, or with its beginning.
type player struct {
	kind  string
	body  []byte
	sized bool // the length was told

	cut   atomic.Int64 // bytes that are sent
	clean atomic.Bool  // what is cut ends as if it were whole
}

// record takes the scripted model's answer to a client's own request, and returns a player
// of it with a client.
func record(t *testing.T, m *mode, rules string) (*player, model.Client) {
	t.Helper()
	srv, _ := m.serve(t, rules)
	p := &player{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.body == nil {
			if err := p.fetch(r, srv.Root()+r.URL.Path); err != nil {
				t.Errorf("record: %v", err)
			}
		} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		p.play(w)
	}))
	t.Cleanup(web.Close)
	c := m.Connect(t, web.URL+m.dialect.base, m.stream)
	if _, _, err := ask(t.Context(), t, c, "hello", nil); err != nil {
		t.Fatalf("Exchange = %v", err)
	}
	return p, c
}

// fetch gets the answer to a request from another address.
func (p *player) fetch(r *http.Request, url string) error {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, url, r.Body)
	if err != nil {
		return err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Accept-Encoding")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	p.kind, p.sized, p.body = resp.Header.Get("Content-Type"), resp.ContentLength >= 0, data
	p.cut.Store(int64(len(data)))
	return nil
}

func (p *player) play(w http.ResponseWriter) {
	n := int(p.cut.Load())
	w.Header().Set("Content-Type", p.kind)
	if p.sized && p.clean.Load() {
		w.Header().Set("Content-Length", strconv.Itoa(n))
	} else if p.sized {
		w.Header().Set("Content-Length", strconv.Itoa(len(p.body)))
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(p.body[:n]) // the client may have gone: nobody is left to tell
	if n < len(p.body) && !p.clean.Load() {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// cutAnywhere cuts a recorded reply at every byte, by a lost connection and by an end that
// looks regular: each is reported as one to be tried again, or is complete.
func cutAnywhere(t *testing.T, m *mode) {
	p, c := record(t, m, `- {reasoning: "hm 日", say: "für it", calls: [{f: {a: "b c"}}, {g: {}}]}`)
	want, tr, err := ask(t.Context(), t, c, "hello", nil)
	if err != nil || len(want.Message.Calls) != 2 {
		t.Fatalf("Exchange = %d calls, %v, want 2", len(want.Message.Calls), err)
	}
	complete := 0
	for _, clean := range []bool{false, true} {
		p.clean.Store(clean)
		for n := range len(p.body) {
			p.cut.Store(int64(n))
			var h heard
			req := turn(tr, 1)
			req.Stream = h.hear
			got, err := c.Exchange(t.Context(), req)
			if err == nil {
				complete++
				// Counts that come after the reply may be missing.
				if got.Usage == (model.Usage{}) {
					got.Usage = want.Usage
				}
				if diff := different(want, got); diff != "" {
					t.Fatalf("cut after %d of %d bytes (clean %t): %s", n, len(p.body), clean, diff)
				}
				continue
			}
			// A whole reply that is cut where its length says so is a fault of the server, which
			// may repeat it; every other end is one of the way.
			sound := p.sized && clean
			if failed := (*model.Error)(nil); !errors.As(err, &failed) || !failed.Again && !sound {
				t.Fatalf("cut after %d of %d bytes (clean %t): %v, want an error to be tried again\n…%s", n, len(p.body), clean, err, p.body[max(0, n-80):n])
			}
			if said := h.text.String(); !strings.HasPrefix(want.Message.Text, said) {
				t.Fatalf("cut after %d bytes: the deltas say %q, which does not begin %q", n, said, want.Message.Text)
			}
			if got.Message.Raw != nil || got.Message.Calls != nil {
				t.Fatalf("cut after %d bytes: half a reply beside the error: %s", n, got.Message.Raw)
			}
		}
	}
	// Only what comes after the end of what counts may be missing: a stream's last marks.
	if most := len(p.body) / 2; complete > most {
		t.Errorf("%d of %d cuts were taken for complete, want few", complete, 2*len(p.body))
	}
}

// different names the first difference between two replies.
func different(want, got model.Reply) string {
	switch {
	case got.Message.Text != want.Message.Text:
		return fmt.Sprintf("text %q, want %q", got.Message.Text, want.Message.Text)
	case !slices.Equal(got.Message.Calls, want.Message.Calls):
		return fmt.Sprintf("calls %v, want %v", got.Message.Calls, want.Message.Calls)
	case !bytes.Equal(got.Message.Raw, want.Message.Raw):
		return fmt.Sprintf("raw message %s, want %s", got.Message.Raw, want.Message.Raw)
	case got.Finish != want.Finish:
		return fmt.Sprintf("finish %s, want %s", got.Finish, want.Finish)
	}
	return ""
}
