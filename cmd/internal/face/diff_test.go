package face_test

import (
	"testing"

	"skein/cmd/internal/face"
)

func TestDiff(t *testing.T) {
	const diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old \x1b]0;pwned\a\n+new\n same\n"
	const safe = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old \\x1b]0;pwned\\x07\n+new\n same\n"
	if got := face.Diff(diff, false); got != safe {
		t.Errorf("Diff(%q) = %q, want %q", diff, got, safe)
	}
	const coloured = "--- a/f\n+++ b/f\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-old \\x1b]0;pwned\\x07\x1b[0m\n\x1b[32m+new\x1b[0m\n same\n"
	if got := face.Diff(diff, true); got != coloured {
		t.Errorf("Diff(%q) in colour = %q, want %q", diff, got, coloured)
	}
}
