package mask

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secretName finds names of variables that hold secrets. Short words count only at the end
// of a word, or as one: there are KEYBOARD, AUTHOR, COMPASS and PATH.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|passphrase|credential|private|keys?(_|$)|(^|_)(auth|pass|pat)(_|$)`)

// FromEnviron returns the values of an environment that look like secrets by the name of
// their variable, and passwords inside addresses. Environ is as from [os.Environ].
//
// What a secret could not be is left out, or it would be hidden wherever it means something
// else: paths, addresses that hold nothing secret, words. The variables named by keys hold keys
// for sure, whatever they look like.
func FromEnviron(environ []string, keys ...string) []string {
	var secrets []string
	add := func(value string, sure bool) {
		if len(strings.TrimSpace(value)) >= headSize && (sure || !isPath(value) && !isPublic(value) && !word.MatchString(value)) {
			secrets = append(secrets, value)
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if sure := slices.Contains(keys, name); sure || secretName.MatchString(name) {
			add(value, sure)
		}
		if u, err := url.Parse(value); err == nil && u.Host != "" && u.User != nil {
			if password, ok := u.User.Password(); ok {
				add(password, false)
			} else {
				add(u.User.Username(), false) // tokens are given in its place
			}
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

// word finds what is one word, such as postgres or Disabled. Of 16 letters a key is made.
var word = regexp.MustCompile(`^([A-Z]?[a-z]{1,14}|[A-Z]{1,15})$`)

// rooted finds absolute paths by their first folder: base64 may begin with a slash, too.
var rooted = regexp.MustCompile(`^~?/([a-z]+|[A-Z][a-z]+)?(/|$)`)

func isPath(value string) bool { return rooted.MatchString(value) }

// isPublic reports whether a value is an address that holds neither a user nor what may be
// secret in it: a query, or a path with a key, as webhooks have.
func isPublic(value string) bool {
	u, err := url.Parse(value)
	return err == nil && strings.Contains(value, "://") && u.User == nil && u.RawQuery == "" && !long.MatchString(u.Path)
}

// long finds what is too long for a name in a path.
var long = regexp.MustCompile(`[A-Za-z0-9_-]{20,}`)
