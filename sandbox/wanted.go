package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Want is something that a command which failed in a box seems to have failed for want of.
// It is a hint, made of what the command printed and what the kernel counted: a command may
// say anything, and may fail of something else.
type Want struct {
	Kind   string // "network" or "path"
	Detail string // the host, if the command named it, or the path, as it named it
}

// Values of [Want.Kind].
const (
	wantNetwork = "network"
	wantPath    = "path"
)

// How much is looked at, and told.
const (
	mostHints = 64 << 10 // bytes, from the end: programs say last what went wrong
	mostWants = 8
)

// What programs print when there is no network, those first that name the host.
var (
	namedHost = regexp.MustCompile(`(?i)(?:could not resolve host(?:name)?:? |: lookup |EAI_AGAIN )['"]?([\w.-]+)`)
	noNetwork = regexp.MustCompile(`(?i)network is unreachable|ENETUNREACH|temporary failure in name resolution|name or service not known|no such host`)
)

// What programs print when a file may not be written, and the path in such a line: quoted, or
// the words before the phrase that begin with a slash or follow a colon.
var (
	readOnlyFile = regexp.MustCompile(`(?i)read-only file system`)
	deniedFile   = regexp.MustCompile(`(?i)permission denied`)
	quotedPath   = regexp.MustCompile("['\"‘`]([^'\"’`]+)['\"’`]")
	slashPath    = regexp.MustCompile(`(?:^|[\s:])(/[^:]*[^:\s])\s*(?::|$)`)
	colonPath    = regexp.MustCompile(`(?:^|: )([^:\s]+)\s*(?::|$)`)
)

// wants reads from text, which a command that failed has printed, what it failed for want of.
// closed reports whether a path that it named is one that the box keeps from it.
func wants(text []byte, closed func(path string) bool) (list []Want) {
	text = text[max(0, len(text)-mostHints):]
	add := func(w Want) {
		if !slices.Contains(list, w) && len(list) < mostWants {
			list = append(list, w)
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if host := namedHost.FindStringSubmatch(line); host != nil {
			add(Want{wantNetwork, host[1]})
		} else if noNetwork.MatchString(line) {
			add(Want{Kind: wantNetwork})
		}
		at, denied := readOnlyFile.FindStringIndex(line), false
		if at == nil {
			at, denied = deniedFile.FindStringIndex(line), true
		}
		if at == nil {
			continue
		}
		// A file that is only read-only says enough; a mode may deny anything, anywhere.
		if path := namedPath(line, at[0]); path != "" && closed(path) || !denied {
			add(Want{wantPath, path})
		}
	}
	return list
}

// namedPath finds the path in a line whose phrase begins at a byte, "" if there is none.
func namedPath(line string, phrase int) string {
	if quoted := quotedPath.FindAllStringSubmatch(line, -1); quoted != nil {
		return quoted[len(quoted)-1][1] // commands that move name the source first
	}
	before := line[:phrase]
	for _, form := range []*regexp.Regexp{slashPath, colonPath} {
		if found := form.FindAllStringSubmatch(before, -1); found != nil {
			return found[len(found)-1][1]
		}
	}
	return ""
}

// keeps reports whether a box with this policy, which is a checked one, keeps commands that
// start in dir, relative to the workspace, from changing a path.
func (p Policy) keeps(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.View, dir, path)
	}
	rel, ok := p.below(path)
	switch {
	case !ok:
		return !within(path, "/tmp") && !within(path, "/dev") && !within(path, "/run/skein")
	case slices.ContainsFunc(closed, func(c string) bool { return slices.Contains(strings.Split(rel, "/"), c) }):
		return p.GitDir == "" || !p.Writable || !within(rel, ".git")
	}
	return !p.Writable || !inScopes(p.Scopes, rel)
}
