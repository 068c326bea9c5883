"""Attacks on calls that are held and on what a yes opens. All yeses are about `open`, a folder beside the
workspace, where one was said yes to: nothing else may ever change. Scripts and races succeed bare."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from asking import NAMES, Asking, need_asker, play  # noqa: F401
from events import wait_for_end
from stage import TRIES, WAIT

PYTHON = "/usr/bin/python3"

pytestmark = pytest.mark.parametrize("name", NAMES)


def state(out):
    """All that must stay as it was: names, files, modes, links."""
    found = {".": out.stat().st_mode}
    for folder, folders, files in os.walk(out):
        for name in (*folders, *files):
            path = Path(folder, name)
            short = str(path.relative_to(out))
            if short.startswith("open/"):
                continue
            st = path.lstat()
            found[short] = (st.st_ino, st.st_mode, st.st_nlink if path.is_file() else 0,
                            path.read_text("utf-8", "replace") if path.is_file() else "")
    return found


def only_open(stage):
    """Yes to what lies in `open` and is about nothing else."""
    def judge(question):
        inside = f"{stage.out}/open/"
        others = [text for text in (question.texts[3],) if text]
        return "yes" if all(path.startswith(inside) for path in (question.path, *others)) else "no"
    return judge


def end(asking, judge):
    """The rest; and that nothing is left of it."""
    written = asking.serve(judge)
    assert asking.stage.appeared == []
    return written


# --- scripts, run in `outside` after `open` was granted: what they change bare they must not change inside

def by_python(text):
    return f"{PYTHON} -c \"import os; {text}\""


SCRIPTS = {
    "hard link of a denied file": "ln f open/l; echo x >> open/l",
    "rename of a denied file": "mv f open/l",
    "rename of the granted folder": "mv open away",
    "removal of the granted folder": "rm -rf open",
    "replacing the granted folder": "mkdir ../ws/new; rm -rf open; mv ../ws/new open",
    "mode of the folder above": "chmod 700 .",
    "link in the granted folder": "ln -s ../f open/l; echo x > open/l",
    "link to the folder above": "ln -s .. open/l; echo x > open/l/f",
    "link of links": "ln -s l2 open/l1; ln -s ../g open/l2; echo x >> open/l1",
    "dots": "echo x > open/../f",
    "dots at the end": "rm -f open/../g",
    "root of the process": "echo x > /proc/self/root$PWD/f",
    "cwd of the process": "echo x > /proc/self/cwd/f",
    "cwd of another": "sleep 9 & echo x > /proc/$!/cwd/f; kill $!",
    "a descriptor again": "exec 3< f; echo x > /proc/self/fd/3",
    "a descriptor of the folder": "exec 3< .; echo x > /proc/self/fd/3/f",
    "mode of a descriptor": by_python("os.fchmod(os.open('f', 0), 0o777)"),
    "mode of a folder's descriptor": by_python("os.fchmod(os.open('sub', 0), 0o777)"),
    "mode of the folder above, open": by_python("os.fchmod(os.open('.', 0), 0o700)"),
    "mode of a descriptor of Cordon's": by_python("os.fchmod(os.open('own/f', 0), 0o777)"),
    "mode of a descriptor by path only": by_python("os.chmod(os.open('f', os.O_PATH), 0o777)") +
                                         "; exec 3< f; chmod 777 /proc/self/fd/3",
    "mode of a descriptor that was sent": by_python(
        "import socket; a, b = socket.socketpair(); os.fork() or (socket.send_fds(a, [b'x'], [os.open('f', 0)]), "
        "os._exit(0)); os.fchmod(socket.recv_fds(b, 1, 1)[1][0], 0o777)"),
    "into what is denied": "echo x > secret/f; mkdir secret/d",
    "what is denied away": "mv secret open/s",
    "link of what is denied": "ln secret/f open/l && echo x > open/l",
    "Cordon's own": "echo x > own/f; echo y > own/n",
    "Cordon's own away": "mv own open/own",
    "Cordon's own by link": "mv own gone; ln -s open own",
    "a new name beside it": "echo x > openn; echo x > open.f",
    "truncated": f"{PYTHON} -c 'import os; os.truncate(\"open/../f\", 0)'",
    "mode": "chmod 777 open/../f",
    "attribute of the folder": "chmod 700 sub",
    "link that is followed": f"{PYTHON} -c 'import os; os.link(\"f\", \"open/l\", follow_symlinks=True)'"
                             "; echo x >> open/l",
    "link of a descriptor": f"{PYTHON} -c 'import ctypes, os; fd = os.open(\"f\", os.O_RDONLY); "
                            "ctypes.CDLL(None).linkat(-100, b\"/proc/self/fd/%d\" % fd, -100, "
                            "b\"open/l\", 0x400)'; echo x >> open/l",
    "unnamed file": f"{PYTHON} -c 'import ctypes, os; fd = os.open(\"../ws\", os.O_TMPFILE | os.O_WRONLY); "
                    "ctypes.CDLL(None).linkat(-100, b\"/proc/self/fd/%d\" % fd, -100, b\"l\", 0x400)'",
    "exchange": f"{PYTHON} -c 'import ctypes; print(ctypes.CDLL(None).syscall({{\"x86_64\": 316}}.get("
                "__import__(\"os\").uname().machine, 276), -100, b\"open/f\", -100, b\"f\", 2))'",
    "move over a denied file": "mv open/f f",
    "folder with a denied name": "mkdir ../ws/d; mv sub ../ws/d/sub; echo x >> ../ws/d/sub/f",
    "by a folder's descriptor": f"{PYTHON} -c 'import os; fd = os.open(\"open\", os.O_RDONLY); "
                                "os.open(\"../f\", os.O_WRONLY | os.O_TRUNC, dir_fd=fd)'",
    "a chdir away": "cd open; cd ..; echo x > f",
}


def bare(stage, script):
    before = state(stage.out)
    subprocess.run(["/bin/sh", "-c", f"cd {stage.out}; : > open/n; {script}"], check=False,
                   cwd=stage.ws, env=stage.env, capture_output=True, timeout=WAIT)
    return state(stage.out) != before


@pytest.mark.parametrize("what", SCRIPTS)
def test_script(name, tools, what):
    assert play(name, tools, lambda stage: bare(stage, SCRIPTS[what]), inside=False)

    def scene(stage):
        before = state(stage.out)
        asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; : > open/n && echo granted; {SCRIPTS[what]}")
        written = end(asking, only_open(stage))
        assert written.startswith("granted\n"), (written, asking.said)
        assert state(stage.out) == before, asking.said
        assert all(question.path.startswith(str(stage.out)) and "/own" not in question.path and
                   "/secret" not in question.path for question in asking.all("asked")), asking.said
    play(name, tools, scene)


BELIEVED = ["open/.git/hooks/h", "open/.git/config", "open/in/.git/hooks/h", "open/.vscode/t", "open/in/.claude/s",
            "open/.mcp.json"]


@pytest.mark.parametrize("way", ["echo x > {}", "echo x > open/t; mv open/t {}", "echo x > open/t; ln open/t {}",
                                 "cd open/in; echo x > ../../{}", "ln -s ../open open/s; echo x > {}"])
def test_a_yes_to_a_folder_is_none_to_what_is_believed_in_it(name, tools, way):
    """One yes, to a new file in it; everything else is a no. What was there before the command is meant."""
    def scene(stage, inside):
        for folder in ("open/.git/hooks", "open/.vscode", "open/in/.git/hooks", "open/in/.claude"):
            (stage.out / folder).mkdir(parents=True, exist_ok=True)
            for each in (stage.out / folder, *(stage.out / folder).parents):
                if each.is_relative_to(stage.out):
                    each.chmod(0o777)
        script = f"cd {stage.out}; : > open/n && echo granted; for f in {' '.join(BELIEVED)}; do " \
                 f"(mkdir -p ${{f%/*}}; {way.format('$f')}); done"
        if inside:
            asking = Asking(stage, "/bin/sh", "-c", script)
            assert end(asking, lambda question: "yes" if question.path.endswith("/open/n") else "no").startswith("granted\n")
        else:
            subprocess.run(["/bin/sh", "-c", script], check=False, cwd=stage.ws, env=stage.env, capture_output=True,
                           timeout=WAIT)
        return [path for path in BELIEVED if (stage.out / path).exists()]
    assert len(play(name, tools, lambda stage: scene(stage, False), inside=False)) == len(BELIEVED)
    assert play(name, tools, lambda stage: scene(stage, True)) == []


def test_no_set_id(name, tools):
    script = ("import os, contextlib\n"
              "def t(call, *args):\n"
              "    with contextlib.suppress(OSError): call(*args)\n"
              "t(lambda: os.open('open/s1', os.O_CREAT | os.O_WRONLY, 0o6755))\n"
              "t(os.mkdir, 'open/s2', 0o6755)\n"
              "t(os.mknod, 'open/s3', 0o106755)\n"
              "t(os.chmod, 'open/f', 0o6755)\n"
              "t(os.chmod, 'open/n', 0o2755)\n"
              "f, d = os.open('open/f', os.O_RDONLY), os.open('open/d', os.O_RDONLY)\n"
              "for mode in (0o4755, 0o2755, 0o6755): t(os.fchmod, f, mode); t(os.fchmod, d, mode)\n")

    def scene(stage):
        asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; mkdir open/d; : > open/n; {PYTHON} -c \"$0\"",
                        script)
        end(asking, lambda question: "yes")
        return [path.name for path in (stage.out / "open").iterdir() if path.stat().st_mode & 0o6000]
    assert play(name, tools, scene) == []


def test_a_fifo_keeps_nobody(name, tools):
    """Made by the host in the granted folder: it is not opened on behalf, and others go on."""
    def scene(stage):
        os.mkfifo(stage.out / "open/fifo")
        asking = Asking(stage, "/bin/sh", "-c",
                        f"cd {stage.out}; : > open/n; (echo x > open/fifo) & : > open/m; echo on; kill $!")
        return end(asking, lambda question: "yes"), (stage.out / "open/m").exists()
    written, made = play(name, tools, scene)
    assert "on\n" in written and made


# --- while it is held

# Makes a call, and lets another thread do as it is told meanwhile.
HOLDER = """
import ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
how, first, second = sys.argv[1:4]
memory = ctypes.create_string_buffer(4096)
def put(text):
    ctypes.memmove(memory, text, len(text))
def address(path):
    return b"\\1\\0" + path.encode() + bytes(108 - len(path))
unix = socket.socket(socket.AF_UNIX) if how == "connect" else None
other = socket.socket(socket.AF_UNIX) if how == "connect" else None
opened = [os.open(path, os.O_RDONLY) for path in (first, second)] if how == "fchmod" else []
put(address(first) if unix else first.encode() + b"\\0")
def call():
    if how == "connect":
        result = libc.connect(unix.fileno(), memory, 110)
    elif how == "rename":
        result = libc.rename(sys.argv[4].encode(), memory)
    elif how == "source":
        result = libc.rename(memory, sys.argv[4].encode())
    elif how == "link":
        result = libc.link(memory, sys.argv[4].encode())
    elif how == "unlink":
        result = libc.unlink(memory)
    elif how == "mkdir":
        result = libc.mkdir(memory, 0o700)
    elif how == "symlink":
        result = libc.symlink(b"f", memory)
    elif how == "fchmod":
        result = libc.fchmod(opened[0], 0o777)
    elif how == "chmod":
        result = libc.chmod(memory, 0o777)
    elif how == "truncate":
        result = libc.truncate(memory, 0)
    elif how == "append":
        result = libc.open(memory, os.O_WRONLY | os.O_APPEND)
    else:
        result = libc.open(memory, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    if how in ("open", "append") and result >= 0:
        os.write(result, b"held\\n")
    print("result", result, ctypes.get_errno() if result < 0 else 0, flush=True)
thread = threading.Thread(target=call)
thread.start()
for line in sys.stdin:
    word = line.strip()
    if word == "rewrite":
        put(address(second) if unix else second.encode() + b"\\0")
    elif word == "swap" and opened:
        os.dup2(opened[1], opened[0])
    elif word == "close":
        os.close(opened[0])
    elif word == "swap":
        os.dup2(other.fileno(), unix.fileno())
    elif word == "exec":
        os.execv("/bin/cat", ["cat"])
    print("did", word, flush=True)
thread.join()
"""


class Holding:
    """A call that is held, and its question."""

    def __init__(self, stage, how, first, second="", third="", words=()):
        self.asking = Asking(stage, PYTHON, "-c", HOLDER, how, first, second, third, words=words,
                             stdin=subprocess.PIPE)
        self.question = self.asking.until("asked", "exited")

    def tell(self, word):
        self.asking.process.stdin.write(f"{word}\n")
        self.asking.process.stdin.flush()
        assert self.asking.process.stdout.readline() == f"did {word}\n"

    def answer(self, word="yes"):
        """The answer, and then no to all else; what the call came to."""
        self.asking.answer(word, self.question.id)
        self.asking.process.stdin.close()
        self.asking.process.stdin = None
        written = end(self.asking, lambda question: "no")
        words = written.split()
        assert words[:1] == ["result"], written
        return int(words[1]), int(words[2])


# how, the path that is asked about, the one that it becomes, a third one
REWRITTEN = {
    "open": ("open", "open/n", "f"),
    "open to a new name": ("open", "open/n", "n"),
    "open of what is there": ("append", "open/f", "f"),
    "open of what is denied": ("append", "open/f", "secret/f"),
    "open of Cordon's": ("append", "open/f", "own/f"),
    "open of a held name": ("open", "open/n", "../ws/.git"),
    "mkdir": ("mkdir", "open/n", "n"),
    "symlink": ("symlink", "open/n", "n"),
    "unlink": ("unlink", "open/f", "f"),
    "chmod": ("chmod", "open/f", "f"),
    "truncate": ("truncate", "open/f", "f"),
    "rename to": ("rename", "open/n", "n", "open/f"),
    "rename of": ("source", "open/f", "f", "open/n"),
    "link of": ("link", "open/f", "f", "open/n"),
}


@pytest.mark.parametrize("what", REWRITTEN)
def test_rewritten_while_held(name, tools, what):
    """Another thread rewrites the path: after the yes it is another call, which nobody said yes to."""
    how, first, second, *third = REWRITTEN[what]

    def scene(stage):
        before = state(stage.out)
        holding = Holding(stage, how, *(f"{stage.out}/{path}" for path in (first, second, *third)))
        holding.tell("rewrite")
        result, _ = holding.answer()
        assert state(stage.out) == before and not (stage.ws / ".git").exists()
        assert not holding.asking.all("done"), holding.asking.said
        assert len(holding.asking.all("asked")) == 1
        return result
    assert play(name, tools, scene) == -1


@pytest.mark.parametrize("how, path", [("open", "n"), ("append", "f"), ("unlink", "f"), ("mkdir", "n"),
                                       ("chmod", "f"), ("truncate", "f")])
def test_the_parent_is_moved_while_held(name, tools, how, path):
    """Somebody on the host moves the folder, and puts another in its place: neither is touched."""
    def scene(stage):
        stage.file("outside/open/in/f")
        stage.file("outside/other/f")
        holding = Holding(stage, how, f"{stage.out}/open/in/{path}")
        os.rename(stage.out / "open/in", stage.out / "moved")
        os.rename(stage.out / "other", stage.out / "open/in")
        before = state(stage.out), state(stage.out / "open")
        result, _ = holding.answer()
        assert (state(stage.out), state(stage.out / "open")) == before
        return result
    assert play(name, tools, scene) == -1


@pytest.mark.parametrize("how", ["append", "truncate", "chmod"])
def test_the_file_is_replaced_while_held(name, tools, how):
    """By another file, and by a link to another: a yes to a file is about that file."""
    def scene(stage, is_link):
        stage.file("outside/other")
        holding = Holding(stage, how, f"{stage.out}/f")
        os.rename(stage.out / "f", stage.out / "was")
        if is_link:
            (stage.out / "f").symlink_to("g")
        else:
            os.rename(stage.out / "other", stage.out / "f")
        before = state(stage.out)
        result, _ = holding.answer()
        assert state(stage.out) == before
        return result
    for is_link in (False, True):
        assert play(name, tools, lambda stage, is_link=is_link: scene(stage, is_link)) == -1


@pytest.mark.parametrize("word, other", [("swap", "f"), ("swap", "own/f"), ("swap", "sub"), ("swap", "open/other"),
                                         ("close", "f")])
def test_the_descriptor_is_another_while_held(name, tools, word, other):
    """Another thread puts another file in its place, or nothing."""
    def scene(stage):
        stage.file("outside/open/other")
        before = state(stage.out), state(stage.out / "open")
        holding = Holding(stage, "fchmod", f"{stage.out}/open/f", f"{stage.out}/{other}")
        holding.tell(word)
        result, _ = holding.answer()
        assert (state(stage.out), state(stage.out / "open")) == before, holding.asking.said
        return result
    assert play(name, tools, scene) == -1


@pytest.mark.parametrize("how", ["moved", "replaced", "removed", "linked"])
def test_the_file_of_a_descriptor_while_held(name, tools, how):
    """On the host, while it is asked about: only what is still where it was shown is changed, whatever else is
    there; another name of it does no harm."""
    def scene(stage):
        holding = Holding(stage, "fchmod", f"{stage.out}/open/f", f"{stage.out}/g")
        if how == "linked":
            os.link(stage.out / "open/f", stage.out / "open/l")
        elif how == "removed":
            os.unlink(stage.out / "open/f")
        else:
            os.rename(stage.out / "open/f", stage.out / "open/was")
        if how == "replaced":
            stage.file("outside/open/f")
        before = state(stage.out), state(stage.out / "open")
        result, _ = holding.answer()
        return result, (state(stage.out), state(stage.out / "open")) == before
    assert play(name, tools, scene) == ((0, False) if how == "linked" else (-1, True))


@pytest.mark.parametrize("script, asked", [
    ("os.fchmod(os.open('f', 0), 0o777)", ["f"]),
    ("fd = os.open('open/l', 0); os.remove('open/l'); os.fchmod(fd, 0o777)", []),
    ("fd = os.open('open/l', 0); os.rename('open/l', 'open/g'); os.mkdir('open/l'); os.fchmod(os.open('f', 0), 0o777)",
     ["f"])])
def test_a_link_to_a_file_outside_of_the_grant(name, tools, script, asked):
    """By the host. What is open by the denied name is that, though it has a granted one, too; and by the granted
    one it is nothing, when that is gone."""
    def scene(stage):
        os.link(stage.out / "f", stage.out / "open/l")
        if not stage.inside:
            return bare(stage, by_python(script))
        before = stage.out.joinpath("f").stat().st_mode
        asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; : > open/n && echo granted; {by_python(script)}")
        written = end(asking, only_open(stage))
        assert written.startswith("granted\n"), written
        return (stage.out.joinpath("f").stat().st_mode == before,
                [Path(question.path).name for question in asking.all("asked")][1:])
    assert play(name, tools, scene, inside=False)
    assert play(name, tools, scene) == (True, asked)


def test_a_link_on_the_way_is_swapped_while_held(name, tools):
    def scene(stage):
        (stage.ws / "way").symlink_to(stage.out / "open")
        holding = Holding(stage, "open", f"{stage.ws}/way/n")
        (stage.ws / "way").unlink()
        (stage.ws / "way").symlink_to(stage.out)
        before = state(stage.out)
        result, _ = holding.answer()
        assert state(stage.out) == before
        return result, holding.question.path == f"{stage.out}/open/n"
    assert play(name, tools, scene) == (-1, True)


class Services:
    """Two sockets on the host, one of which is asked about."""

    def __init__(self, stage):
        self.first = stage.unix_service(path="outside/open/a.sock")
        self.second = stage.unix_service(path="outside/b.sock")

    def reached(self):
        found = []
        for service in (self.first, self.second):
            with contextlib.suppress(BlockingIOError):
                service.socket.accept()[0].close()
                found.append(service.path.name)
        return found


@pytest.mark.parametrize("what, expected", [("", ["a.sock"]), ("rewrite", []), ("moved", []), ("swap", ["a.sock"])])
def test_a_socket_while_held(name, tools, what, expected):
    """The address is rewritten, another socket takes its name, or the caller's own is another one: it is
    connected to the one that was asked about, or to none."""
    def scene(stage):
        services = Services(stage)
        holding = Holding(stage, "connect", str(services.first.path), str(services.second.path),
                          words=["restricted"])
        if what == "moved":
            os.rename(services.second.path, services.first.path)
        elif what:
            holding.tell(what)
        holding.answer()
        return services.reached()
    assert play(name, tools, scene) == expected


def test_a_yes_to_a_socket_is_for_that_one(name, tools):
    script = ("import socket, sys\n"
              "for path in sys.argv[1:]:\n"
              "    try: socket.socket(socket.AF_UNIX).connect(path)\n"
              "    except OSError as error: print(error.errno)\n")

    def scene(stage):
        services = Services(stage)
        paths = services.first.path, services.second.path, services.first.path
        asking = Asking(stage, PYTHON, "-c", script, *map(str, paths), words=["restricted"])
        written = end(asking, lambda question: "yes" if "a.sock" in question.path else "no")
        services.first.socket.accept()[0].close()
        return written, services.reached(), len(asking.all("asked"))
    assert play(name, tools, scene) == ("13\n", ["a.sock"], 2)


@pytest.mark.parametrize("how, path", [("open", "n"), ("append", "f"), ("unlink", "f"), ("mkdir", "n")])
def test_killed_while_held(name, tools, how, path):
    """The question is taken back by itself, and a yes that comes late does nothing."""
    def scene(stage):
        before = state(stage.out)
        script = f"{PYTHON} -c \"$0\" \"$@\" & read word; kill -9 $!; wait; read word"
        asking = Asking(stage, "/bin/sh", "-c", script, HOLDER, how, f"{stage.out}/{path}", "",
                        stdin=subprocess.PIPE)
        question = asking.until("asked")
        asking.process.stdin.write("kill\n")
        asking.process.stdin.flush()
        assert asking.until("withdrawn", "exited").kind == "withdrawn"
        asking.answer("yes", question.id)
        asking.process.stdin.close()
        asking.process.stdin = None
        end(asking, lambda question: "no")
        return state(stage.out) == before, asking.all("done"), asking.all("denied")
    assert play(name, tools, scene) == (True, [], [])


def test_exec_in_another_thread_while_held(name, tools):
    """The held thread is gone with all others of its process."""
    def scene(stage):
        holding = Holding(stage, "open", f"{stage.out}/n")
        holding.asking.process.stdin.write("exec\n")
        holding.asking.process.stdin.flush()
        assert holding.asking.until("withdrawn", "exited").kind == "withdrawn"
        holding.asking.answer("yes", holding.question.id)
        holding.asking.process.stdin.close()
        holding.asking.process.stdin = None
        end(holding.asking, lambda question: "yes")
        return (stage.out / "n").exists()
    assert play(name, tools, scene) is False


def test_a_default_signal_ends_it(name, tools):
    def scene(stage):
        script = "touch $0 & read word; kill $!; wait $!; code=$?; read word; exit $code"
        asking = Asking(stage, "/bin/sh", "-c", script, stage.out / "n", stdin=subprocess.PIPE)
        question = asking.until("asked")
        asking.process.stdin.write("kill\n")
        asking.process.stdin.flush()
        assert asking.until("withdrawn", "exited").kind == "withdrawn"
        asking.answer("yes", question.id)
        asking.process.stdin.close()
        asking.process.stdin = None
        end(asking, lambda question: "yes")
        return asking.process.returncode, (stage.out / "n").exists()
    assert play(name, tools, scene) == (128 + signal.SIGTERM, False)


def test_killed_again_and_again(name, tools):
    """Pids come round: two hundred callers are killed while they are held and each is said yes to when
    another has come."""
    script = ("import os, sys\n"
              "for i in range(200):\n"
              "    r, w = os.pipe()\n"
              "    pid = os.fork()\n"
              "    if not pid:\n"
              "        os.write(w, b'x')\n"
              "        os.open(f'{sys.argv[1]}/d{i}/n', os.O_CREAT | os.O_WRONLY)\n"
              "        os._exit(0)\n"
              "    os.read(r, 1); os.kill(pid, 9); os.waitpid(pid, 0)\n"
              "    os.close(r); os.close(w)\n")

    def scene(stage):
        for number in range(200):
            (stage.out / f"d{number}").mkdir()
        asking = Asking(stage, PYTHON, "-c", script, stage.out)
        late = []

        def judge(question):
            late.append(question.id)
            for number in late[-3:-1]:
                asking.answer("yes", number)
            return None
        end(asking, judge)
        made = [path for path in stage.out.glob("d*/n")]
        return len(made), len(asking.all("done")), asking.process.returncode
    made, done, code = play(name, tools, scene)
    assert made == done == 0 and code == 0


def test_stopped_and_continued_while_held(name, tools):
    def scene(stage):
        script = ("(echo a > $0) & read word; kill -STOP $!; echo stopped; read word; kill -CONT $!; "
                  "wait $!; echo $?")
        asking = Asking(stage, "/bin/bash", "-c", script, stage.out / "n", stdin=subprocess.PIPE)
        question = asking.until("asked")
        asking.process.stdin.write("stop\n")
        asking.process.stdin.flush()
        assert asking.process.stdout.readline() == "stopped\n"
        asking.answer("yes", question.id)
        asking.process.stdin.write("go\n")
        asking.process.stdin.close()
        asking.process.stdin = None
        return end(asking, lambda question: "no"), (stage.out / "n").read_text()
    assert play(name, tools, scene) == ("0\n", "a\n")


def test_answers_to_what_was_never_asked(name, tools):
    def scene(stage):
        asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; echo x > f; echo x > g; echo x > n")
        for number in (0, 99, 2**63, 2**64 - 1):
            asking.answer("yes", number)
        first = asking.until("asked")
        for number in (first.id + 1, first.id + 2, first.id - 1):
            asking.answer("yes", number)
        asking.answer("no", first.id)
        asking.answer("yes", first.id)
        end(asking, lambda question: "no")
        return state(stage.out).get("n"), [(stage.out / name).read_text() for name in "fg"]
    assert play(name, tools, scene) == (None, ["original\n"] * 2)


def test_thousands_at_once(name, tools):
    """Two hundred and fifty-six are held, by thirty-two questions; the rest is refused at once. A no
    ends them all, and the guard goes on."""
    script = ("import os, sys, threading\n"
              "out, lock, codes = sys.argv[1], threading.Lock(), []\n"
              "def make(i):\n"
              "    try: os.open(f'{out}/d{i % 40}/n{i}', os.O_CREAT | os.O_WRONLY)\n"
              "    except OSError as error:\n"
              "        with lock: codes.append(error.errno)\n"
              "threads = [threading.Thread(target=make, args=(i,)) for i in range(2000)]\n"
              "for t in threads: t.start()\n"
              "for t in threads: t.join()\n"
              "print(len(codes), *sorted(set(codes)))\n")

    def scene(stage):
        for number in range(40):
            (stage.out / f"d{number}").mkdir()
        asking = Asking(stage, PYTHON, "-c", script, stage.out)
        waiting = []
        while len(waiting) < 32:
            waiting.append(asking.until("asked"))
        assert not (asking.talk in select.select([asking.talk], [], [], 0.5)[0] and
                    asking.next().kind == "asked")
        for question in waiting:
            asking.answer("no", question.id)
        written = end(asking, lambda question: "no")
        return written.split()[0], len([*stage.out.glob("d*/n*")])
    assert play(name, tools, scene) == ("2000", 0)


def test_many_by_one_yes(name, tools):
    """Two hundred callers wait for the same folder: one question, whose yes is for all."""
    script = f"cd $0; for i in $(seq 200); do (echo $i > n$i) & done; wait"

    def scene(stage):
        asking = Asking(stage, "/bin/bash", "-c", script, stage.out / "open")
        end(asking, lambda question: "yes")
        return len(asking.all("asked")), len([*stage.out.glob("open/n*")]), asking.process.returncode
    assert play(name, tools, scene) == (1, 200, 0)


def test_one_of_two_is_killed(name, tools):
    """The question stays, for the other. That one is held when it sleeps and a later call of another has had
    its answer."""
    script = ("cd $0; (echo 1 > n1) & first=$!; (echo 2 > n2) & "
              "until [[ $(< /proc/$!/stat) == *') S '* ]]; do :; done; mkdir $1/later; echo both; "
              "read word; kill -9 $first; wait $first; echo killed; read word; wait")

    def scene(stage):
        asking = Asking(stage, "/bin/bash", "-c", script, stage.out / "open", stage.ws, stdin=subprocess.PIPE)
        question = asking.until("asked")
        assert asking.process.stdout.readline() == "both\n"
        asking.process.stdin.write("kill\n")
        asking.process.stdin.flush()
        said = iter(asking.process.stdout.readline, "killed\n")  # and what bash says of its job
        assert all("Killed" in line for line in said)
        assert not select.select([asking.talk], [], [], 0.3)[0]
        asking.answer("yes", question.id)
        asking.process.stdin.write("end\n")
        asking.process.stdin.close()
        asking.process.stdin = None
        end(asking, lambda question: "no")
        return sorted(path.name for path in stage.out.glob("open/n*"))
    assert play(name, tools, scene) == ["n2"]


@pytest.mark.parametrize("who", ["guard", "stopped guard", "asker"])
def test_killed_with_calls_that_are_held(name, tools, who):
    def scene(stage):
        before = state(stage.out)
        asking = Asking(stage, "/bin/sh", "-c", f"cd {stage.out}; (echo x > f) & (echo x > g) & wait")
        asking.until("asked")
        asking.until("asked")
        guard = asking.guard()
        pidfd = os.pidfd_open(guard)
        stage.cleanup.callback(os.close, pidfd)
        if who == "stopped guard":
            os.kill(guard, signal.SIGSTOP)
        if who == "asker":
            asking.kill()
        else:
            os.kill(guard, signal.SIGKILL)
            asking.until("unguarded", "exited")  # without answers it may end by itself first
        asking.process.wait(WAIT)
        return wait_for_end(pidfd, WAIT), state(stage.out) == before
    assert play(name, tools, scene) == (True, True)


# --- what a yes does not reach

def test_narrower_entries_stay_closed(name, tools):
    """All of `outside` was said yes to, but for what an entry is about."""
    script = ("cd $0; : > n && echo granted; echo x > sub/f; echo x > sub/n; echo x > secret/f; rm -rf secret; "
              "ln secret/f l; mv sub s; echo x > own/f; rm -rf own; ln -s open miss; mv open miss; "
              ": > miss; mkdir miss; : > miss/own; exit 0")

    def scene(stage):
        asking = Asking(stage, "/bin/sh", "-c", script, stage.out,
                        words=[f"read={stage.out}/sub", f"own={stage.out}/miss/own"])
        written = end(asking, lambda question: "yes" if question.path == f"{stage.out}/n" else "no")
        assert written.startswith("granted\n"), written
        kept = {name: value[3] for name, value in state(stage.out).items() if name != "."}
        return (kept.get("sub/f"), kept.get("secret/f"), kept.get("own/f"),
                (stage.out / "miss").is_symlink(), (stage.out / "miss/own").exists(),
                sorted(Path(question.path).name for question in asking.all("asked")))
    assert play(name, tools, scene) == ("original\n",) * 3 + (False, False, ["f", "n", "n", "sub"])


def test_a_yes_ends_with_its_command(name, tools):
    def scene(stage):
        first = Asking(stage, "/bin/sh", "-c", f"echo a > {stage.out}/n")
        end(first, lambda question: "yes")
        second = Asking(stage, "/bin/sh", "-c", f"echo b > {stage.out}/n")
        end(second, lambda question: "no")
        return (stage.out / "n").read_text(), len(second.all("asked"))
    assert play(name, tools, scene) == ("a\n", 1)


def test_the_granted_folder_is_moved(name, tools):
    """On the host, after the yes: it is no longer what was shown."""
    def scene(stage):
        asking = Asking(stage, "/bin/sh", "-c", "cd $0; : > open/n; echo first; read word; : > open/m; "
                        ": > moved/m; cd open; exit 0", stage.out, stdin=subprocess.PIPE)
        asking.answer("yes", asking.until("asked").id)
        assert asking.process.stdout.readline() == "first\n"
        os.rename(stage.out / "open", stage.out / "moved")
        (stage.out / "open").mkdir()
        asking.process.stdin.write("go\n")
        asking.process.stdin.close()
        asking.process.stdin = None
        end(asking, lambda question: "no")
        return (stage.out / "open/m").exists(), (stage.out / "moved/m").exists()
    assert play(name, tools, scene) == (False, False)


@pytest.mark.parametrize("script", [
    "mount --bind $0 $1/b && echo x > $1/b/f; echo x > $1/b/n; exit 0",
    "mount --bind $0/f $0/open/f; echo x > $0/open/f; exit 0",
    "mount --bind $0 $0/open; echo x > $0/open/f; echo x > $0/open/l; exit 0",
    "mount -t tmpfs t $1/b; mkdir -p $1/b$0; mount --bind $0 $1/b$0; chroot $1/b /x 2>&1; echo x > $1/b$0/f; exit 0",
])
def test_mounts_of_its_own(name, tools, script):
    """What lies elsewhere for the command than for the host is nobody's to say yes to."""
    def scene(stage):
        (stage.ws / "b").mkdir()
        before = state(stage.out)
        whole = f": > $0/open/n; unshare -Urm /bin/sh -c '{script}' $0 $1"
        asking = Asking(stage, "/bin/sh", "-c", whole, stage.out, stage.ws, words=["nested"])
        end(asking, lambda question: "yes" if "open" in question.path else "no")
        return state(stage.out) == before
    assert play(name, tools, scene)


def test_a_folder_with_a_protected_name_stays(name, tools):
    """It would leave its read-only mount behind, and be written to by a yes."""
    def scene(stage):
        stage.file("ws/in/.git/config")
        asking = Asking(stage, "/bin/sh", "-c", "cd $0; : > open/n; mv $1/in open/in; "
                        f"{PYTHON} -c 'import os, sys; os.rename(sys.argv[1], \"open/in\")' $1/in; "
                        "echo x > open/in/.git/config; exit 0", stage.out, stage.ws,
                        words=[f"held={stage.ws}/in/.git"])
        end(asking, lambda question: "yes")
        return (stage.ws / "in/.git/config").read_text()
    assert play(name, tools, scene) == "original\n"


# --- races: with a granted and a denied place in turn; the denied one must never be had

RACES = {
    **{f"text by {how}, {call}": ("race-text", how, call, "{ws}/source", "{out}/open/a", "{out}/sub/b")
       for how in ("thread", "process", "vfork") for call in ("openat", "mkdirat", "symlinkat", "renameat2", "linkat")},
    **{f"source of {call}": ("race-source", call, "{out}/open/source", "{out}/f", "{out}/open/taken")
       for call in ("linkat", "renameat2")},
    **{f"directory by {how}": ("race-dir", how, "openat", "{ws}/source", "{out}/open", "{out}/sub", "b")
       for how in ("cwd", "fd", "proc", "proc-cwd")},
    "names on the way": ("race-swap", "openat", "{ws}/source", "{ws}/folder", "{ws}/link", "b", "{out}/sub/b"),
    "descriptor": ("race-descriptor", "{out}/open/f", "{out}/f"),
    "writing": ("race-write", str(os.O_WRONLY), "{out}/open/f", "{out}/f"),
    "writing, making": ("race-write", str(os.O_WRONLY | os.O_CREAT), "{out}/open/f", "{out}/sub/b"),
}


@pytest.mark.parametrize("what", RACES)
def test_race(name, tools, what):
    def words(stage):
        (stage.ws / "folder").symlink_to(stage.out / "open")
        (stage.ws / "link").symlink_to(stage.out / "sub")
        return [word.format(ws=stage.ws, out=stage.out) for word in RACES[what]]

    def outside(stage):
        before = state(stage.out)
        return stage.attack(*words(stage), 100_000, timeout=60).won or state(stage.out) != before
    assert play(name, tools, outside, inside=False)

    def scene(stage):
        before = state(stage.out)
        asking = Asking(stage, tools / "attacks", *words(stage), TRIES)
        written = end(asking, only_open(stage))
        assert "@start" in written and "@won" not in written, written
        assert state(stage.out) == before, asking.said[-5:]
        made = int(written.partition(" made ")[2].split()[0])
        if not made and "proc" not in what:  # by a way of /proc nothing is done on behalf
            warnings.warn(f"{what}: in {TRIES} tries the harmless branch was never reached")
    play(name, tools, scene)
