package provider

import (
	"net"
	"net/url"
	"strings"
)

const (
	ollamaVar  = "OLLAMA_HOST"
	ollamaPort = "11434"
)

// ollamaURL is where Ollama is looked for on this machine: at its usual port, or where
// OLLAMA_HOST says. That variable also tells servers where to listen, and is left alone where
// it leads to another machine: what goes there is said with --base-url.
func ollamaURL(getenv func(string) string) string {
	usual := "http://localhost:" + ollamaPort
	text := strings.TrimSpace(getenv(ollamaVar))
	if text == "" {
		return usual
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.User != nil {
		return usual
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = ollamaPort
	}
	switch ip := net.ParseIP(host); {
	case loopback(host):
	case host == "", ip != nil && ip.IsUnspecified(): // it listens everywhere, so here too
		host = "127.0.0.1"
	default:
		return usual
	}
	return "http://" + net.JoinHostPort(host, port)
}

// loopback reports whether a host is this machine, and only this machine.
func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
