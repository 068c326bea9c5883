"""Every system call of the sandbox's set-up, made to fail: the command either runs with all that it
should be held by, or it does not run, and Cordon says what failed.

strace makes the N-th call of a kind fail, in each process of the run (`cordon`, the launcher, the
command's process before and after its program starts). Which calls there are, and how many, is taken
from a trace of a run without a fault, so nobody has to keep a list.
"""
import collections
import os
import re
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import CORDON, Place
from tools import need

PROBE = Path(__file__).parent / "probes/layers.c"
NAMESPACES = ("user", "mnt", "pid", "ipc", "net", "uts", "cgroup")

# Their failure takes nothing away, or ends the process anyhow.
LEFT_OUT = {"close", "munmap", "brk", "exit_group", "rt_sigaction", "rt_sigprocmask", "arch_prctl",
            "set_tid_address", "getpid", "getppid", "umask", "restart_syscall",
            "mmap"}  # of `cordon`, the first ones are the loader's

# What has to be among them, or the trace was not understood.
EXPECTED = {"capset", "chdir", "close_range", "execve", "fsconfig", "fsmount", "fsopen", "fstat",
            "ioctl", "keyctl", "landlock_add_rule", "landlock_create_ruleset",
            "landlock_restrict_self", "mkdirat", "mount_setattr", "move_mount", "open_tree",
            "openat2", "prctl", "recvmsg", "seccomp", "setsid", "signalfd4", "socket", "symlinkat",
            "vfork"}


class Scene:
    """A workspace in which the probe finds something for each layer to hold."""

    def __init__(self, *options):
        need("strace", "gcc")
        self.place = place = Place()
        (place.outside / "victim").write_text("original")
        os.mkfifo(place.outside / "fifo")
        server = place.cleanup.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(str(place.outside / "socket"))
        server.listen()
        (place.ws / "secret").write_text("secret")
        probe = place.base / "probe"
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-static", "-O1", "-o", probe, PROBE], check=True)
        hosts = [os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES]
        self.command = [CORDON, "run", *options, "--deny", "secret", "--max-file-size", "1M", "--stdin",
                        "null", "--", probe, place.outside, "secret", os.getpid(), *hosts]

    def run(self, *strace):
        """One run under strace, and the trace."""
        with tempfile.NamedTemporaryFile() as trace:
            ran = self.place.cordon("-f", "-o", trace.name, *strace, "--", *self.command,
                                    program="strace")
            return ran, Path(trace.name).read_text(errors="replace")

    def fail(self, call, number, error):
        ran, _ = self.run("-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}")
        return ran

    def calls(self):
        """{call: how often} of the set-up, from a run without a fault."""
        ran, trace = self.run()
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "held\n", ""), ran
        return setup_calls(trace)


def setup_calls(trace):
    """Counts the calls of the launcher until its command runs, and of the command's process until it
    executes the program; of a call that both make, the larger count."""
    lines = [match.groups() for match in re.finditer(r"^(\d+) +(\w+)\((.*)$", trace, re.MULTILINE)]
    counts = collections.defaultdict(collections.Counter)
    last = {"cordon-linux-sandbox": "vfork", "/probe": "execve"}  # the last call that counts
    most = collections.Counter()
    for program, end in last.items():
        pid = next(pid for pid, call, rest in lines if call == "execve" and f"{program}\"" in rest)
        for caller, call, _ in lines:
            if caller == pid:
                counts[pid][call] += 1
                if call == end and counts[pid]["setsid" if end == "execve" else end]:
                    break
        most |= counts[pid]
    return {call: count for call, count in most.items() if call not in LEFT_OUT}


@pytest.fixture(scope="module")
def scene():
    scene = Scene()
    with scene.place.cleanup:
        yield scene


@pytest.fixture(scope="module")
def empty_root():
    """The same with a profile for which a root is built from nothing."""
    scene = Scene("--profile", "built")
    with scene.place.cleanup:
        scene.place.config(f"""
[permissions.built.filesystem]
":minimal" = "read"
":workspace_roots" = "write"
"{scene.place.base}/probe" = "read"
""")
        yield scene


# What a run may go without, and the word that has to stand in the message then.
SAID = [(r"LEAK: user:\S+", "user namespaces"),
        (r"LEAK: a FIFO outside can be written \(Landlock\)", "Landlock"),
        # with no_new_privs nothing can be had from it; without CAP_SETPCAP it cannot be emptied
        (r"LEAK: the bounding set is not empty", "")]


def is_silent(leak, ran):
    return not any(re.fullmatch(line, leak) and word in ran.stderr for line, word in SAID)


def problem(ran):
    """What is wrong with a run in which something failed; None when nothing is."""
    if ran.stdout not in ("", "held\n"):
        leaks = [line for line in ran.stdout.splitlines() if is_silent(line, ran)]
        return f"it runs, and {leaks}" if leaks else None
    if ran.returncode == 0:
        return None if ran.stdout else "it did not run, and nobody says so"
    if ran.returncode == 128 + signal.SIGSYS:
        return None  # strace turned a call of the program into one that its filter kills
    if ran.returncode not in (125, 126, 127):
        return f"a strange end: {ran.returncode} {ran.stdout!r} {ran.stderr!r}"
    return None if ran.stderr.startswith("cordon: ") else f"nothing is said: {ran.stderr!r}"


def is_mute(ran, call):
    """The fault hit the message, too: strace counts the calls of each process by itself."""
    return call == "write" and ran.returncode == 125 and not ran.stdout + ran.stderr


def fail_everything(scene, error, expected):
    """Makes every call of the set-up fail once, and judges each run."""
    calls = scene.calls()
    assert expected <= calls.keys(), expected - calls.keys()
    problems, stopped = [], 0
    for call, count in sorted(calls.items()):
        for number in range(1, count + 1):
            ran = scene.fail(call, number, error)
            found = None if is_mute(ran, call) else problem(ran)
            stopped += ran.returncode == 125
            if found:
                problems.append(f"{call} {number}: {found}")
    assert not problems, "\n".join([f"{len(problems)} problems", *problems])
    assert stopped > len(calls)  # most faults are noticed; or nothing was injected
    assert sorted(path.name for path in scene.place.ws.iterdir()) == ["secret"]


@pytest.mark.parametrize("error", ["EPERM", "ENOMEM"])
def test_no_fault_takes_a_layer_away(scene, error):
    fail_everything(scene, error, EXPECTED)


def test_no_fault_takes_a_layer_away_in_an_empty_root(empty_root):
    fail_everything(empty_root, "EACCES", EXPECTED | {"pivot_root", "umount2", "fchdir"})


@pytest.mark.parametrize("call, number, words", [
    ("move_mount", 1, "setting the sandbox up"),
    ("mount_setattr", 1, "cutting mount events off"),
    ("open_tree", 1, "/dev/null"),
    ("fsopen", 1, "tmpfs"),
    ("symlinkat", 1, "/dev/fd"),
    ("keyctl", 1, "session keyring"),
    ("capset", 1, "capabilities"),
    ("ioctl", 1, "loopback"),
    ("landlock_restrict_self", 1, "Landlock"),
    ("seccomp", 1, "seccomp filter"),
    ("signalfd4", 1, "signal"),
    ("prlimit64", 2, "limit"),
])
def test_the_message_names_the_step(scene, call, number, words):
    """An errno that no lack of a layer has, so that nothing weaker is tried."""
    ran = scene.fail(call, number, "ENOMEM")
    assert ran.returncode == 125, ran
    assert words in ran.stderr
    assert re.search("(Cannot allocate|Out of) memory", ran.stderr)  # glibc's and musl's word
    assert ran.stdout == ""


def test_a_kernel_without_keyrings(scene):
    ran = scene.fail("keyctl", 1, "ENOSYS")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "held\n", "")


def test_a_program_that_cannot_be_executed(scene):
    """The command's own failure is not taken for one of the sandbox."""
    ran = scene.fail("execve", 1, "EACCES")
    assert ran.returncode in (125, 126)
    assert ran.stdout == ""
