package keys_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/cmd/internal/keys"
)

func TestSecretsOfOddLines(t *testing.T) {
	for line, secret := range map[string]string{
		"COMMENT_TOKEN=abc123def456ghi # note":                        "abc123def456ghi",
		`export QUOTED_TOKEN="abc123def456ghi" # note`:                "abc123def456ghi",
		"SPACED_TOKEN = abc123def456ghi":                              "abc123def456ghi",
		"yaml_token: abc123def456ghi":                                 "abc123def456ghi",
		`JSON={"api_key":"abc123def456ghi"}`:                          "abc123def456ghi",
		"DB_PWD=abc123def456ghi":                                      "abc123def456ghi",
		"PRIVATE=\"line one\nabc123def456ghi\nend\"":                  "abc123def456ghi",
		"\ufeffBOM_TOKEN=abc123def456ghi":                             "abc123def456ghi",
		strings.Repeat("# pad\n", 20_000) + "A_TOKEN=abc123def456ghi": "abc123def456ghi",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := keys.Secrets(dir, nil); !slices.Contains(got, secret) {
			t.Errorf("Secrets of %.60q = %q, want %q among them", line, got, secret)
		}
	}
}

func TestSecretsLeaveOrdinaryLinesAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("DB_HOST=db1.internal.example\nPORT=8080\nNAME=\"my service 2\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keys.Secrets(dir, nil); len(got) > 0 {
		t.Errorf("Secrets = %q, want none", got)
	}
}
