"""Signals where there is no pid namespace: Landlock refuses those to processes outside, and each that would
have worked without it is told."""

import json

import pytest

import identity
from stage import CORDON, Stage

NO_NAMESPACES = [name for name in identity.here() if not identity.has_namespaces(name)]

# All the ways that there are.
SENDER = """
import ctypes, errno, os, struct, sys
NUMBERS = {"kill": (62, 129), "rt_sigqueueinfo": (129, 138), "tkill": (200, 130), "tgkill": (234, 131),
           "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424)}
libc = ctypes.CDLL(None, use_errno=True)
def send(call, pid, number=23, code=-1):  # SIGURG, which nobody minds; as by sigqueue(3)
    info = ctypes.create_string_buffer(struct.pack("iii", number, 0, code), 128)
    fd = os.pidfd_open(pid) if call == "pidfd_send_signal" else -1
    args = {"kill": (pid, number), "tkill": (pid, number), "tgkill": (pid, pid, number),
            "rt_sigqueueinfo": (pid, number, info), "rt_tgsigqueueinfo": (pid, pid, number, info),
            "pidfd_send_signal": (fd, number, None, 0)}[call]
    if libc.syscall(NUMBERS[call][os.uname().machine == "aarch64"], *args) < 0:
        return errno.errorcode[ctypes.get_errno()]
    return "sent"
"""

ONE = SENDER + "print(send(sys.argv[1], int(sys.argv[2])))"

# Its own processes: itself, a child, its group, what it has left, and who has left it.
OWN = "import os, signal\nwhom = os.getpid()" + SENDER + """
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    if os.fork() == 0:
        os.setsid()
        os.close(reading)
        print(send("kill", whom), flush=True)
        os.write(writing, str(os.getpid()).encode())
        os.close(writing)
        signal.pause()
    os._exit(0)
os.waitpid(child, 0)
orphan = int(os.read(reading, 20))
for call in NUMBERS:
    print(send(call, whom), send(call, orphan))
print(send("kill", 0), send("kill", -os.getpgrp()), send("kill", -orphan))
os.kill(orphan, 9)
"""

# What fails outside of the sandbox, too.
FAILING = SENDER + """
victim = int(sys.argv[1])
print(send("kill", 2 ** 22 - 3), send("kill", victim, 65), send("rt_sigqueueinfo", victim, code=0),
      send("tgkill", 2 ** 22 - 3))
if os.geteuid():
    print(send("kill", 1))
"""

CALLS = ("kill", "rt_sigqueueinfo", "tkill", "tgkill", "rt_tgsigqueueinfo", "pidfd_send_signal")

pytestmark = pytest.mark.parametrize("name", NO_NAMESPACES)


@pytest.fixture(autouse=True)
def need_cordon(lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")


def play(name, tools, *words, inside=True):
    """What python with these words and the pid of a process outside says, and what is said of refusals."""
    def scene():
        with Stage(name, inside, tools) as stage:
            flags = ["--json", "--profile", "read-only"]
            ran = stage.run("/usr/bin/python3", "-c", *words, stage.victim().pid, cordon=flags)
            assert ran.out, ran
            result = json.loads(ran.out) if inside else {"stdout": ran.out, "denials": []}
            return result["stdout"].split(), result["denials"]
    return identity.play(name, scene)


@pytest.mark.parametrize("call", CALLS)
def test_a_refused_signal_is_a_fact(name, tools, call):
    assert play(name, tools, ONE, call, inside=False) == (["sent"], [])
    said, denials = play(name, tools, ONE, call)
    assert said == ["EPERM"]
    assert [(denial["operation"], denial["evidence"], denial["path"], denial["errno"], denial["call"],
             denial["program"]) for denial in denials] == \
        [("signal", "fact", "attacks", "EPERM", call, "python3")]
    assert "only processes that it started itself" in denials[0]["remedy"]


def test_own_processes_are_not_told(name, tools):
    said, denials = play(name, tools, OWN)
    assert (set(said), len(said), denials) == ({"sent"}, 16, [])


def test_what_fails_by_itself_is_not_told(name, tools):
    outside = play(name, tools, FAILING, inside=False)
    assert outside[0][:4] == ["ESRCH", "EINVAL", "EPERM", "ESRCH"]
    assert play(name, tools, FAILING) == outside


def test_the_init_of_the_sandbox_is_outside(name, tools):
    said, denials = play(name, tools, SENDER + "print(send('kill', os.getppid()))")
    assert said == ["EPERM"]
    assert [denial["path"] for denial in denials] == ["cordon-linux-sa"]
