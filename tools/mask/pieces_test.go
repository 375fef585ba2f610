package mask_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/tools/mask"
)

// Wherever a text is cut, no twelve bytes of a secret in a row are left.
func TestCutLeavesNoPieceOfASecret(t *testing.T) {
	const secret = "ZqPlantedSecretValue-0123456789-abcdefghijklmnop"
	m := mask.New([]string{secret})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("xyZq-09 \n")), 0, 40, -1).Draw(t, "before") + secret +
			rapid.StringOfN(rapid.RuneFrom([]rune("xyZq-09 \n")), 0, 40, -1).Draw(t, "after")
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := rapid.IntRange(from, len(text)).Draw(t, "to")
		got := m.Cut(m.Known(text[from:to]))
		for i := 0; i+12 <= len(secret); i++ {
			if strings.Contains(got, secret[i:i+12]) {
				t.Fatalf("Cut(%q) = %q, which holds %q", text[from:to], got, secret[i:i+12])
			}
		}
	})
}

func TestCutFindsWrappedBase64(t *testing.T) {
	secret := strings.Repeat("k3y-", 25)
	plain := base64.StdEncoding.EncodeToString([]byte("TOKEN=" + secret + "\n"))
	var wrapped []string
	for len(plain) > 76 {
		wrapped, plain = append(wrapped, plain[:76]), plain[76:]
	}
	text := strings.Join(append(wrapped, plain), "\n")
	m := mask.New([]string{secret})
	got := m.Cut(m.Known(text))
	left := strings.ReplaceAll(strings.ReplaceAll(got, mask.Marker, ""), "\n", "")
	if len(left) > 40 {
		t.Errorf("of %d characters of base64 %d are left: %q", len(text), len(left), got)
	}
}

func TestCutLeavesOtherTextsAlone(t *testing.T) {
	m := mask.New([]string{"short-secret", "ZqPlantedSecretValue-0123456789"})
	for _, text := range []string{"", "short", "a text that has nothing to do with it", "ZqPlantedSe", "short-secr"} {
		if got := m.Cut(text); got != text {
			t.Errorf("Cut(%q) = %q", text, got)
		}
	}
}
