package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadConnectionIsGivenUp asks a peer that takes everything and never answers: the
// request ends with the connection, long before any limit of the reply.
func TestDeadConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way, ok := carrier(nil, Limits{}.withDefaults()).Transport.(*http.Transport)
		if !ok {
			t.Fatal("the client's own transport is no *http.Transport")
		}
		defer way.CloseIdleConnections()
		way.Protocols = new(http.Protocols)
		way.Protocols.SetUnencryptedHTTP2(true)
		dials, drained := 0, make(chan struct{})
		way.DialContext = func(context.Context, string, string) (net.Conn, error) {
			dials++
			near, far := net.Pipe()
			go func() { // the test waits for drained
				_, _ = io.Copy(io.Discard, far)
				drained <- struct{}{}
			}()
			return near, nil
		}
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://dead.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			resp, err := way.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Fatal("RoundTrip = an answer of a dead connection")
			}
			if took := time.Since(start); took != pingAfter+pingTime {
				t.Errorf("RoundTrip = %v after %v, want the connection given up after %v", err, took, pingAfter+pingTime)
			}
			<-drained
		}
		if dials != 2 {
			t.Errorf("two requests dialled %d times, want a new connection for the second", dials)
		}
	})
}
