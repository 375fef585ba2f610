package sandbox_test

import (
	"os"
	"testing"
)

// secretPlaces are where the programs of a user keep what nobody else should read, below
// the home folder.
var secretPlaces = []string{
	".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".gnupg/private-keys-v1.d/k",
	".mozilla/firefox/p/logins.json", ".config/google-chrome/Default/Login Data", ".config/chromium/Default/Cookies",
	".docker/config.json", ".kube/config", ".npmrc", ".git-credentials", ".config/gcloud/credentials.db", ".azure/token",
	".cargo/credentials.toml", ".pypirc", ".bash_history", ".local/share/keyrings/login.keyring",
	".local/state/skein/sessions/other/journal.jsonl", ".config/skein/config.yaml", ".cache/skein/copies/other/f",
}

// What the user keeps to himself a command does not read, by whatever name.
func TestHostileSecrets(t *testing.T) {
	var rows []attempt
	for _, place := range secretPlaces {
		rows = append(rows, attempt{name: place, want: "nothing", script: `cat "$PLANTED/` + place + `"| grep planted || { echo found nothing; exit 1; }`})
	}
	const system = "the file is root's"
	rows = append(rows, []attempt{
		{name: "by link", want: "ENOENT", script: "d=$(mktemp -d); ln -s $PLANTED/.ssh $d/soft && cat $d/soft/id_ed25519"},
		{name: "by hard link", want: "EROFS ENOENT", script: "d=$(mktemp -d -p .); ln $PLANTED/.ssh/id_ed25519 $d/hard && cat $d/hard"},
		{name: "by the root of a process", want: "EACCES", script: "for p in self $PPID 1; do cat /proc/$p/root$PLANTED/.ssh/id_ed25519 && exit 0; done; exit 1"},
		{name: "by search", want: "nothing", script: "grep -rs 'planted secret' $PLANTED/ || { echo found nothing; exit 1; }"},
		{name: "by renaming around it", want: "ENOENT", script: "mv $PLANTED/.ssh $PLANTED/s && cat $PLANTED/s/id_ed25519"},
		{name: "by backup", want: "nothing", script: "tar -C $PLANTED -cf - .ssh | tar -tf - | grep id_ed25519 || { echo found nothing; exit 1; }"},
		{name: "passwords", want: "EACCES ENOENT", script: "grep -q . /etc/shadow || { echo found nothing; exit 1; }", root: system},
		{name: "passwords of groups", want: "EACCES ENOENT", script: "grep -q . /etc/gshadow || { echo found nothing; exit 1; }", root: system, absent: missing("/etc/gshadow")},
		{name: "what lies far", want: "ENOENT", script: "cat $FAR/f"},
	}...)
	hostile(t, rows)
}

// missing says so if there is no such path on this machine.
func missing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "this machine has no " + path
	}
	return ""
}
