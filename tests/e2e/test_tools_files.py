"""Tools that handle files: archives, searches, databases, temporary files, special files."""
import stat

import pytest

from tools import PYTHON, Sides, need, passes, where


def test_tar_keeps_everything(place):
    need("tar", "gzip")
    tree = place.ws / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/file").write_text("content\n")
    (tree / "link").symlink_to("sub/file")
    (tree / "script").write_text("#!/bin/sh\n")
    (tree / "script").chmod(0o755)
    out = passes(place.shell("tar -czf tree.tgz tree && mkdir to && tar -xzf tree.tgz -C to && "
                             "tar -tzf tree.tgz | sort && diff -r tree to/tree"))
    assert out.split() == ["tree/", "tree/link", "tree/script", "tree/sub/", "tree/sub/file"]
    assert (place.ws / "to/tree/link").is_symlink()
    assert stat.S_IMODE((place.ws / "to/tree/script").stat().st_mode) == 0o755


def test_find_and_grep(place):
    for i in range(20):
        (place.ws / f"dir{i % 3}").mkdir(exist_ok=True)
        (place.ws / f"dir{i % 3}/file{i}").write_text(f"number {i}\n")
    out = passes(place.shell("find . -name 'file1*' -newer /etc/passwd | wc -l; grep -rl 'number 7' .; "
                             "find . -name 'file*' -print0 | xargs -0 cat | wc -l; "
                             "find . -name 'file1?' -delete; find . -name 'file*' | wc -l"))
    assert out.split() == ["11", "./dir1/file7", "20", "10"]


def test_searching_the_whole_tree_ends(place):
    """/proc and /dev inside are our own, and small."""
    out = passes(place.shell("find /dev | xargs stat -c %F | grep -c character; find /proc -maxdepth 1 -name '[0-9]*' | wc -l"))
    devices, processes = map(int, out.split())
    assert 6 <= devices <= 12
    assert processes <= 5


def test_sqlite3(place):
    need("sqlite3")
    script = ("pragma journal_mode=wal; create table t(a, b); insert into t values (1, 'x'), (2, 'y');"
              "select group_concat(b) from t;")
    assert passes(place.run("--", "sqlite3", "base.db", script)) == "wal\nx,y\n"
    read = place.run("-p", "read-only", "--", "sqlite3", "-readonly",
                     f"file:{place.ws}/base.db?immutable=1", "select count(*) from t")
    assert passes(read) == "2\n"
    write = place.run("-p", "read-only", "--", "sqlite3", "base.db", "insert into t values (3, 'z')")
    assert write.returncode != 0
    assert "readonly" in write.stderr or "unable to open" in write.stderr


def test_mktemp(place):
    out = passes(place.shell('mktemp; mktemp -d; mktemp -p /tmp of-a-test-XXXXXX; '
                             'f=$(mktemp) && echo text >$f && cat $f'))
    first, second, third, text = out.split()
    assert first.startswith(f"{place.tmp}/") and second.startswith(f"{place.tmp}/")
    assert text == "text"
    assert third.startswith("/tmp/of-a-test-")
    passes(place.run("--", "rm", third))


def test_shared_memory_is_private(place):
    assert passes(place.shell("echo hidden >/dev/shm/cordon-test && cat /dev/shm/cordon-test && "
                              "ls /dev/shm")) == "hidden\ncordon-test\n"
    assert passes(place.shell("ls /dev/shm")) == ""


@pytest.mark.parametrize("options", [[], ["--tty"]])
def test_standard_streams_by_name(place, options):
    script = "echo 1 >/dev/stdout; echo 2 >/dev/stderr; echo 3 >/proc/self/fd/1; echo 4 | tee /dev/fd/1"
    ran = place.shell(script, *options)
    assert ran.returncode == 0, ran
    assert sorted((ran.stdout + ran.stderr).split()) == ["1", "2", "3", "4", "4"]


def test_standard_input_by_name(place):
    assert passes(place.shell("cat /dev/stdin; cat /dev/null", text="came in\n")) == "came in\n"


def test_devices(place):
    out = passes(place.shell("head -c 100 /dev/urandom | wc -c; head -c 3 /dev/zero | od -An -tx1; "
                             "echo x >/dev/null; /bin/echo x 2>&1 >/dev/full | grep -o 'No space.*'; "
                             "test -r /dev/random && test -w /dev/null && echo fine"))
    assert out.split("\n")[:4] == ["100", " 00 00 00", "No space left on device", "fine"]


def test_fifos_and_locks(place):
    need("flock")
    out = passes(place.shell("mkfifo pipe && (echo through >pipe &) && cat pipe; "
                             "flock lock sh -c 'flock -n lock true || echo locked'"))
    assert out == "through\nlocked\n"


def test_file_times_and_modes(place):
    out = passes(place.shell("umask 027; touch -d '2001-02-03 04:05' file; stat -c '%a %y' file; "
                             "chmod 4711 file; stat -c %a file; ln file hard; stat -c %h file; "
                             "cp -a file copy; cmp file copy && mv copy moved && echo same"))
    lines = out.splitlines()
    assert lines[0].startswith("640 2001-02-03 04:05")
    assert lines[2:] == ["2", "same"]


def test_disk_usage_and_mounts(place):
    out = passes(place.shell("df . | tail -1 | wc -l; du -s . >/dev/null && echo du; "
                             "grep -c ' / ' /proc/self/mountinfo; stat -f . >/dev/null && echo stat"))
    assert out.splitlines()[0] == "1"
    assert "du" in out and "stat" in out


TREES_BY_MANY = """
import os

def make(path):
    try:
        os.mkdir(path)
    except FileNotFoundError:
        make(os.path.dirname(path))
        make(path)
    except FileExistsError:
        pass

children = []
for child in range(4):
    children.append(os.fork())
    if not children[-1]:
        for turn in range(300):
            make("top%d/a/b/c/d" % turn)
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children])
"""


def test_many_make_the_same_directories(place):
    # One finds a directory missing that another makes at this moment: that is no refusal.
    ran = place.run("--", "python3", "-c", TREES_BY_MANY)
    assert (ran.stdout, ran.stderr) == ("[0, 0, 0, 0]\n", "")


LAID_OUT = """
mkdir -p from/deep/er from/empty; for i in $(seq 60); do echo $i > from/deep/f$i; done
ln from/deep/f1 from/hard; ln -s deep/f2 from/link; ln -s missing from/dangling; mkfifo from/pipe
chmod 755 from/deep/f3; chmod 640 from/deep/f4; chmod 1777 from/empty; chmod 2775 from/deep/er
touch -d 2001-02-03T04:05:06 from/deep/f5; touch -h -d 2001-02-03T04:05:06 from/link
truncate -s 1M from/sparse; echo end >> from/sparse; printf x > "from/a name  with spaces"
printf x > from/$(printf '\\303\\244'); printf x > from/-dash
touch -d 2002-03-04T05:06:07 from/deep from/empty from/deep/er from
set -e
"""

NOW = (r"\b20[2-9]\d{11}\b", "NOW")
SHOWN = "; find {} -printf '%P %M %n %s %b %l %TY%Tm%Td%TH%TM%.2TS\\n' | grep -v '^ ' | sed 's/^{}//' | " \
        "grep -v -e ' p' -e now | cut -d. -f1 | sort"

COPIES = {
    "cp": "cp -a from to",
    "cp-modes": "umask 077; cp -r from to",
    "cp-links": "cp -al from to",
    "cp-update": "cp -a from to; touch from/deep/f9; cp -au from/. to/; cp --backup=numbered from/deep/f1 to/hard",
    "tar": "tar -cf a.tar from; mkdir to; tar -xpf a.tar -C to --strip-components=1; tar -df a.tar",
    "tar-gz": "tar -czf a.tgz from; mkdir to; umask 027; tar -xzf a.tgz -C to --strip-components=1",
    "tar-pipe": "mkdir to; tar -c -C from . | tar -xp -C to",
    "cpio": "mkdir to; cd from; find . -depth -print0 | tar --null -T - -c | tar -x -C ../to; cd ..",
    "install": "mkdir to; install -m 600 from/deep/f1 to/a; install -D from/deep/f2 to/b/c/d; install -d to/e",
    "mv": "mkdir to; mv from/* to/; mv to/deep to/er; mv -n to/hard to/link; mv to/er/er to/er2; rmdir from || true",
    "zip": "/usr/bin/python3 -m zipfile -c a.zip from/deep; /usr/bin/python3 -m zipfile -e a.zip to",
    "find": "cp -a from to; find to -name 'f1*' -delete; find to -name 'f2*' -exec mv {} {}x ';'; "
            "find to -type d -exec chmod o+t {} +; rm -rf to/deep/er",
}


@pytest.mark.parametrize("how", COPIES)
def test_copies_as_outside(place, how):
    """Modes, times, hard and symbolic links, holes, names: all of it is the same."""
    Sides(place, loose=[NOW], unlike=["*.tgz", "*.tar", "*.zip"]).is_alike(
        LAID_OUT + COPIES[how] + SHOWN.format("to", "to"))


BETWEEN_ROOTS = """
import os
dirs = ["in", ".", "in/deep", os.environ["BESIDE"]]
for a in dirs:
    for b in dirs:
        if a != b:
            for name in "new", "old", "linked", "dir", "soft":
                os.path.lexists(f"{b}/{name}") and os.rename(f"{b}/{name}", f"{b}/{name}-before")
            open(f"{a}/new", "w").write("new"); open(f"{b}/old", "w").write("old")
            os.link(f"{a}/new", f"{b}/linked")
            os.rename(f"{a}/new", f"{b}/old")
            os.makedirs(f"{a}/dir/below"); os.rename(f"{a}/dir", f"{b}/dir")
            os.symlink("text", f"{a}/soft"); os.link(f"{a}/soft", f"{b}/soft", follow_symlinks=False)
            os.unlink(f"{a}/soft")
            for path in f"{b}/old", f"{b}/linked":
                print(a, b, open(path).read(), os.stat(path).st_nlink)
            for name in "dir", "soft", "linked", "old":
                os.rename(f"{b}/{name}", f"{b}/{name}-{dirs.index(a)}-{dirs.index(b)}")
for a, b in ("in", "in/deep/x"), (".", "in/x"), ("in", "in/deep"):
    try:
        os.rename(a, b)
    except OSError as error:
        print(a, b, error.errno in (16, 18, 22, 39))
"""


def test_renames_and_links_between_roots(place):
    """A root in another one, or beside it, is a mount of its own: the kernel alone would say EXDEV."""
    beside = place.home / "beside"
    for folder in (place.ws / "in/deep", beside):
        folder.mkdir(parents=True)
    roots = ["--writable", place.ws, "--writable", place.ws / "in", "--writable", beside]
    Sides(place, env={"BESIDE": str(beside)}).is_alike(f"{PYTHON} -c '{BETWEEN_ROOTS}'", *roots)


@where("rsync")
@pytest.mark.parametrize("how", ["-a", "-aH --delete", "-aHS --inplace", "-a --link-dest=$PWD/from",
                                 "-ac --remove-source-files", "-rlt --chmod=D700,F600 --partial-dir=.part"])
def test_rsync(place, how):
    sides = Sides(place, loose=[NOW, (r"(?m)^(sent|total size) .*\n", "")])
    sides.is_alike(LAID_OUT + f"mkdir to; echo old > to/old; rsync -v {how} --exclude=pipe from/ to/; "
                   f"echo more >> to/deep/f7; rsync -v {how} --exclude=pipe from/ to/" + SHOWN.format("to", "to"))


EDITS = {
    "substitute": "-c '%s/a/b/g' -c wq",
    "backup": "-c 'set backup writebackup backupdir=.' -c '%s/a/b/' -c wq",
    "copy": "-c 'set backupcopy=yes' -c 'normal Gonew line' -c wq",
    "other-name": "-c 'w! other' -c 'saveas! third' -c 'q'",
    "swap": "-c 'set swapfile directory=.' -c '%s/a/b/' -c 'preserve' -c 'w' -c '!ls -a | grep -c swp' -c q",
    "nothing-saved": "-c '%s/a/b/' -c 'q!'",
}


@pytest.mark.parametrize("how", EDITS)
def test_vi(place, how):
    need("vi")
    (place.ws / "file").write_text("a line\nanother\n" * 50)
    (place.ws / "link").symlink_to("file")
    Sides(place).is_alike(f"vi -es -u NONE {EDITS[how]} file </dev/null; echo $?; "
                          f"vi -es -u NONE {EDITS[how]} link </dev/null; echo $?; ls -a; stat -c %a file")


@pytest.mark.parametrize("mask", ["022", "077", "000", "002"])
def test_new_files_as_outside(place, mask):
    """The umask, set-group-id folders, what open(2), mkdir(2), mkfifo(2) and mkstemp(3) make of it."""
    for name in ("plain", "shared"):
        (place.ws / name).mkdir()
    (place.ws / "shared").chmod(0o2775)
    script = (f"umask {mask}; for d in plain shared . plain/../shared; do cd $d; touch new; mkdir dir; "
              "mkdir -m 700 closed; mkfifo pipe; ln -s new link; echo x > redirected; (umask 027; mkdir -p "
              "a/b/c; touch a/b/c/d); mktemp -p . name.XXXX >/dev/null; rm name.*; install -m 604 new installed; "
              f"{PYTHON} -c 'import os; os.close(os.open(\"made\", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)); "
              "os.mkdir(\"wide\", 0o777); os.umask(0o007); os.mkdir(\"narrow\")'; cd $WS; done; umask; "
              "find . -printf '%P %M %n %g\\n' | sort")
    Sides(place).is_alike(script.replace("link; echo", "link 2>/dev/null; echo"))
