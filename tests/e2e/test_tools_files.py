"""Tools that handle files: archives, searches, databases, temporary files, special files."""
import stat

import pytest

from tools import need, passes


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
    out = passes(place.shell('mktemp; mktemp -d; mktemp -p /tmp cordon-XXXXXX; '
                             'f=$(mktemp) && echo text >$f && cat $f'))
    first, second, third, text = out.split()
    assert first.startswith(f"{place.tmp}/") and second.startswith(f"{place.tmp}/")
    assert text == "text"
    assert third.startswith("/tmp/cordon-")
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
