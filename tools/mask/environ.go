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
func FromEnviron(environ []string) []string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if secretName.MatchString(name) {
			secrets = append(secrets, value)
		}
		if u, err := url.Parse(value); err == nil && u.Host != "" && u.User != nil {
			if password, ok := u.User.Password(); ok {
				secrets = append(secrets, password)
			} else {
				secrets = append(secrets, u.User.Username()) // tokens are given in its place
			}
		}
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(strings.TrimSpace(s)) < headSize })
	slices.Sort(secrets)
	return slices.Compact(secrets)
}
