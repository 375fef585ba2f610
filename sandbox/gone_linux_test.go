package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skein/sandbox"
)

// What goes away while a box is opened, and was only found, is not there. What was asked for
// by name is missed, but nobody is told that there are no boxes.
func TestOpenWhileFoldersComeAndGo(t *testing.T) {
	dir := place(t)
	churned := filepath.Join(dir, "churned")
	p := sandbox.Policy{Workspace: t.TempDir(), Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}}
	open(t, p) // or skip
	for name, change := range map[string]func(p *sandbox.Policy){
		"on PATH":   func(p *sandbox.Policy) { p.Env = []string{"HOME=" + dir, "PATH=" + churned + ":" + os.Getenv("PATH")} },
		"a cache":   func(p *sandbox.Policy) { p.Env = append(p.Env, "GOCACHE="+churned) },
		"modules":   func(p *sandbox.Policy) { p.Env = append(p.Env, "GOMODCACHE="+churned) },
		"asked for": func(p *sandbox.Policy) { p.Readable = []string{churned} },
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			change(&p)
			var wg sync.WaitGroup
			begun, done := make(chan struct{}), make(chan struct{})
			made := 0
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if os.MkdirAll(filepath.Join(churned, "cache/download"), 0o755) == nil && os.Rename(churned, churned+"-gone") == nil && os.RemoveAll(churned+"-gone") == nil {
						if made++; made == 1 {
							close(begun)
						}
					}
				}
			})
			<-begun
			opened := 0
			for range 20 {
				box, err := sandbox.Open(t.Context(), p)
				if err == nil {
					opened++
					_ = box.Close()
				}
				if errors.Is(err, sandbox.ErrNoBox) || err != nil && p.Readable == nil {
					t.Errorf("Open = %v, want a box, or none for want of what was asked for", err)
					break
				}
			}
			close(done)
			wg.Wait()
			if made == 0 || opened == 0 && p.Readable == nil {
				t.Errorf("%d times made, %d boxes opened: nothing was tried", made, opened)
			}
		})
	}
}

// What the host mounts in a folder of the system's may lie under a later mount.
func TestOpenWhereMountsAreCovered(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	needProgram(t, "unshare")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	for name, script := range map[string]string{
		"control": `exec "$0" "$1"`,
		"covered": `mkdir "$2/etc" && cp /etc/passwd /etc/group "$2/etc" && d=$(ls -d /etc/*/ | head -n 1) && mount -t tmpfs none $d && mount --bind "$2/etc" /etc && ! ls $d 2>/dev/null && exec "$0" "$1"`,
	} {
		cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "bash", "-c", script, exe, t.TempDir(), above)
		cmd.Env = append(os.Environ(), helper+"=open")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: Open: %v\n%s", name, err, out)
		}
	}
}

// Where no overlay can be made of what is hidden in, it is shown with mounts over what stands
// there now, wherever on the host it lies.
func TestHiddenWithoutOverlay(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	needProgram(t, "unshare")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The kernel makes no overlay of one that is made of one.
	const script = `mount -t tmpfs none /run && cd /run && mkdir one two three x y && echo open >one/open && echo key >one/key && echo two >two/two && echo deep >three/three &&
		mount -t overlay -o lowerdir=/run/one:/run/two none y && mount -t overlay -o lowerdir=/run/y:/run/three none x &&
		! mount -t overlay -o lowerdir=/run/x:/run/one none y 2>/dev/null && exec "$0" "$1" "/run/$2" "/run/$2/key" /run/absent`
	for folder, want := range map[string]string{"one": "open:open\n", "x": "open:open\nthree:deep\ntwo:two\n"} {
		cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "bash", "-c", script, exe, t.TempDir(), folder)
		cmd.Env = append(os.Environ(), helper+"=look")
		out, err := cmd.CombinedOutput()
		lines := strings.SplitAfter(string(out), "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, ""); err != nil || got != want {
			t.Errorf("%s below /run: %q, %v, want %q", folder, got, err, want)
		}
	}
}
