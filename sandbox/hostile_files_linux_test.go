package sandbox_test

import "testing"

// caps is why some controls need root.
const caps = "an ordinary user has not the capability for it"

// Whatever way a command takes to a file outside of its workspace, it stays as it is.
func TestHostileFiles(t *testing.T) {
	hostile(t, []attempt{
		{name: "write", want: "EROFS", script: "echo x > $OUT/f"},
		{name: "append", want: "EROFS", script: "echo x >> $OUT/f"},
		{name: "create", want: "EROFS", script: "echo x > $OUT/new"},
		{name: "folder", want: "EROFS", script: "mkdir $OUT/new"},
		{name: "pipe", want: "EROFS", script: "mkfifo $OUT/new"},
		{name: "socket", want: "EROFS", script: "try bind $OUT/new"},
		{name: "truncate", want: "EROFS", script: "try truncate $OUT/f"},
		{name: "truncate an open file", want: "EROFS", script: "exec 3<$OUT/f; truncate -s 0 /proc/self/fd/3"},
		{name: "write an open file", want: "EROFS", script: "exec 3<$OUT/f; echo x > /proc/self/fd/3"},
		{name: "write what lies far", want: "ENOENT", script: "echo x > $FAR/f"},
		{name: "write by the root of a process", want: "EROFS", script: "for p in self 1 $PPID; do echo x > /proc/$p/root$OUT/f && exit 0; done; exit 1"},
		{name: "write by a folder's handle", want: "EROFS", script: "cd $OUT && echo x > f"},
		{name: "map", want: "EROFS", script: "try map $OUT/f"},
		{name: "punch a hole", want: "EROFS", script: "try punch $OUT/f"},
		{name: "unnamed file", want: "EROFS", script: "try tmpfile $OUT"},
		{name: "mode", want: "EROFS", script: "chmod 600 $OUT/f"},
		{name: "mode of a program", want: "EPERM", script: "chmod u+s $OUT/x"},
		{name: "mode by handle", want: "EROFS", script: "try chmodhandle $OUT/f"},
		{name: "owner", want: "EROFS", script: "chown $(id -u) $OUT/f"},
		{name: "owner of a link", want: "EROFS", script: "chown -h $(id -u) $OUT/l"},
		{name: "times", want: "EROFS", script: "touch -d 2001-01-01 $OUT/f"},
		{name: "times of a folder", want: "EROFS", script: "touch $OUT/d"},
		{name: "attribute", want: "EROFS", script: "try setxattr $OUT/f"},
		{name: "attribute of a folder", want: "EROFS", script: "try setxattr $OUT/d"},
		{name: "flags", want: "EROFS", script: "try flags $OUT/f"},
		{name: "rename", want: "EROFS", script: "mv $OUT/f $OUT/g"},
		{name: "move in", want: "EROFS", script: "mv $OUT/f f"},
		{name: "move over", want: "EROFS", script: "cp README.md /tmp/m && mv -f /tmp/m $OUT/f"},
		{name: "exchange", want: "EROFS", script: "try exchange $OUT/f $OUT/x"},
		{name: "remove", want: "EROFS", script: "rm -f $OUT/f"},
		{name: "remove a folder", want: "EROFS", script: "rm -r $OUT/d"},
		{name: "hard link in, then write", want: "EROFS EXDEV", script: "rm -f hard; ln $OUT/f hard && echo x > hard"},
		{name: "hard link by handle", want: "EROFS EXDEV", script: "rm -f hard; try linkhandle $OUT/f hard && echo x > hard"},
		{name: "hard link out", want: "EROFS", script: "ln README.md $OUT/hard"},
		{name: "symlink, then write", want: "EROFS", script: "d=$(mktemp -d); ln -s $OUT/f $d/soft && echo x > $d/soft"},
		{name: "symlink to a folder, then create", want: "EROFS", script: "d=$(mktemp -d); ln -s $OUT $d/soft && echo x > $d/soft/new"},
		{name: "symlink of the workspace, then write", want: "EROFS", script: "ln -sfn $OUT/f soft && echo x > soft"},
		{name: "open by file handle", want: "EPERM", script: "try byhandle $OUT/f", root: caps},
		{name: "device", want: "EROFS", script: "mknod $OUT/null c 1 3 && echo x > $OUT/null", root: caps},
		{name: "device of one's own", want: "EPERM", script: "d=$(mktemp -d); mknod $d/null c 1 3 && echo x > $d/null", root: caps},
		{name: "system", want: "EROFS", script: "echo x > /etc/skein-test-new", control: "echo x > /etc/skein-test-new; rm /etc/skein-test-new", root: caps},
		{name: "time of the system's file", want: "EROFS", script: "touch -c /etc/passwd", control: "touch -c -r /etc/passwd /etc/passwd", root: caps},
		{name: "shared memory", want: "nothing", script: "test -w /dev/shm/$(basename $FAR) && echo x > /dev/shm/$(basename $FAR) || { echo found nothing; exit 1; }", control: "touch /dev/shm/x.$$ && rm /dev/shm/x.$$"},
	})
}

// What somebody outside obeys is closed to all, in a workspace that may be written, too.
func TestHostileGit(t *testing.T) {
	hostile(t, []attempt{
		{name: "hook", want: "EROFS", script: "echo exit > .git/hooks/pre-commit"},
		{name: "hooks", want: "EROFS", script: "mv .git/hooks .git/old"},
		{name: "configuration", want: "EROFS", script: "git config core.fsmonitor /bin/true"},
		{name: "configuration, written", want: "EROFS", script: "echo x >> .git/config"},
		{name: "attributes", want: "EROFS", script: "echo '* filter=x' > .git/info/attributes"},
		{name: "head", want: "EROFS", script: "echo ref: refs/heads/x > .git/HEAD"},
		{name: "index", want: "EROFS", script: "touch .git/index"},
		{name: "object", want: "EROFS", script: "echo x | git hash-object -w --stdin"},
		{name: "stage", want: "EROFS", script: "echo x > /tmp/x; git --work-tree=/tmp add /tmp/x"},
		{name: "remove", want: "EROFS", script: "rm -rf .git"},
		{name: "rename", want: "EROFS EBUSY", script: "mv .git g"},
		{name: "exchange", want: "EROFS EBUSY", script: "try exchange .git sub"},
		{name: "mode", want: "EROFS", script: "chmod 700 .git"},
		{name: "attribute", want: "EROFS", script: "try setxattr .git/config"},
		{name: "hard link, then write", want: "EROFS EXDEV", script: "rm -f hard; ln .git/config hard && echo x > hard"},
		{name: "symlink, then write", want: "EROFS", script: "d=$(mktemp -d); ln -s $PWD/.git/config $d/soft && echo x > $d/soft"},
		{name: "by another name of the folder", want: "EROFS", script: "echo x >> /proc/self/cwd/.git/config"},
		{name: "inner repository", want: "EROFS", script: "git -C libs/inner config core.fsmonitor /bin/true"},
		{name: "inner repository's hook", want: "EROFS", script: "echo exit > libs/inner/.git/hooks/pre-commit"},
		{name: "inner repository moved", want: "EROFS EBUSY", script: "mv libs/inner/.git g"},
		{name: "settings read", want: "nothing", script: "grep planted .skein/config.yaml || { echo found nothing; exit 1; }"},
		{name: "settings written", want: "EROFS", script: "echo x > .skein/config.yaml"},
		{name: "settings created", want: "EROFS", script: "echo x > .skein/new"},
		{name: "settings removed", want: "EROFS EBUSY", script: "rm -rf .skein"},
		{name: "settings moved", want: "EROFS EBUSY", script: "mv .skein s"},
		{name: "settings exchanged", want: "EROFS EBUSY", script: "try exchange .skein sub"},
		{name: "settings by link", want: "EROFS", script: "d=$(mktemp -d); ln -s $PWD/.skein $d/soft && echo x > $d/soft/config.yaml"},
	})
}
