"""Every system call of the sandbox's set-up, made to fail: the command either runs with all that it
should be held by, or it does not run, and Cordon says what failed.

strace makes the N-th call of a kind fail, in every process of the run (`cordon`, the launcher, the
command's process before and after its program starts). Which calls there are, and how many, is taken
from a trace of a run without a fault, so nobody has to keep a list.
"""
import collections
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import WAIT, Place
from tools import need

PROBE = Path(__file__).parent / "probes/layers.c"
NAMESPACES = ("user", "mnt", "pid", "ipc", "net", "uts", "cgroup")

# Their failure means nothing, or cannot be made to happen one at a time.
LEFT_OUT = {"close", "munmap", "exit_group", "exit", "brk", "arch_prctl", "set_tid_address", "futex",
            "set_robust_list", "rseq", "poll", "restart_syscall", "rt_sigreturn", "wait4", "waitid"}

# A call that has to be there, or the trace was not understood.
EXPECTED = {"openat2", "open_tree", "move_mount", "mount_setattr", "fsopen", "fsconfig", "fsmount",
            "mkdirat", "symlinkat", "prctl", "capset", "keyctl", "ioctl", "landlock_create_ruleset",
            "landlock_add_rule", "landlock_restrict_self", "seccomp", "vfork", "execve", "setsid",
            "signalfd4", "close_range", "prlimit64", "chdir", "fstat", "mmap", "recvmsg"}


class Scene:
    """One workspace in which the probe finds something for each layer to hold."""

    def __init__(self):
        need("strace", "gcc")
        self.place = Place()
        place = self.place
        (place.outside / "victim").write_text("original")
        os.mkfifo(place.outside / "fifo")
        (place.ws / "secret").write_text("secret")
        self.probe = place.base / "probe"
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-static", "-O1", "-o", self.probe, PROBE], check=True)
        hosts = [os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES]
        self.command = ["run", "--deny", "secret", "--max-file-size", "1M", "--stdin", "null", "--",
                        str(self.probe), str(place.outside), "secret", str(os.getpid()), *hosts]

    def run(self, *strace):
        """(exit status, output, messages) of one run under strace."""
        with tempfile.NamedTemporaryFile() as trace:
            words = ["strace", "-f", "-o", trace.name, *strace, "--"]
            ran = self.place.cordon(*words[1:], str(self.cordon()), *self.command, program=words[0])
            return ran, Path(trace.name).read_text(errors="replace")

    @staticmethod
    def cordon():
        from harness import CORDON
        return CORDON


@pytest.fixture(scope="module")
def scene():
    scene = Scene()
    with scene.place.cleanup:
        yield scene


def count_calls(trace):
    """{name: how often} for the launcher until the command runs: the largest count of one process."""
    line = re.compile(r"(\d+)\s+(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*)")
    launchers, over, counts = set(), set(), collections.defaultdict(collections.Counter)
    for text in trace.splitlines():
        match = line.match(text)
        if not match:
            continue
        pid, call, rest = match.groups()
        if call == "execve" and "cordon-linux-sandbox" in rest:
            launchers.add(pid)
        if call in ("vfork", "clone", "clone3", "fork") and pid in launchers:
            child = re.search(r"= (\d+)$", text)
            launchers |= {f"child of {pid}"} if child else set()
        if "resumed>" not in text.split("(")[0]:
            counts[pid][call] += 1
        if call == "execve" and "probe" in rest:
            over.add(pid)
    # the launcher, and the process that executed the probe
    wanted = launchers | over
    most = collections.Counter()
    for pid in wanted:
        for call, count in counts[pid].items():
            most[call] = max(most[call], count)
    return most
