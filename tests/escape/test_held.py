"""Calls that are held while somebody is asked, and what a yes covers: it does what the call would have
done, and opens nothing else."""

import os
import select
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

import identity
from asking import NAMES, Asking, below, need_asker, play  # noqa: F401
from events import wait_for_end
from stage import WAIT

each = pytest.mark.parametrize("name", NAMES)


def ask(stage, script, judge=lambda question: "yes", words=()):
    """A shell script of the command's, with the answers; what it wrote, and what was said."""
    asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; {script}", words=words)
    return asking.serve(judge), asking


def text(path):
    return Path(path).read_text(encoding="utf-8")


PYTHON = '/usr/bin/python3 -c "import os;'

# --- what it does: script, what is to be asked about (paths, and what a yes covers), what is true then

DONE = {
    "write": ("echo new > f", [("f", "f", "")], lambda out: text(out / "f") == "new\n"),
    "append": ("echo new >> f", [("f", "f", "")], lambda out: text(out / "f") == "original\nnew\n"),
    "write twice": ("echo a > f; echo b >> f", [("f", "f", "")],
                    lambda out: text(out / "f") == "a\nb\n"),
    "create": ("umask 027; echo a > n", [("n", "", "")],
               lambda out: text(out / "n") == "a\n" and stat.S_IMODE(os.stat(out / "n").st_mode) == 0o640),
    "create two": ("echo a > n; echo b > m; echo c > f", [("n", "", "")],
                   lambda out: (text(out / "n"), text(out / "m"), text(out / "f")) ==
                   ("a\n", "b\n", "c\n")),
    "mkdir": ("mkdir -p d/e; echo a > d/e/f", [("d", "", "")], lambda out: text(out / "d/e/f") == "a\n"),
    "symlink": ("ln -s f s", [("s", "", "")], lambda out: os.readlink(out / "s") == "f"),
    "link": ("ln f l", [("l", "", "f")], lambda out: os.stat(out / "l").st_nlink == 2),
    "mknod": ("python3 -c 'import os; os.mknod(\"n\", 0o100600)'", [("n", "", "")],
              lambda out: (out / "n").is_file()),
    "remove": ("rm -f f", [("f", "f", "")], lambda out: not (out / "f").exists()),
    "rmdir": ("rm -f open/f; rmdir open", [("open/f", "open/f", ""), ("open", "open", "")],
              lambda out: not (out / "open").exists()),
    "rename": ("mv f n", [("f", "f", "")], lambda out: not (out / "f").exists() and (out / "n").exists()),
    "replace": ("mv f g", [("f", "f", "g")], lambda out: not (out / "f").exists()),
    "chmod": ("chmod 600 f", [("f", "f", "")], lambda out: stat.S_IMODE(os.stat(out / "f").st_mode) == 0o600),
    "times": ("touch -d @1000000000 f", [("f", "f", "")],
              lambda out: os.stat(out / "f").st_mtime == 1000000000),
    "utime": ("python3 -c 'import os; os.utime(\"f\", (1, 2))'", [("f", "f", "")],
              lambda out: os.stat(out / "f").st_mtime == 2),
    "truncate": ("python3 -c 'import os; os.truncate(\"f\", 3)'", [("f", "f", "")],
                 lambda out: text(out / "f") == "ori"),
    "access, then write": ("test -w f && echo new > f", [("f", "f", "")],
                           lambda out: text(out / "f") == "new\n"),
    "access to a folder": ("test -w open && echo new > open/n", [("open", "", "")],
                           lambda out: text(out / "open/n") == "new\n"),
    "attribute": ("python3 -c 'import os; os.setxattr(\"f\", \"user.a\", b\"b\")'", [("f", "f", "")],
                  lambda out: os.getxattr(out / "f", "user.a") == b"b"),
    "through a link": ("ln -s $PWD/f ../ws/link; echo new > ../ws/link", [("f", "f", "")],
                       lambda out: text(out / "f") == "new\n"),
    "by a descriptor": ("exec 3< f; chmod 600 /proc/self/fd/3", [("f", "f", "")],
                        lambda out: stat.S_IMODE(os.stat(out / "f").st_mode) == 0o600),
    "mode of a descriptor": (f"{PYTHON} os.fchmod(os.open('f', 0), 0o600)\"", [("f", "f", "")],
                             lambda out: stat.S_IMODE(os.stat(out / "f").st_mode) == 0o600),
    "mode of a folder's descriptor": (f"{PYTHON} os.fchmod(os.open('open', 0), 0o700)\"", [("open", "open", "")],
                                      lambda out: stat.S_IMODE(os.stat(out / "open").st_mode) == 0o700),
    "times of a descriptor": (f"{PYTHON} os.utime(os.open('f', 0), (1, 2))\"", [("f", "f", "")],
                              lambda out: os.stat(out / "f").st_mtime == 2),
    "attribute of a descriptor": (f"{PYTHON} os.setxattr(os.open('f', 0), 'user.a', b'b')\"", [("f", "f", "")],
                                  lambda out: os.getxattr(out / "f", "user.a") == b"b"),
    "owner of a descriptor": (f"{PYTHON} fd = os.open('f', 0); os.fchown(fd, os.getuid(), os.getgid()); "
                              "os.fchmod(fd, 0o600)\"", [("f", "f", "")],
                              lambda out: stat.S_IMODE(os.stat(out / "f").st_mode) == 0o600),
    "attribute and none": (f"{PYTHON} fd = os.open('f', 0); os.setxattr(fd, 'user.a', b'b'); "
                           "os.removexattr(fd, 'user.a'); os.utime(fd, (1, 2))\"", [("f", "f", "")],
                           lambda out: os.listxattr(out / "f") == [] and os.stat(out / "f").st_mtime == 2),
    "times of a link": ("ln -s f s; touch -h -d @1000000000 s", [("s", "", "")],
                        lambda out: os.lstat(out / "s").st_mtime == 1000000000 != os.stat(out / "f").st_mtime),
    "a repository": ("cd ../ws; git init -q . && git add . && git -c user.name=a -c user.email=a@b commit "
                     "-q --allow-empty -m a", None, lambda out: (out.parent / "ws/.git/refs/heads").exists() and
                     any((out.parent / "ws/.git/refs/heads").iterdir())),
    "in place": ("sed -i s/original/new/ f", None, lambda out: text(out / "f") == "new\n"),
    "a held name": ("cd ../ws; mkdir .git && echo a > .git/config && echo b >> .git/config && "
                    "mkdir -p .git/hooks && echo c > .git/hooks/h; ! mkdir .git/ 2>&1 | grep -v exists", None,
                    lambda out: text(out.parent / "ws/.git/config") == "a\nb\n" and
                    text(out.parent / "ws/.git/hooks/h") == "c\n"),
    "move in": ("mv f ../ws/f", [("f", "f", "")], lambda out: text(out.parent / "ws/f") == "original\n" and not (out / "f").exists()),
    "move out": ("echo a > ../ws/a; mv ../ws/a a", None, lambda out: text(out / "a") == "a\n"),
}


def is_true(condition, out):
    try:
        return condition(out)
    except OSError:
        return False


@each
@pytest.mark.parametrize("what", DONE)
def test_a_yes_does_it(name, tools, what):
    script, asked, is_done = DONE[what]

    def scene(stage):
        said, asking = ask(stage, script)
        questions = [question.path for question in asking.all("asked")]
        assert is_true(is_done, stage.out), (said, asking.said)
        assert not asking.all("denied"), asking.said
        assert [done.path for done in asking.all("done")] == questions
        if asked is not None:
            assert questions == [f"{stage.out}/{path}" for path, *_ in asked], asking.said
        else:
            assert len(questions) == 1, asking.said
        return asking.process.returncode, said, stage.appeared
    assert play(name, tools, scene) == (0, "", [])


@each
@pytest.mark.parametrize("what", DONE)
def test_a_no_does_nothing(name, tools, what):
    script, _, is_done = DONE[what]

    def scene(stage):
        _, asking = ask(stage, script, lambda question: "no")
        assert not is_true(is_done, stage.out), asking.said
        assert len(asking.all("denied")) >= 1 and not asking.all("done"), asking.said
    play(name, tools, scene)


@each
def test_errors_are_those_of_outside(name, tools):
    """In a granted folder: what fails there fails here in the same way."""
    script = ("import os, sys\n"
              "os.chdir(sys.argv[1])\n"
              "def t(call, *args):\n"
              "    try: print(call(*args))\n"
              "    except OSError as error: print(call.__name__, args, error.strerror)\n"
              "t(os.close, os.open('n', os.O_CREAT | os.O_WRONLY))\n"
              "t(os.unlink, 'none'); t(os.rmdir, 'none'); t(os.rmdir, 'f'); t(os.mkdir, 'd')\n"
              "t(os.unlink, 'd/'); t(os.unlink, 'd'); t(os.mkdir, 'd'); t(os.mkdir, 'd/e')\n"
              "t(os.rmdir, 'd'); t(os.rename, 'none', 'm'); t(os.rename, 'f', 'd')\n"
              "t(os.rename, 'd', 'f'); t(os.rename, 'd', 'd/e/f'); t(os.link, 'none', 'm')\n"
              "t(os.link, 'f', 'd'); t(os.symlink, 'a', 'f'); t(os.open, 'f', os.O_CREAT | os.O_EXCL)\n"
              "t(os.open, 'd', os.O_WRONLY); t(os.open, 'f/', os.O_WRONLY); t(os.truncate, 'none', 0)\n"
              "t(os.truncate, 'd', 0); t(os.chmod, 'none', 0o600); t(os.mkdir, 'x' * 256)\n"
              "t(os.open, 'x' * 256, os.O_CREAT | os.O_WRONLY); t(os.mkdir, 'none/n')\n"
              "t(os.open, 'f/n', os.O_CREAT | os.O_WRONLY); t(os.rmdir, 'd/e'); t(os.rmdir, 'd')\n")

    def bare(stage):
        return stage.run("/usr/bin/python3", "-c", script, stage.out / "open").out

    def scene(stage):
        asking = Asking(stage, "/usr/bin/python3", "-c", script, stage.out / "open")
        return asking.serve(lambda question: "yes"), len(asking.all("asked"))
    assert play(name, tools, scene) == (play(name, tools, bare, inside=False), 1)


@each
def test_what_a_yes_covers_is_said(name, tools):
    def scene(stage):
        said = []
        for script in "echo a > f", "echo a > n", "mv g open/g", "ln open/f l":
            _, asking = ask(stage, script, lambda question: "no")
            said += [tuple(text.replace(str(stage.out), "") for text in question.texts)
                     for question in asking.all("asked")]
        return said
    assert play(name, tools, scene) == [
        ("/f", "", "", ""), ("/n", "", "/", ""), ("/g", "/open/g", "", "/open/"),
        ("/l", "/open/f", "/", "/open/f")]


@each
def test_a_no_is_good_for_what_its_yes_would_have_covered(name, tools):
    """It is asked once, however often it is tried, and what was said yes to stays open."""
    script = ("echo b > open/f; for i in 1 2 3; do echo a > f; test -w f; done; echo a > n; echo a > m; "
              "mkdir d; echo c >> open/f; exit 0")

    def scene(stage):
        output, asking = ask(stage, script, lambda question: "yes" if "open" in question.texts[0] else "no")
        return ([question.texts[0].replace(str(stage.out), "") for question in asking.all("asked")],
                (stage.out / "open/f").read_text(), sorted(os.listdir(stage.out)))
    asked, text, names = play(name, tools, scene)
    assert asked == ["/open/f", "/f", "/n"] and text == "b\nc\n"
    assert not {"n", "m", "d"} & set(names)


@each
def test_nobody_is_asked_about_these(name, tools):
    """What no yes opens, and what would fail anyway."""
    script = ("echo a > own/f; mkdir own/d; rm -f own/f; echo a > /proc/sys/kernel/hostname; "
              "echo a > /sys/none; echo a > /dev/none; echo a > secret/f; mkdir secret/d; "
              "mkdir open; echo a > none/f; rmdir .; mkfifo p; chmod u+s f; "
              "cd ../ws; mkdir objects refs; echo a > HEAD; mkdir .GIT; rm -rf ../outside/own; exit 0")

    def scene(stage):
        stage.file("outside/closed/f", mode=0o444)
        (stage.out / "closed").chmod(0o555)
        _, asking = ask(stage, script + ("" if stage.is_root else "; echo a > ../outside/closed/n"))
        (stage.out / "closed").chmod(0o755)
        return [question.path for question in asking.all("asked")]
    assert play(name, tools, scene) == []


NO_NAMESPACES = [name for name in identity.here() if not identity.has_namespaces(name)]


@pytest.mark.parametrize("name", NO_NAMESPACES)
def test_without_namespaces(name, tools):
    """Landlock alone refuses, and knows no narrower entries: a read-only profile."""
    def scene(stage):
        asking = Asking(stage, "/bin/sh", "-c", "cd $0; echo new > f; echo new > n; echo new > open/n; exit 0",
                        stage.out, words=None)
        asking.serve(lambda question: "no" if "open" in question.path else "yes")
        return (text(stage.out / "f"), text(stage.out / "n"), (stage.out / "open/n").exists(),
                len(asking.all("asked")))
    assert play(name, tools, scene) == ("new\n", "new\n", True, 2)
