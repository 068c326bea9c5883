"""Processes that outlive the command, the launcher or Cordon."""

import os
import signal
import subprocess
import uuid
from pathlib import Path

from catalogue import attack
from stage import WAIT


def mark():
    return f"escape-{uuid.uuid4().hex}"


def children(pid):
    """Pids of the direct children, in the order of their birth."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text("utf-8", "replace")
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry))
    return sorted(found)


def lasting(stage, kind, end, flags=()):
    """Starts a stubborn attack in front of a shell (bare) or of Cordon, ends that by `end(process)`
    and tells what is still alive."""
    name = mark()
    words = [stage.tools / "attacks", kind, name]
    argv = words if stage.inside else ["/bin/sh", "-c", '"$@"; true', "sh", *words]
    process = stage.start(*argv, cordon=flags)
    stage.note_until(process, "@up")
    return stage.outlives(name, lambda: end(process))


def kill_all(process, number):
    """Signals the front process only, and waits for it."""
    process.send_signal(number)
    process.wait(20)


@attack(holes=(16,))
def outlive_the_command_as_a_daemon(stage):
    name = mark()
    stage.attack("daemon", name)
    return stage.remains(name)


@attack()
def outlive_the_command_holding_its_pipe(stage):
    """The reader must not wait for it either."""
    name = mark()
    ran = stage.attack("hold", name, timeout=WAIT if stage.inside else 0.5)
    return stage.remains(name) or ran.code is None


@attack(holes=(4,))
def outlive_a_killed_cordon(stage):
    return lasting(stage, "linger", lambda process: kill_all(process, signal.SIGKILL))


@attack(holes=(4,))
def outlive_a_terminated_cordon(stage):
    return lasting(stage, "linger", lambda process: kill_all(process, signal.SIGTERM))


@attack(holes=(4,))
def outlive_a_hung_up_cordon(stage):
    return lasting(stage, "linger", lambda process: kill_all(process, signal.SIGHUP))


@attack(holes=(4,))
def outlive_a_killed_launcher(stage):
    """The first process below Cordon; bare, below the shell."""
    def end(process):
        for pid in children(process.pid) if stage.inside else [process.pid]:
            stage.send(pid)  # which Cordon may have ended and reaped because of the one before
        process.wait(20)
    return lasting(stage, "linger", end)


@attack(holes=(4, 16))
def outlive_as_a_changing_process(stage):
    """Each process forks the next and ends: no list of pids is ever right."""
    return lasting(stage, "breed", lambda process: kill_all(process, signal.SIGKILL))


@attack(unheld="without a pid namespace nothing but the launcher ends what the command started")
def outlive_with_a_stopped_init(stage):
    """A launcher that is stopped cannot act; the kernel still can."""
    def end(process):
        for pid in children(process.pid) if stage.inside else []:
            stage.send(pid, signal.SIGSTOP)
        kill_all(process, signal.SIGKILL)
    return lasting(stage, "linger", end)


@attack()
def outlive_a_timeout(stage):
    """--timeout ends everything, also what ignores signals in a session of its own."""
    def end(process):
        if not stage.inside:
            process.kill()
        process.wait(WAIT)
    return lasting(stage, "breed", end, flags=["--timeout", "2s", "--kill-after", "100ms"])


@attack()
def outlive_a_signal_to_the_group(stage):
    """Ctrl-C reaches the group of the terminal; the command sits in another session."""
    def end(process):
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(1 if stage.inside else 0.2)
        except subprocess.TimeoutExpired:  # it may well go on, in charge of its command
            process.kill()
            process.wait()
    name = mark()
    words = [stage.tools / "attacks", "linger", name]
    argv = words if stage.inside else ["/bin/sh", "-c", '"$@"; true', "sh", *words]
    process = stage.start(*argv, start_new_session=True)
    stage.note_until(process, "@up")
    return stage.outlives(name, lambda: end(process))
