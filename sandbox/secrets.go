package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// copiesOfHome is hidden below the user's home folders like a secret, since agents must not see
// each other's copies. It is none: those copies are workspaces.
const copiesOfHome = ".cache/skein"

// secretsOfHome are hidden below every home folder known to belong to the user.
var secretsOfHome = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".vault-token",
	".git-credentials", ".config/git/credentials", ".config/gh", ".config/glab-cli", ".config/hub", ".config/gcloud", ".config/op",
	".config/containers", ".config/rclone", ".config/doctl", ".config/skein",
	".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".terraform.d",
	".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".composer/auth.json", ".pub-cache/credentials.json",
	".ivy2/.credentials", ".bundle/config", ".nvm/.npmrc", ".yarnrc.yml", ".oci", ".nuget/NuGet/NuGet.Config", ".android/debug.keystore",
	".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".local/share/skein", ".local/state/skein",
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".local/share/fish/fish_history",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
	".config/opera", ".config/vivaldi", "snap/firefox", "snap/chromium", ".var/app",
}

// secretsOfSystem lie in what boxes show of the system. To a user who is root on the host, file
// modes hide nothing.
var secretsOfSystem = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/security/opasswd",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_dsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
	"/etc/ssl/private", "/etc/krb5.keytab", "/etc/docker", "/etc/kubernetes",
	"/sys/kernel/debug", "/sys/kernel/tracing", "/sys/firmware", "/sys/fs/bpf",
}

// socketVariables name sockets and files of agents in the environment of this process.
var socketVariables = []string{"SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "KUBECONFIG", "NETRC"}

// userHomes lists the home folders of the user, as far as they are known.
//
// What the policy says of the user's home is not trusted alone: a policy that forgot it
// would show the keys. Hence this process's own environment and the user database count too.
func userHomes(env []string) []string {
	homes := []string{lookup(env, "HOME")}
	if home := os.Getenv("HOME"); !slices.Contains(homes, home) {
		homes = append(homes, home)
	}
	if u, err := user.Current(); err == nil && !slices.Contains(homes, u.HomeDir) {
		homes = append(homes, u.HomeDir)
	}
	return homes
}

// secrets lists the host paths that no box shows, whether they exist or not.
func secrets(env []string) []string {
	homes := userHomes(env)
	var list []string
	for _, home := range homes {
		if !filepath.IsAbs(home) {
			continue
		}
		list = append(list, filepath.Join(home, copiesOfHome))
		for _, name := range secretsOfHome {
			list = append(list, filepath.Join(home, name))
		}
	}
	list = append(list, secretsOfSystem...)
	for _, name := range socketVariables {
		list = append(list, socketPlaces(os.Getenv(name), homes)...)
	}
	for i, path := range list {
		if _, err := os.Lstat(path); err != nil {
			continue // as most of them: one look is less than one at each folder on the way
		}
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			list[i] = resolved
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// socketPlaces finds the paths in the value of a variable: as it is, behind unix: or
// unix:path=, in a list. The folder of each is hidden as well, unless it holds more than that.
func socketPlaces(value string, homes []string) (paths []string) {
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ',' || r == ';' || r == '=' }) {
		path := filepath.Clean(part)
		if !filepath.IsAbs(path) || path == "/" {
			continue
		}
		paths = append(paths, path)
		dir := filepath.Dir(path)
		broad := slices.Contains([]string{"/", "/etc", "/usr", "/var", "/home", "/opt", "/srv", "/mnt", "/var/lib"}, dir)
		for _, home := range homes {
			broad = broad || home != "" && (within(home, dir) || filepath.Dir(dir) == home && !strings.HasPrefix(filepath.Base(dir), "."))
		}
		if !broad {
			paths = append(paths, dir)
		}
	}
	return paths
}

// homesOf lists the homes of the user, without symbolic links.
func homesOf(env []string) (list []string) {
	for _, home := range userHomes(env) {
		if found, err := filepath.EvalSymlinks(home); err == nil && filepath.IsAbs(found) && !slices.Contains(list, found) {
			list = append(list, found)
		}
	}
	return list
}
