"""Shells inside: scripts, job control on a terminal, and small tools that need something special."""
import os
import re
import select

import pytest

from harness import WAIT, finish
from tools import PYTHON, need, passes


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish"])
def test_shells(place, shell):
    need(shell)
    ran = place.run("--", shell, "-c", "echo a | tr a b; cat < /etc/hostname > copy; exit 3")
    assert ran.returncode == 3
    assert ran.stdout == "b\n"
    assert (place.ws / "copy").read_text()


def test_here_documents_and_substitutions(place):
    need("bash")
    script = "cat <<END | sort\nb\na\nEND\ndiff <(echo 1) <(echo 2) | head -1; coproc cat; " \
             "echo hi >&${COPROC[1]}; read -u ${COPROC[0]} line; echo $line"
    assert passes(place.run("--", "bash", "-c", script)) == "a\nb\n1c1\nhi\n"


def test_background_jobs_and_traps(place):
    script = "trap 'echo trapped' TERM; kill $$ & wait $!; echo after; " \
             "trap 'echo bye' EXIT"
    assert passes(place.shell(script)) == "trapped\nafter\nbye\n"


def type_in(process, text, wanted):
    """Types, and reads until what is wanted shows; what came."""
    process.stdin.write(text)
    process.stdin.flush()
    seen = b""
    while wanted not in seen:
        ready = select.select([process.stdout], [], [], WAIT)[0]
        assert ready, f"{wanted!r} does not come: {seen!r}"
        more = os.read(process.stdout.fileno(), 65536)
        assert more, f"the end came before {wanted!r}: {seen!r}"
        seen += more
    return seen


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_job_control_on_a_terminal(place, shell):
    """Ctrl-Z stops the foreground job and not the shell; fg brings it back; Ctrl-C ends it."""
    need(shell)
    flags = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    # a pipe and not pause(), which sleeps on when the signal has come right before it
    (place.ws / "job").write_text("import os, signal\n"
                                  "told, tells = os.pipe()\n"
                                  "os.set_blocking(tells, False)\n"
                                  "signal.set_wakeup_fd(tells)\n"
                                  "signal.signal(signal.SIGCONT, lambda *_: print('back'))\n"
                                  "print('running')\n"
                                  "while True: os.read(told, 1)\n")
    process = place.start("run", "--tty", "--", shell, *flags, env={"PS1": "ready> ", "TERM": "dumb"})
    seen = type_in(process, b"", b"ready> ")
    assert b"no job control" not in seen and b"can't set" not in seen
    type_in(process, f"{PYTHON} -u job\n".encode(), b"running")
    stopped = type_in(process, b"\x1a", b"ready> ")
    assert re.search(rb"(?i)stopped|suspended", stopped), stopped
    assert re.search(rb"(?i)stopped|suspended", type_in(process, b"jobs\n", b"ready> "))
    type_in(process, b"fg\n", b"back")
    type_in(process, b"\x03", b"ready> ")
    type_in(process, b"echo all right, status $?\n", b"all right, status 130")
    process.stdin.write(b"exit 7\n")
    process.stdin.flush()
    finish(process, 7)


def test_terminal_by_name(place):
    out = passes(place.run("--tty", "--", "sh", "-c",
                           "tty; test -t 0 && echo terminal; echo by-name >/dev/tty; "
                           "stty size >/dev/null && echo size; test \"$(readlink -f /dev/fd/0)\" = \"$(tty)\" && echo same"))
    words = out.split()
    assert words[0].startswith("/dev/")
    assert words[1:] == ["terminal", "by-name", "size", "same"]


def test_terminals_of_its_own(place):
    """script(1) makes a pseudo-terminal inside."""
    need("script")
    out = passes(place.run("--", "script", "-qec", "tty", "/dev/null"))
    assert out.strip() == "/dev/pts/0"


def test_ssh_keygen(place):
    """It wants the user to have an account; where it refuses, it has to do so outside too."""
    need("ssh-keygen")
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]
    outside = place.run("--sandbox", "disabled", "--", *make, "bare")
    inside = place.run("--", *make, "key")
    assert inside.returncode == outside.returncode
    if outside.returncode != 0:
        assert "No user exists for uid" in inside.stderr
        return
    out = passes(place.run("--", "ssh-keygen", "-lf", "key.pub"))
    assert out.startswith("256 SHA256:") and "test (ED25519)" in out
    assert (place.ws / "key").stat().st_mode & 0o777 == 0o600


def test_who_and_where(place):
    out = passes(place.shell("id -u; id -g; pwd; whoami 2>/dev/null || id -u; hostname"))
    lines = out.splitlines()
    assert lines[:3] == [str(os.getuid()), str(os.getgid()), str(place.ws)]
    assert len(lines) == 5


def test_locale(place):
    out = passes(place.shell("locale | grep LC_CTYPE; printf '\\303\\244\\n' | wc -m; locale charmap",
                             env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}))
    assert out.split("\n")[1:3] == ["2", "UTF-8"]


def test_processes_are_its_own(place):
    need("ps")
    out = passes(place.shell("sleep 1000 & ps -e -o pid=,comm= | sort -n | tr -s ' '"))
    names = [line.split()[1] for line in out.splitlines()]
    assert names[0].startswith("cordon")
    assert len(names) <= 6 and "ps" in names
    assert set(names[1:]) <= {"sh", "sleep", "ps", "sort", "tr"}  # sh: before the exec


def test_nice_timeout_and_nohup(place):
    need("timeout", "nice")
    out = passes(place.shell("timeout 0.2 sleep 1000; echo $?; nice -n 5 nice; "
                             "nohup sh -c 'echo kept' 2>/dev/null; setsid -w echo session"))
    nicer = min(os.nice(0) + 5, 19)  # whoever runs the tests may be nice already
    assert out == f"124\n{nicer}\nkept\nsession\n"


def test_a_full_environment_of_a_login(place):
    """A large environment and argument list reach the command as they are."""
    env = {f"VARIABLE_{i}": "x" * 900 for i in range(200)}
    script = "env | grep -c ^VARIABLE_; echo $#; echo ${#1}"
    ran = place.run("--", "sh", "-c", script, "sh", "y" * 100000, *map(str, range(2000)), env=env)
    assert passes(ran) == "200\n2001\n100000\n"
