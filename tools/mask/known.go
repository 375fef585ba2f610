package mask

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// headSize is how many bytes of a secret find it, and the fewest one has.
const headSize = 8

// forms returns how a secret may stand in a view or in its source.
func forms(secret string) []string {
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	for _, urls := range []bool{false, true} {
		all = append(all, string(newView([]byte(secret), urls).folded()))
	}
	if strings.ContainsAny(secret, controls) { // folded for texts that have escapes, of which it has none itself
		all = append(all, strings.NewReplacer("\n", "n", "\r", "r", "\t", "t", "\b", "b", "\f", "f").Replace(secret))
	}
	// In base64 a secret may stand behind something else, such as a user name: there are
	// three ways for it to fall into groups of three bytes. Characters at its ends that also
	// depend on its neighbours are not looked for.
	for before := range 3 {
		bytes := append(make([]byte, before), secret...)
		from, to := (8*before+5)/6, 8*len(bytes)/6
		all = append(all, base64.RawStdEncoding.EncodeToString(bytes)[from:to], base64.RawURLEncoding.EncodeToString(bytes)[from:to])
	}
	return all
}

// A finder finds many texts in one pass: two bytes say where to look closer, eight which
// texts can stand there.
type finder struct {
	pairs  [1 << 16 / 64]uint64
	byHead map[[headSize]byte][]string // the longest first
}

func newFinder(all []string) *finder {
	f := &finder{byHead: map[[headSize]byte][]string{}}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, s := range all {
		if len(s) < headSize {
			continue
		}
		pair := uint(s[0])<<8 | uint(s[1])
		f.pairs[pair/64] |= 1 << (pair % 64)
		head := [headSize]byte([]byte(s[:headSize]))
		if !slices.Contains(f.byHead[head], s) {
			f.byHead[head] = append(f.byHead[head], s)
		}
	}
	return f
}

// find appends where texts of f stand in b. The spans may overlap.
func (f *finder) find(b []byte, found []span) []span {
	for i := 0; i+headSize <= len(b); i++ {
		pair := uint(b[i])<<8 | uint(b[i+1])
		if f.pairs[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		for _, s := range f.byHead[[headSize]byte(b[i:])] {
			if len(b)-i >= len(s) && string(b[i:i+len(s)]) == s {
				found = append(found, span{from: i, to: i + len(s)})
				break
			}
		}
	}
	return found
}
