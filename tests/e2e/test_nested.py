"""`cordon run` in `cordon run`: it works, is never wider than the one around or than it says itself, and says what it lacks."""
import json
import os
import subprocess
import sys

import pytest

from harness import CORDON
from tools import where

NESTED = 'default_permissions = "n"\n[permissions.n]\nextends = ":workspace"\nallow_nested_namespaces = true\n'
# As root no user namespace can be made in a sandbox: to map root to itself takes a capability.
AROUND = [[]] + ([] if os.geteuid() == 0 else [["--config", "../nested.toml"]])
IDS = ["plain", "namespaces"][:len(AROUND)]

HARM = """
touch new; echo x > new2; mkdir folder; mkfifo pipe; ln -s x soft; ln old hard; mv old moved; rm old; echo x >> old
chmod 777 old; touch -d 2001-01-01 old; truncate -s 0 old; setfattr -n user.a -v b old; echo x > sub/.git; mkdir .codex; : > sub/inner
(exec 3<> old); echo x | dd of=new3 status=none; python3 -c 'import os; os.open("new4", os.O_CREAT | os.O_RDONLY); os.fchmod(os.open("old", 0), 0o777)'
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
"""


@pytest.fixture(autouse=True)
def scene(place):
    (place.base / "nested.toml").write_text(NESTED)
    subprocess.run(["git", "init", "-q", place.ws], check=True, env=place.env)
    (place.ws / "old").write_text("old\n")
    (place.ws / "sub").mkdir()


def tree(folder):
    return {str(path.relative_to(folder)): (path.lstat().st_mode, path.lstat().st_mtime,
                                            path.is_file() and path.read_bytes()) for path in sorted(folder.rglob("*"))}


def nested(place, around, inner, script):
    return place.run("-q", *around, "--", CORDON, "run", *inner, "--", "sh", "-c", script)


@pytest.mark.parametrize("around", AROUND, ids=IDS)
def test_it_works_and_says_what_it_lacks(place, around):
    ran = nested(place, around, ["--tmp", "host"], "echo x > new; cat new; mkdir -p a/b; mv new a/b; chmod 700 a; cp -a a c; ls; rm -r a c old; "
                 "echo x > $TMPDIR/t; cat $TMPDIR/t; python3 -c 'print(1)'; git status --short; exit 7")
    assert ran.returncode == 7, ran
    assert ran.stdout == "x\na\nc\nold\nsub\nx\n1\n"
    assert "weaker" in ran.stderr
    ran = nested(place, around, ["--json"], "true")
    layers = json.loads(ran.stdout)["sandbox"]["layers"]
    assert layers["guard"]["state"] == "partial" and "around" in layers["guard"]["why"]
    assert layers["mount-namespace"]["state"] == ("enforced" if around else "absent")


@pytest.mark.parametrize("around", AROUND, ids=IDS)
def test_it_is_no_wider_than_the_one_around(place, around):
    (place.home / "docs").mkdir()
    before = tree(place.ws / ".git"), tree(place.outside), tree(place.home / "docs")
    ran = nested(place, around, ["-w", "..", "-w", ".git", "-n", "enabled", "--protect", ""],
                 "echo begun; touch ../outside/x; echo x > .git/config; echo x > .git/hooks/new; rm -rf .git; mv .git git; mkdir .codex; "
                 "touch ../home/docs/x; chmod 777 ../outside; kill -9 1; python3 -c 'import socket; "
                 "socket.create_connection((\"127.0.0.1\", 22))'")
    assert ran.stdout == "begun\n", ran
    assert (tree(place.ws / ".git"), tree(place.outside), tree(place.home / "docs")) == before
    assert not (place.ws / ".codex").exists() and not (place.ws / "git").exists()


@pytest.mark.parametrize("around", AROUND, ids=IDS)
def test_read_only_is_read_only(place, around):
    """The guard of the sandbox around makes names, and knows who asks."""
    before = tree(place.ws)
    ran = nested(place, around, ["-p", "read-only"], "echo begun;" + HARM)
    assert ran.stdout == "begun\n" and tree(place.ws) == before, ran.stderr


HIDE = """
import ctypes
ctypes.CDLL(None).prctl(15, b"\\\\" * 15)  # PR_SET_NAME; /proc/PID/status doubles each of them
print("begun", flush=True)
open("made", "w")
"""


def check_read_only_for_a_member_of_many_groups(place):
    """What the guard reads of a process is longer with each group and with a name of backslashes. It once saw no more than
    1 KiB of it: from some number on it took who is in a sandbox for one who is not, from another on none started."""
    (place.ws / "hide.py").write_text(HIDE)
    for count in range(0, 40, 4):
        ran = subprocess.run([CORDON, "run", "-q", "--", CORDON, "run", "-q", "-p", "read-only", "--tmp", "host", "--",
                              sys.executable, "hide.py"], cwd=place.ws, env=place.env, capture_output=True, text=True, check=False,
                             extra_groups=range(1000, 1000 + count))
        assert ran.stdout == "begun\n" and not (place.ws / "made").exists(), (count, ran)


if os.geteuid() == 0:  # nobody else chooses his groups
    test_read_only_for_a_member_of_many_groups = check_read_only_for_a_member_of_many_groups


@pytest.mark.parametrize("around", AROUND, ids=IDS)
def test_a_narrower_workspace_is_narrower(place, around):
    before = {name: what for name, what in tree(place.ws).items() if not name.startswith("sub")}
    ran = nested(place, around, ["-C", "sub"], "echo fine > made; cat made; mkdir .git .codex; touch HEAD; mv made ../made; cd ..; " + HARM)
    assert ran.stdout == "fine\n", ran
    after = tree(place.ws)
    assert {name: what for name, what in after.items() if not name.startswith("sub")} == before
    assert {name for name in after if name.startswith("sub")} <= {"sub", "sub/made", "sub/inner"}


@pytest.mark.parametrize("around", AROUND, ids=IDS)
def test_what_is_denied_inside_is_denied(place, around):
    (place.outside / "key").write_text("the-secret\n")
    ran = nested(place, around, ["--deny", place.outside / "key"], "cat ../outside/key; echo end")
    if around:  # what is not denied around cannot be covered, and then nothing runs
        assert "secret" not in ran.stdout + ran.stderr and ran.returncode in (0, 125)
    else:
        assert ran.stdout == "end\n" and "secret" not in ran.stderr


def test_each_level_holds_what_it_says(place):
    before = tree(place.ws)
    ran = place.run("-q", "--", CORDON, "run", "-q", "-p", "read-only", "--", CORDON, "run", "--", "sh", "-c", "echo begun;" + HARM)
    assert tree(place.ws) == before and ran.stdout in ("begun\n", "")
    ran = place.run("-q", "--", CORDON, "run", "-q", "--", CORDON, "run", "-q", "--", "sh", "-c", "echo x > made; cat made")
    assert ran.stdout == "x\n", ran
    ran = place.shell(f"{CORDON} run -q -p read-only -- touch made2; touch made3; ls made*", "-q")
    assert ran.stdout == "made\nmade3\n"


LEAVE = """
import os, subprocess, sys, time
# of the inner sandbox: goes on when its launcher is killed, which only a process around it can
if os.fork() == 0:
    os.setsid()
    print("up", flush=True)
    sys.stdin.read()
    try: open("orphan", "w")
    except OSError: print("refused", flush=True)
    else: print("won", flush=True)
    os._exit(0)
time.sleep(1000)
"""

KILL = """
import contextlib, os, signal, subprocess, sys
inner = subprocess.Popen([sys.argv[1], "run", "-q", "-p", "read-only", "--", "python3", "-c", sys.argv[2]],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
inner.stdout.readline()
for pid in filter(str.isdigit, os.listdir("/proc")):
    with contextlib.suppress(OSError):  # with one of them others end
        status = open(f"/proc/{pid}/status").read()
        if f"\\nPPid:\\t{inner.pid}\\n" in status:
            os.kill(int(pid), signal.SIGKILL)
inner.wait()
open("by-the-outer", "w")
inner.stdin.close()
print(inner.stdout.read().strip() or "ended")
"""


def test_who_outlives_the_inner_launcher_gets_nothing_more(place):
    ran = place.run("-q", "--", sys.executable if os.geteuid() else "python3", "-c", KILL, CORDON, LEAVE)
    assert ran.stdout.strip() in ("refused", "ended"), ran
    assert not (place.ws / "orphan").exists() and (place.ws / "by-the-outer").exists()


def test_words_to_the_guard_widen_nothing(place):
    """A command says itself what only launchers say: with a map that lets everything be written."""
    script = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
SYS = 258 if os.uname().machine == "x86_64" else 34
def say(fd): return libc.syscall(SYS, fd, None, 0x7473656e)
fd = os.memfd_create("map", os.MFD_ALLOW_SEALING)
os.write(fd, struct.pack("7I", 0x44524743, 6, 29, 0, 0, 0, 1) + b"\\0")
import fcntl
fcntl.fcntl(fd, fcntl.F_ADD_SEALS, 15)
for _ in range(100): say(fd); say(-1); say(-100); say(12345); say(0)
for name in ("made", ".codex", "sub/made"):
    try: open(name, "w")
    except OSError: print("no", name)
    else: print("yes", name)
"""
    ran = place.run("-q", "--", "python3", "-c", script)
    assert ran.stdout == "yes made\nno .codex\nyes sub/made\n", ran  # who has no sandbox of its own says nothing
    ran = nested(place, [], ["-q", "-p", "read-only"], f"python3 -c '{script.replace(chr(39), chr(34))}'")
    assert ran.stdout == "no made\nno .codex\nno sub/made\n", ran


def test_doctor_inside_tells_the_truth(place):
    ran = place.run("-q", "--", CORDON, "doctor", "--json")
    found = json.loads(ran.stdout)
    assert found["verdict"] == "degraded" and found["profiles"]["workspace-write"]
    assert found["layers"]["mount-namespace"]["state"] == "absent" and found["layers"]["guard"]["state"] == "partial"


def test_serve_inside_sandboxes_its_commands(place):
    ran = place.run("-q", "--", "python3", "-c", """
import json, subprocess, sys
server = subprocess.Popen([sys.argv[1], "serve", "--listen", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def call(number, method, params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number: return answer
call(1, "initialize", {"clientName": "test"})
server.stdin.write('{"jsonrpc": "2.0", "method": "initialized", "params": {}}\\n')
for profile in ("workspace-write", "read-only"):
    print(json.dumps(call(profile, "exec/run", {"runId": profile, "argv": ["sh", "-c", "echo x > served; echo ran"], "cwd": "file://" + sys.argv[2],
                                               "sandbox": {"profile": profile}})))
    subprocess.run(["sh", "-c", "ls served; rm -f served"])
""", CORDON, place.ws)
    assert '"workspace-write"' in ran.stdout and ran.stdout.count("served\n") == 1, ran


@where("bwrap")
def test_bubblewrap_inside(place):
    if os.geteuid() == 0:
        return  # AROUND says why
    ran = place.run("-q", "--config", "../nested.toml", "--", "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                    "--unshare-all", "sh", "-c", "echo ran; touch new")
    assert ran.stdout == "ran\n" and not (place.ws / "new").exists()


def test_a_device_is_opened_as_if_to_make_it(place):
    """Where the kernel itself would make names, the guard opens what every command may."""
    ran = place.shell("echo > /dev/null && echo fine; echo x > /dev/new; echo x > .git/config", "-q", "--config", "../nested.toml")
    assert ran.stdout == "fine\n" and not os.path.exists("/dev/new"), ran
