package mask

import (
	"bytes"
	"regexp"
)

// A pattern is a kind of key that is known by how it begins.
type pattern struct {
	head string
	rest rest
	keep bool // the head is no secret and stays
}

// rest returns how many bytes after the head belong to the key, 0 if it is none.
type rest func(after []byte) int

// patterns are common kinds of keys. They are narrow: what is masked for its looks alone
// should be a key.
func patterns() []pattern {
	token := like(`[A-Za-z0-9._~+/-]{16,}=*`)
	github := like(`[A-Za-z0-9]{30,}`)
	return []pattern{
		{"sk-", digits(like(`[A-Za-z0-9_-]{20,}`)), false}, // other names begin so, without a digit
		{"sk_live_", like(`[A-Za-z0-9]{16,}`), false},
		{"rk_live_", like(`[A-Za-z0-9]{16,}`), false},
		{"ghp_", github, false},
		{"gho_", github, false},
		{"ghu_", github, false},
		{"ghs_", github, false},
		{"ghr_", github, false},
		{"github_pat_", like(`[A-Za-z0-9_]{20,}`), false},
		{"glpat-", like(`[A-Za-z0-9_-]{20,}`), false},
		{"npm_", like(`[A-Za-z0-9]{36,}`), false},
		{"hf_", like(`[A-Za-z0-9]{30,}`), false},
		{"AKIA", like(`[A-Z0-9]{16,}`), false},
		{"ASIA", like(`[A-Z0-9]{16,}`), false},
		{"AIza", like(`[A-Za-z0-9_-]{35,}`), false},
		{"xox", like(`[abeoprs]-[A-Za-z0-9-]{10,}`), false},
		{"AGE-SECRET-KEY-1", like(`[A-Z0-9]{50,}`), false},
		{"eyJ", like(`[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]+)?`), false}, // JWT
		{"Bearer ", token, true},
		{"bearer ", token, true},
		{"BEARER ", token, true},
		{"-----BEGIN ", privateKey, false},
	}
}

func like(expr string) rest {
	re := regexp.MustCompile(`^(?:` + expr + `)`)
	return func(after []byte) int { return len(re.Find(after)) }
}

func digits(r rest) rest {
	return func(after []byte) int {
		n := r(after)
		if !bytes.ContainsAny(after[:n], "0123456789") {
			return 0
		}
		return n
	}
}

var (
	keyTitle = like(`[A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----`)
	keyBody  = like(`(\s*[A-Za-z0-9+/=]{16,})*`)
	keyEnd   = like(`-----END [A-Z0-9 ]*-----`)
)

// keySize is the most bytes in which the end of a private key is looked for.
const keySize = 16 << 10

// privateKey finds the key up to its last line; of one that is cut, what looks like it.
func privateKey(after []byte) int {
	title := keyTitle(after)
	if title == 0 {
		return 0
	}
	body := after[title:]
	if end := bytes.Index(body[:min(len(body), keySize)], []byte("-----END ")); end >= 0 {
		if n := keyEnd(body[end:]); n > 0 {
			return title + end + n
		}
	}
	if n := keyBody(body); n > 0 {
		return title + n
	}
	return 0
}

// findPatterns appends where keys stand in b. The spans may overlap.
func findPatterns(patterns []pattern, b []byte, before byte, found []span) []span {
	for _, p := range patterns {
		for i := 0; ; {
			n := bytes.Index(b[i:], []byte(p.head))
			if n < 0 {
				break
			}
			from, last := i+n, before
			i = from + len(p.head)
			if from > 0 {
				last = b[from-1]
			}
			if isWord(last) && p.head[0] != '-' {
				continue // it is the end of a word, such as task-
			}
			size := p.rest(b[i:])
			if size == 0 {
				continue
			}
			s := span{from, i + size}
			if p.keep {
				s.from = i
			}
			found = append(found, s)
			i = s.to
		}
	}
	return found
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
