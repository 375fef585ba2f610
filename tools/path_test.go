package tools_test

import (
	"slices"
	"testing"

	"skein/tools"
)

func TestName(t *testing.T) {
	ws := tools.Workspace{Path: "/work/copy", Alias: "/home/me/project"}
	for in, want := range map[string]string{
		"a.go":                    "a.go",
		"./a//b/../c.go":          "a/c.go",
		"dir/":                    "dir",
		".":                       ".",
		"a/..":                    ".",
		"..a":                     "..a",
		"/work/copy":              ".",
		"/work/copy/":             ".",
		"/work/copy/a b.go":       "a b.go",
		"/work/copy/x/../a":       "a",
		"/home/me/project/a.go":   "a.go",
		"~/a":                     "~/a",
		"":                        "",
		"..":                      "",
		"../copy/a":               "",
		"a/../../b":               "",
		"/":                       "",
		"/work":                   "",
		"/work/copyright":         "",
		"/work/copy/../other":     "",
		"/home/me/project2/a.go":  "",
		"/proc/self/root/etc":     "",
		"a\x00b":                  "",
		"bad\xffname":             "",
		"/work/copy/../copy/a.go": "a.go",
	} {
		got, err := ws.Name(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("Name(%q) = %q, %v; want %q", in, got, err, want)
		}
		if h, ok := err.(interface{ Hint() string }); err != nil && (!ok || h.Hint() == "") {
			t.Errorf("Name(%q) = %v without a next step", in, err)
		}
	}
	if got, err := (tools.Workspace{Path: "/"}).Name("/etc/hosts"); got != "etc/hosts" || err != nil {
		t.Errorf("Name below / = %q, %v", got, err)
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"a/b c.go":  "a/b c.go",
		"é":         "é",
		"a\nb":      `"a\nb"`,
		"a\x1b[2K":  `"a\x1b[2K"`,
		"a\u202eb":  `"a\u202eb"`,
		"bad\xffid": `"bad\xffid"`,
	} {
		if got := tools.Show(in); got != want {
			t.Errorf("Show(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"main.go", "man.go", "net/retry.go", "README.md", "x"}
	for in, want := range map[string][]string{
		"mian.go":     {"man.go", "main.go"},
		"readme.md":   {"README.md"},
		"net/rety.go": {"net/retry.go"},
		"y":           {"x"},
		"storage.go":  nil,
	} {
		if got := tools.Nearest(in, names, 2); !slices.Equal(got, want) {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}
