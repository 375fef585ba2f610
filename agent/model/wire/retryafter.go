package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait bounds what a server can ask for; whoever waits has limits of its own.
const longestWait = 24 * time.Hour

// retryAfter reads how long the server asks to wait: seconds or a date, which is compared
// with the server's own clock where it tells it.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(v, 64); err == nil {
		if !(seconds > 0) { // not a number, too
			return 0
		}
		return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), longestWait)
}
