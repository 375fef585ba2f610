package sandbox_test

import "testing"

// caps is why some controls need root.
const caps = "an ordinary user has not the capability for it"

// Whatever way a command takes to a file outside of its workspace, it stays as it is.
func TestHostileFiles(t *testing.T) {
	hostile(t, []attempt{
		{name: "write", script: "echo x > $OUT/f"},
		{name: "append", script: "echo x >> $OUT/f"},
		{name: "create", script: "echo x > $OUT/new"},
		{name: "folder", script: "mkdir $OUT/new"},
		{name: "pipe", script: "mkfifo $OUT/new"},
		{name: "socket", script: "try bind $OUT/new"},
		{name: "truncate", script: "try truncate $OUT/f"},
		{name: "truncate an open file", script: "exec 3<$OUT/f; truncate -s 0 /proc/self/fd/3"},
		{name: "write an open file", script: "exec 3<$OUT/f; echo x > /proc/self/fd/3"},
		{name: "write what lies far", script: "echo x > $FAR/f"},
		{name: "write by the root of a process", script: "for p in self 1 $PPID; do echo x > /proc/$p/root$OUT/f && exit 0; done; exit 1"},
		{name: "write by a folder's handle", script: "cd $OUT && echo x > f"},
		{name: "map", script: "try map $OUT/f"},
		{name: "punch a hole", script: "try punch $OUT/f"},
		{name: "unnamed file", script: "try tmpfile $OUT"},
		{name: "mode", script: "chmod 600 $OUT/f"},
		{name: "mode of a program", script: "chmod u+s $OUT/x"},
		{name: "mode by handle", script: "try chmodhandle $OUT/f"},
		{name: "owner", script: "chown $(id -u) $OUT/f"},
		{name: "owner of a link", script: "chown -h $(id -u) $OUT/l"},
		{name: "times", script: "touch -d 2001-01-01 $OUT/f"},
		{name: "times of a folder", script: "touch $OUT/d"},
		{name: "attribute", script: "try setxattr $OUT/f"},
		{name: "attribute of a folder", script: "try setxattr $OUT/d"},
		{name: "flags", script: "try flags $OUT/f"},
		{name: "rename", script: "mv $OUT/f $OUT/g"},
		{name: "move in", script: "mv $OUT/f f"},
		{name: "move over", script: "cp README.md /tmp/m && mv -f /tmp/m $OUT/f"},
		{name: "exchange", script: "try exchange $OUT/f $OUT/x"},
		{name: "remove", script: "rm -f $OUT/f"},
		{name: "remove a folder", script: "rm -r $OUT/d"},
		{name: "hard link in, then write", script: "rm -f hard; ln $OUT/f hard && echo x > hard"},
		{name: "hard link by handle", script: "rm -f hard; try linkhandle $OUT/f hard && echo x > hard"},
		{name: "hard link out", script: "ln README.md $OUT/hard"},
		{name: "symlink, then write", script: "d=$(mktemp -d); ln -s $OUT/f $d/soft && echo x > $d/soft"},
		{name: "symlink to a folder, then create", script: "d=$(mktemp -d); ln -s $OUT $d/soft && echo x > $d/soft/new"},
		{name: "symlink of the workspace, then write", script: "ln -sfn $OUT/f soft && echo x > soft"},
		{name: "open by file handle", script: "try byhandle $OUT/f", root: caps},
		{name: "device", script: "mknod $OUT/null c 1 3 && echo x > $OUT/null", root: caps},
		{name: "device of one's own", script: "d=$(mktemp -d); mknod $d/null c 1 3 && echo x > $d/null", root: caps},
		{name: "system", script: "echo x > /etc/skein-test-new", control: "echo x > /etc/skein-test-new; rm /etc/skein-test-new", root: caps},
		{name: "time of the system's file", script: "touch -c /etc/passwd", control: "touch -c -r /etc/passwd /etc/passwd", root: caps},
		{name: "shared memory", script: "test -w /dev/shm/$(basename $FAR) && echo x > /dev/shm/$(basename $FAR) || { echo found nothing; exit 1; }", control: "touch /dev/shm/x.$$ && rm /dev/shm/x.$$"},
	})
}

// What somebody outside obeys is closed to all, in a workspace that may be written, too.
func TestHostileGit(t *testing.T) {
	hostile(t, []attempt{
		{name: "hook", script: "echo exit > .git/hooks/pre-commit"},
		{name: "hooks", script: "mv .git/hooks .git/old"},
		{name: "configuration", script: "git config core.fsmonitor /bin/true"},
		{name: "configuration, written", script: "echo x >> .git/config"},
		{name: "attributes", script: "echo '* filter=x' > .git/info/attributes"},
		{name: "head", script: "echo ref: refs/heads/x > .git/HEAD"},
		{name: "index", script: "touch .git/index"},
		{name: "object", script: "echo x | git hash-object -w --stdin"},
		{name: "stage", script: "echo x > /tmp/x; git --work-tree=/tmp add /tmp/x"},
		{name: "remove", script: "rm -rf .git"},
		{name: "rename", script: "mv .git g"},
		{name: "exchange", script: "try exchange .git sub"},
		{name: "mode", script: "chmod 700 .git"},
		{name: "attribute", script: "try setxattr .git/config"},
		{name: "hard link, then write", script: "rm -f hard; ln .git/config hard && echo x > hard"},
		{name: "symlink, then write", script: "d=$(mktemp -d); ln -s $PWD/.git/config $d/soft && echo x > $d/soft"},
		{name: "by another name of the folder", script: "echo x >> /proc/self/cwd/.git/config"},
		{name: "inner repository", script: "git -C libs/inner config core.fsmonitor /bin/true"},
		{name: "inner repository's hook", script: "echo exit > libs/inner/.git/hooks/pre-commit"},
		{name: "inner repository moved", script: "mv libs/inner/.git g"},
		{name: "settings read", script: "grep planted .skein/config.yaml || { echo found nothing; exit 1; }"},
		{name: "settings written", script: "echo x > .skein/config.yaml"},
		{name: "settings created", script: "echo x > .skein/new"},
		{name: "settings removed", script: "rm -rf .skein"},
		{name: "settings moved", script: "mv .skein s"},
		{name: "settings exchanged", script: "try exchange .skein sub"},
		{name: "settings by link", script: "d=$(mktemp -d); ln -s $PWD/.skein $d/soft && echo x > $d/soft/config.yaml"},
	})
}
