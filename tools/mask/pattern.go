package mask

import (
	"bytes"
	"strings"
)

// A pattern is a kind of key that is known by how it begins.
type pattern struct {
	head string
	rest rest
	keep bool // the head is no secret and stays
}

// A rest returns how many bytes after the head belong to the key, 0 if it is none. Of what is
// none it also returns how much it has seen, in which no key of this kind can end either: a
// text is not read over and over, whatever it repeats.
type rest func(after []byte) (size, seen int)

// patterns are common kinds of keys. They are narrow: what is masked for its looks alone
// should be a key.
func patterns() []pattern {
	token := atLeast(16, words("._~+/-"), "=")
	github := atLeast(30, words(""), "")
	return []pattern{
		{"sk-", digits(atLeast(20, words("_-"), "")), false}, // other names begin so, without a digit
		{"sk_live_", atLeast(16, words(""), ""), false},
		{"rk_live_", atLeast(16, words(""), ""), false},
		{"ghp_", github, false},
		{"gho_", github, false},
		{"ghu_", github, false},
		{"ghs_", github, false},
		{"ghr_", github, false},
		{"github_pat_", atLeast(20, words("_"), ""), false},
		{"glpat-", atLeast(20, words("_-"), ""), false},
		{"npm_", atLeast(36, words(""), ""), false},
		{"hf_", atLeast(30, words(""), ""), false},
		{"AKIA", atLeast(16, capitals, ""), false},
		{"ASIA", atLeast(16, capitals, ""), false},
		{"AIza", atLeast(35, words("_-"), ""), false},
		{"xox", slack, false},
		{"AGE-SECRET-KEY-1", atLeast(50, capitals, ""), false},
		{"eyJ", jwt, false},
		{"Bearer ", token, true},
		{"bearer ", token, true},
		{"BEARER ", token, true},
		{"-----BEGIN ", privateKey, false},
	}
}

// A class is a kind of bytes.
type class func(c byte) bool

// words are letters, digits and what else is named.
func words(also string) class {
	return func(c byte) bool { return isWord(c) || strings.IndexByte(also, c) >= 0 }
}

func capitals(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }

func titles(c byte) bool { return c == ' ' || capitals(c) }

// run returns how many bytes at the front of b are of the class.
func (is class) run(b []byte) int {
	n := 0
	for n < len(b) && is(b[n]) {
		n++
	}
	return n
}

// atLeast is a run of some bytes, and what may end it.
func atLeast(least int, is class, end string) rest {
	return func(after []byte) (size, seen int) {
		n := is.run(after)
		if n < least {
			return 0, n
		}
		for end != "" && bytes.HasPrefix(after[n:], []byte(end)) {
			n += len(end)
		}
		return n, n
	}
}

func digits(r rest) rest {
	return func(after []byte) (size, seen int) {
		size, seen = r(after)
		if !bytes.ContainsAny(after[:size], "0123456789") {
			return 0, seen
		}
		return size, seen
	}
}

// slack is the rest of xoxb-, and of its relatives.
func slack(after []byte) (size, seen int) {
	if len(after) < 2 || strings.IndexByte("abeoprs", after[0]) < 0 || after[1] != '-' {
		return 0, 0
	}
	size, seen = atLeast(10, words("-"), "")(after[2:])
	if size == 0 {
		return 0, seen
	}
	return size + 2, seen + 2
}

// jwt is a web token: two parts, and a third that its signature is.
func jwt(after []byte) (size, seen int) {
	part := atLeast(8, words("_-"), "")
	size, seen = part(after)
	if size == 0 || size == len(after) || after[size] != '.' {
		return 0, seen
	}
	second, n := part(after[size+1:])
	if second == 0 {
		return 0, seen + 1 + n
	}
	size += 1 + second
	if size < len(after) && after[size] == '.' {
		if n := words("_-").run(after[size+1:]); n > 0 {
			size += 1 + n
		}
	}
	return size, size
}

// keySize is the most bytes in which the end of a private key is looked for.
const keySize = 16 << 10

const dashes = "-----"

// privateKey finds the key up to its last line; of one that is cut, what looks like it.
func privateKey(after []byte) (size, seen int) {
	title := class(titles).run(after)
	name := bytes.TrimSuffix(after[:title], []byte(" BLOCK"))
	if !bytes.HasSuffix(name, []byte("PRIVATE KEY")) || !bytes.HasPrefix(after[title:], []byte(dashes)) {
		return 0, title
	}
	title += len(dashes)
	body := after[title:]
	if n := bytes.Index(body[:min(len(body), keySize)], []byte(dashes)); n >= 0 && bytes.HasPrefix(body[n:], []byte(dashes+"END ")) {
		end := n + len(dashes+"END ")
		end += class(titles).run(body[end:])
		if bytes.HasPrefix(body[end:], []byte(dashes)) {
			end += title + len(dashes)
			return end, end
		}
	}
	if n := lines(body); n > 0 {
		return title + n, title + n
	}
	return 0, title
}

// lines returns how many bytes at the front of b are lines of base64.
func lines(b []byte) int {
	size := 0
	for {
		from := size + class(isSpace).run(b[size:])
		n := words("+/=").run(b[from:])
		if n < 16 {
			return size
		}
		size = from + n
	}
}

// findPatterns appends where keys stand in b. The spans may overlap.
func findPatterns(patterns []pattern, b []byte, found []span) []span {
	for _, p := range patterns {
		for i := 0; ; {
			n := bytes.Index(b[i:], []byte(p.head))
			if n < 0 {
				break
			}
			from := i + n
			i = from + len(p.head)
			if from > 0 && isWord(b[from-1]) && p.head[0] != '-' {
				continue // it is the end of a word, such as task-
			}
			size, seen := p.rest(b[i:])
			if size == 0 {
				i += max(0, seen-len(p.head)+1) // a head may begin at the end of what was seen
				continue
			}
			s := span{from: from, to: i + size, looks: true}
			if p.keep {
				s.from = i
			}
			found = append(found, s)
			i = s.to
		}
	}
	return found
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
