package keys

import (
	"regexp"
	"strings"
)

// telling are words that tell of a secret in a line, whatever the line's form.
var telling = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|credential|auth|dsn|webhook|private`)

// word is what a secret in such a line may be: long, and without what stands around values.
var word = regexp.MustCompile("[^\\s'\"`,;:={}\\[\\]()<>#|&]{12,}")

// words finds secrets in the lines of a file that are no NAME=value: with a comment behind,
// as YAML or JSON, or spread over several lines between quotes. A word counts if it holds
// both letters and digits; it is better to mask a word too many of such a line.
func words(data []byte) []string {
	var all []string
	open := ""
	for line := range strings.SplitSeq(string(data), "\n") {
		if open == "" && !telling.MatchString(line) {
			continue
		}
		for _, w := range word.FindAllString(line, -1) {
			if strings.ContainsAny(w, "0123456789") && strings.ContainsFunc(w, letter) {
				all = append(all, w)
			}
		}
		open = quoted(line, open)
	}
	return all
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// quoted is the quote that is still open at the end of a line, "" for none.
func quoted(line, open string) string {
	for _, r := range line {
		switch c := string(r); {
		case open == "" && (c == `"` || c == "'"):
			open = c
		case c == open:
			open = ""
		}
	}
	return open
}
