package mask_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/tools/mask"
)

const secret = `pa"ss<&>wo\rd/é😀`

// A secret that is escaped in the middle must not slip through, whatever wrote it.
func TestKnownUndoesEscapes(t *testing.T) {
	m := mask.New([]string{secret, "notasecret"})
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a " + secret + " b", "a [secret masked] b"},
		{"JSON", `"a pa\"ss<&>wo\\rd/é😀 b"`, `"a [secret masked] b"`},
		{"JSON for HTML", `"pa\"ss\u003c\u0026\u003ewo\\rd/é😀"`, `"[secret masked]"`},
		{"JSON of ASCII, with slashes escaped", `"pa\u0022ss<&>wo\u005Crd\/\u00e9\ud83d\ude00"`, `"[secret masked]"`},
		{"JSON in JSON", `{"raw":"{\"a\":\"pa\\\"ss\\u003c\\u0026\\u003ewo\\\\rd/é😀\"}"}`, `{"raw":"{\"a\":\"[secret masked]\"}"}`},
		{"JSON in JSON in JSON", `"\"pa\\\\\\\"ss<&>wo\\\\\\\\rd/é😀\""`, `"\"[secret masked]\""`},
		{"every character escaped", `"\u006eotasecre\u0074"`, `"[secret masked]"`},
		{"escaped in a log line, which is no JSON", `key=\u006eotasecret.`, `key=[secret masked].`},
		{"after an escape", `"\nnotasecret\n"`, `"\n[secret masked]\n"`},
		{"after what only looks like an escape", `C:\notasecret\n`, `C:[secret masked]\n`},
		{"the same in JSON", `"C:\\notasecret\\n"`, `"C:[secret masked]\\n"`},
		{"URL", "?k=pa%22ss%3C%26%3ewo%5Crd%2F%C3%A9%F0%9F%98%80&x", "?k=[secret masked]&x"},
		{"base64", "Basic " + base64.StdEncoding.EncodeToString([]byte("u:notasecret")) + ".", "Basic dTp[secret masked]."},
		{"twice", "notasecretnotasecret", "[secret masked][secret masked]"},
		{"what is no secret", "notasecre t, NOTASECRET", "notasecre t, NOTASECRET"},
		{"a key it does not hold", "sk-proj-0123456789abcdef0123", "sk-proj-0123456789abcdef0123"},
	} {
		if got := m.Known(tt.in); got != tt.want {
			t.Errorf("%s: Known(%s) = %s, want %s", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestKnownInOverlaps(t *testing.T) {
	m := mask.New([]string{"abcdefgh", "efghijkl", "abcdefghijklmnop", "12345678"})
	for _, tt := range []struct{ in, want string }{
		{"-abcdefgh-", "-[secret masked]-"},
		{"-abcdefghijkl-", "-[secret masked]-"},
		{"-abcdefghijklmnop-", "-[secret masked]-"},
		{`{"n":-12345678.5,"m":1234567}`, `{"n":"[secret masked]","m":1234567}`},
		{`{"12345678":[12345678,"12345678"]}`, `{"[secret masked]":["[secret masked]","[secret masked]"]}`},
		{"n=12345678", "n=[secret masked]"},
	} {
		if got := m.Known(tt.in); got != tt.want {
			t.Errorf("Known(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestNewLeavesOutWhatWouldHideEverything(t *testing.T) {
	m := mask.New([]string{"", "short", "        ", "secret masked"})
	if in := "a short secret masked line"; m.Known(in) != in {
		t.Errorf("Known(%q) = %q, want it unchanged", in, m.Known(in))
	}
}

func TestWrittenPatterns(t *testing.T) {
	m := mask.New(nil)
	long := strings.Repeat("A1b2", 12)
	pem := "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + long + "\n" + long + "\nAbc=\n-----END RSA PRIVATE KEY-----"
	for _, tt := range []struct{ in, want string }{
		{"key sk-proj-" + long + ".", "key [secret masked]."},
		{"(sk-ant-api03-abc_DEF-0123456789)", "([secret masked])"},
		{"task-0123456789-0123456789 risk-0123456789-0123456789", "task-0123456789-0123456789 risk-0123456789-0123456789"},
		{"sk-folding-cube-animation-name", "sk-folding-cube-animation-name"},
		{"GITHUB=ghp_" + long, "GITHUB=[secret masked]"},
		{"github_pat_" + long, "[secret masked]"},
		{"AKIAIOSFODNN7EXAMPLE", "[secret masked]"},
		{"AKIAIOS", "AKIAIOS"},
		{"xoxb-123456789012-abcdef", "[secret masked]"},
		{"?key=AIza" + long[:35], "?key=[secret masked]"},
		{"Authorization: Bearer " + long, "Authorization: Bearer [secret masked]"},
		{"the bearer of this letter", "the bearer of this letter"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_", "[secret masked]"},
		{"a\n" + pem + "\nb", "a\n[secret masked]\nb"},
		{"-----BEGIN PRIVATE KEY-----\n" + long + "\n" + long, "[secret masked]"}, // cut
		{"a text on -----BEGIN PRIVATE KEY----- lines", "a text on -----BEGIN PRIVATE KEY----- lines"},
		{`{"k":"a\nsk-proj-` + long + `\n"}`, `{"k":"a\n[secret masked]\n"}`},
		{`{"k":"sk\u002dproj-` + long + `"}`, `{"k":"[secret masked]"}`},
		{`{"k":` + quoted(quoted(pem)) + `}`, `{"k":"\"[secret masked]\""}`},
		{"%3Dsk-proj-" + long, "%3D[secret masked]"},
		{"nothing to hide", "nothing to hide"},
	} {
		if got := string(m.Written([]byte(tt.in))); got != tt.want {
			t.Errorf("Written(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a text always encodes
	return string(b)
}

// inner is a text as it stands between the quotes of JSON.
func inner(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	_ = enc.Encode(s) // a text always encodes
	q := strings.TrimSpace(b.String())
	return q[1 : len(q)-1]
}

func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x80 && !strings.ContainsRune("<>&'\"\\/\n", r) {
			b.WriteRune(r)
		} else if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// secrets are texts without brackets: those could join with the mark.
var secrets = rapid.StringOfN(rapid.RuneFrom([]rune("abnrtu01%+/\\\"'<>&=,: \n\té😀-_")), 8, 24, -1).
	Filter(func(s string) bool {
		plain := strings.ReplaceAll(s, `\`, "") // too little to be found but as it stands
		return len(strings.TrimSpace(s)) == len(s) && len(plain) >= 8 && !escape.MatchString(s)
	})

// escape finds what is an escape itself: a secret with one in it is found as it stands, and
// in JSON, but not where that one is escaped again.
var escape = regexp.MustCompile(`%[01ab]{2}|u[01ab]{4}|u[01ab]*$`)

func form(t *rapid.T, s string) string {
	for range rapid.IntRange(0, 3).Draw(t, "depth") {
		switch rapid.SampledFrom([]string{"json", "html", "ascii", "url", "path"}).Draw(t, "escape") {
		case "json":
			s = inner(s, false)
		case "html":
			s = inner(s, true)
		case "ascii":
			s = ascii(s)
		case "url":
			if !strings.ContainsAny(s, `%\+ `) { // a text of URLs is escaped once, and first
				s = url.QueryEscape(s)
			}
		case "path":
			if !strings.ContainsAny(s, `%\`) {
				s = url.PathEscape(s)
			}
		}
	}
	return s
}

func TestNoSecretIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(secrets, 1, 3).Draw(t, "secrets")
		m := mask.New(list)
		around := rapid.StringOfN(rapid.RuneFrom([]rune("xyz \\\"\n%0")), 0, 6, -1)
		var in strings.Builder
		var hidden []string
		for _, s := range list {
			hidden = append(hidden, form(t, s))
			in.WriteString(around.Draw(t, "around") + hidden[len(hidden)-1])
		}
		in.WriteString(around.Draw(t, "around"))
		for _, got := range []string{m.Known(in.String()), string(m.Written([]byte(in.String())))} {
			for i, h := range hidden {
				if strings.Contains(got, h) || strings.Contains(got, list[i]) {
					t.Fatalf("masked %q is %q: holds %q", in.String(), got, h)
				}
			}
			if again := m.Known(got); again != got {
				t.Fatalf("Known(%q) = %q: masking twice differs", got, again)
			}
		}
	})
}

func TestBase64IsMasked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := secrets.Draw(t, "secret")
		before, after := rapid.StringN(0, 9, 9).Draw(t, "before"), rapid.StringN(0, 9, 9).Draw(t, "after")
		enc := rapid.SampledFrom([]*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}).Draw(t, "encoding")
		in := enc.EncodeToString([]byte(before + s + after))
		got := mask.New([]string{s}).Known(in)
		head, _, found := strings.Cut(got, mask.Marker)
		if !found || len(head) > (len(before)*8+5)/6+1 {
			t.Fatalf("Known(base64 of %q, %q, %q = %s) = %s", before, s, after, in, got)
		}
	})
}

func TestTextWithoutSecretIsUnchanged(t *testing.T) {
	m := mask.New([]string{"XXXXXXXXXX", "0123456789"})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOf(rapid.RuneFrom([]rune("abcsk-eyJ.ghp_ \\\"\n{}[]:,%é😀/+="))).Draw(t, "text")
		if got := m.Known(in); got != in {
			t.Fatalf("Known(%q) = %q, want it unchanged", in, got)
		}
		if got := string(m.Written([]byte(in))); got != in {
			t.Fatalf("Written(%q) = %q, want it unchanged", in, got)
		}
	})
}

// JSON stays valid, and so does JSON that stands in strings of it; no decoded string holds
// the secret.
func TestJSONStaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(secrets, rapid.StringMatching(`[1-9][0-9]{9}`)).Draw(t, "secret")
		m := mask.New([]string{s})
		piece := rapid.OneOf(rapid.Just(s), rapid.StringOfN(rapid.RuneFrom([]rune("xn\\\"%0{}:,\n")), 0, 5, -1))
		text := func() string { return piece.Draw(t, "a") + piece.Draw(t, "b") + piece.Draw(t, "c") }
		value := map[string]any{"text": text(), text(): []any{text(), json.Number("12345678901"), nil, true}}
		if s[0] >= '1' && s[0] <= '9' && json.Valid([]byte(s)) {
			value["number"] = json.RawMessage(s)
		}
		for range rapid.IntRange(0, 2).Draw(t, "depth") {
			b, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			value = map[string]any{"json": string(b)}
		}
		b, err := json.MarshalIndent(value, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		got := m.Written(b)
		checkJSON(t, got, s, false)
		if again := m.Written(got); !bytes.Equal(again, got) {
			t.Fatalf("Written(%s) = %s: masking twice differs", got, again)
		}
	})
}

// checkJSON looks for a secret in JSON, in its strings and numbers; in its keys too if asked.
func checkJSON(t *rapid.T, b []byte, secret string, keys bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s is no JSON any more: %v", b, err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if keys {
					walk(k)
				}
				walk(e)
				if k == "json" {
					checkJSON(t, []byte(e.(string)), secret, true)
				}
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case string:
			if strings.Contains(v, secret) {
				t.Fatalf("%s holds %q", b, secret)
			}
		case json.Number:
			walk(v.String())
		}
	}
	walk(v)
}

func TestFromEnviron(t *testing.T) {
	got := mask.FromEnviron([]string{
		"DEEPSEEK_API_KEY=key-of-deepseek", "GH_TOKEN=token-of-github", "DB_PASSWORD=pass=word", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI",
		"OPENAIKEY=key-of-openai", "MY_CREDENTIALS=creds-of-mine", "DATABASE_URL=postgres://u:pass%20word@host/db", "REPO=https://token-of-two@host/r",
		"SHORT_KEY=1234", "KEYBOARD=us-international", "AUTHOR=Somebody Else", "PATH=/usr/bin:/bin", "HOME=/home/somebody", "COMPASS=north-north-west", "SAME_TOKEN=token-of-github", "odd",
	})
	want := []string{"creds-of-mine", "key-of-deepseek", "key-of-openai", "pass word", "pass=word", "token-of-github", "token-of-two", "wJalrXUtnFEMI"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("FromEnviron = %q, want %q", got, want)
	}
}

// A value that could mean something else is no secret, unless its variable holds a key for sure.
func TestFromEnvironLeavesOutWhatIsNone(t *testing.T) {
	for _, tt := range []struct {
		entry string
		want  bool
	}{
		{"POSTGRES_PASSWORD=postgres", false},
		{"DB_PASSWORD=password", false},
		{"SECRET_MODE=disabled", false},
		{"SECRET_MODE=Disabled", false},
		{"SECRET_MODE=DISABLED", false},
		{"PASSWORD_STORE_DIR=/home/me", false},
		{"PASSWORD_STORE_DIR=~/passwords", false},
		{"SSH_KEY_FILE=/Users/me/.ssh/id_ed25519", false},
		{"GNOME_KEY_CONTROL=/run/user/1000/keyring", false},
		{"TOKEN_URL=https://example.com/oauth/token", false},
		{"DATABASE_URL=postgres://postgres:postgres@127.0.0.1/db", false},
		{"REPO=https://username@example.com/r", false},
		{"PRIVATE_KEY_COUNT=1234567", false},
		{"DB_PASSWORD=postgres1", true},
		{"DB_PASSWORD=passWord", true},
		{"DB_PASSWORD=12345678", true},
		{"DB_PASSWORD=correcthorsebatterystaple", true},
		{"TOTP_SECRET=JBSWYDPEHPKXPABC", true},
		{"AWS_SECRET_ACCESS_KEY=/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", true},
		{"TOKEN_URL=https://example.com/hook?token=abc", true},
		{"SECRET_HOOK=https://example.com/hooks/T1/Ab3dEf6hIj9lMn2pQr5t", true},
		{"DATABASE_URL=postgres://u:s3cretly@127.0.0.1/db", true},
		{"OUR_API_KEY=disabled", true},
		{"OUR_API_KEY=/home/me", true},
	} {
		if got := mask.FromEnviron([]string{tt.entry}, "OUR_API_KEY"); len(got) == 1 != tt.want {
			t.Errorf("FromEnviron(%s) = %q, want a secret: %v", tt.entry, got, tt.want)
		}
	}
}

// The keys of what is written are ours, whatever a secret looks like; those of JSON in a text
// are data.
func TestWrittenKeepsKeys(t *testing.T) {
	m := mask.New([]string{"max_tokens"})
	in := `{"max_tokens" : 5, "a": [{"max_tokens":"max_tokens"}], "text":"{\"max_tokens\":\"max_tokens\"}", "sk-0123456789abcdef0123": 1}`
	want := `{"max_tokens" : 5, "a": [{"max_tokens":"[secret masked]"}], "text":"{\"[secret masked]\":\"[secret masked]\"}", "sk-0123456789abcdef0123": 1}`
	if got := string(m.Written([]byte(in))); got != want {
		t.Errorf("Written(%s) = %s, want %s", in, got, want)
	}
}

func BenchmarkWrittenClean(b *testing.B) {
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf("secret-number-%d-%d", i, i*i))
	}
	m := mask.New(list)
	line := []byte(`{"text":"` + strings.Repeat(`a line of code := \"with quotes\" and words\n`, 20_000) + `"}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		m.Written(line)
	}
}
