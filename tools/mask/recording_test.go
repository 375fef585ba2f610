package mask_test

import (
	"strings"
	"testing"

	"skein/tools/mask"
)

func TestRecording(t *testing.T) {
	m := mask.New([]string{"known-secret", "********", "[key masked]", "Bearer sk-0123456789abcdefghij"}).Recording()
	pem := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A1b2", 12) + "\n-----END PRIVATE KEY-----"
	for _, tt := range []struct{ in, want string }{
		{"KEY=sk-0123456789abcdefghij.", "KEY=[*********************]."},
		{"Bearer 0123456789abcdef==", "Bearer [****************]"},
		{"a\n" + pem + "\nb", "a\n[key masked]\nb"},
		{"a known-secret", "a [secret masked]"},
		{"Bearer sk-0123456789abcdefghij", "[secret masked]"}, // known, whatever it looks like
		{"a [secret masked] from before", "a [secret masked] from before"},
		{"********, [key masked]", "********, [key masked]"},
	} {
		got, want := string(m.Written([]byte(tt.in))), tt.want
		if got != want {
			t.Errorf("Written(%s) = %s, want %s", tt.in, got, want)
		}
		if again := string(m.Written([]byte(got))); again != got {
			t.Errorf("Written(%s) = %s: masking twice differs", got, again)
		}
		// In JSON of any depth it is the same.
		in := tt.in
		for depth := range 3 {
			in, want = quoted(in), quoted(want)
			if got := string(m.Written([]byte(in))); got != want {
				t.Errorf("at depth %d Written(%s) = %s, want %s", depth+1, in, got, want)
			}
		}
	}
}
