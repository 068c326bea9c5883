"""The guard stopped, killed and kept busy, from outside and from inside: a command never gets what it
would not have got, and none goes on without its guard.

    CORDON_GUARD_KILLS   how often it is killed at a random moment (12)
    CORDON_GUARD_SEED    of the moments
"""

import os
import random
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

import identity
from events import wait_for_end
from processes import children, name_of
from stage import CORDON, WAIT, Stage

KILLS = int(os.environ.get("CORDON_GUARD_KILLS", "12"))
SEED = int(os.environ.get("CORDON_GUARD_SEED", "1"))
WHOLE = [name for name in identity.here() if identity.is_whole(name)]
MANY = 1_000_000_000
HELD = 1500  # calls at once

pytestmark = pytest.mark.parametrize("name", WHOLE)


@pytest.fixture(autouse=True)
def need_cordon(lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")


def guard_of(process):
    """It is started beside the command, which may be there first."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        for pid in children(process.pid):
            if name_of(pid) == "cordon-guard":
                return pid
        time.sleep(0.01)
    raise AssertionError(f"no guard below {process.pid}: {[*map(name_of, children(process.pid))]}")


def play(name, tools, scene):
    def whole():
        with Stage(name, True, tools) as stage:
            return scene(stage)
    return identity.play(name, whole)


def storm(stage, threads=4, name=".git"):
    """A command that asks the guard all the time; the guard is there and has been asked."""
    process = stage.start(stage.tools / "attacks", "storm", threads, MANY, stage.ws / name)
    stage.note_until(process, "@start")
    return process, guard_of(process)


def test_a_command_ends_with_its_guard(name, tools):
    def scene(stage):
        process, guard = storm(stage)
        os.kill(guard, signal.SIGKILL)
        ran = stage.finish(process)
        return ran.code, ran.err, os.listdir(stage.ws)
    code, said, left = play(name, tools, scene)
    assert code not in (0, None) and left == [] and "guard" in said


def test_killed_at_random_moments(name, tools):
    def scene(stage):
        chance = random.Random(SEED)
        codes = []
        for _ in range(KILLS):
            process, guard = storm(stage)
            select.select([], [], [], chance.uniform(0, 0.02))
            os.kill(guard, signal.SIGKILL)
            codes.append(stage.finish(process).code)
        return codes, os.listdir(stage.ws)
    codes, left = play(name, tools, scene)
    assert left == [] and all(code not in (0, None) for code in codes)


def test_a_stopped_guard_answers_nothing(name, tools):
    """What it is asked meanwhile waits; the command can still be ended."""
    def scene(stage):
        process, guard = storm(stage)
        pidfd = os.pidfd_open(guard)
        stage.cleanup.callback(os.close, pidfd)
        os.kill(guard, signal.SIGSTOP)
        select.select([], [], [], 0.05)
        still = process.poll() is None
        process.send_signal(signal.SIGTERM)
        ended = stage.finish(process)
        os.kill(guard, signal.SIGCONT)
        return still, ended.code, os.listdir(stage.ws), wait_for_end(pidfd, WAIT)
    still, code, left, is_gone = play(name, tools, scene)
    assert still and code not in (0, None) and left == [] and is_gone


def test_a_stopped_guard_goes_on(name, tools):
    def scene(stage):
        process = stage.start("/bin/sh", "-c", "echo @start; read line; mkdir a; mkdir .git; echo end",
                              stdin=subprocess.PIPE)
        stage.note_until(process, "@start")
        guard = guard_of(process)
        os.kill(guard, signal.SIGSTOP)
        process.stdin.write("\n")
        process.stdin.flush()
        waits = not select.select([process.stdout], [], [], 0.2)[0]
        before = os.listdir(stage.ws)
        os.kill(guard, signal.SIGCONT)
        ran = stage.finish(process)
        return waits, before, ran.out, os.listdir(stage.ws)
    assert play(name, tools, scene) == (True, [], "end\n", ["a"])


def test_many_calls_that_are_held(name, tools):
    """More than a thousand threads wait; none gets a yes, neither from it nor by its death."""
    def scene(stage):
        for number in (signal.SIGCONT, signal.SIGKILL):
            process = stage.start(stage.tools / "attacks", "storm", HELD, 3, stage.ws / ".git")
            stage.note_until(process, "@start")
            guard = guard_of(process)
            os.kill(guard, signal.SIGSTOP)
            select.select([], [], [], 0.3)
            os.kill(guard, number)
            ran = stage.finish(process, timeout=3 * WAIT)
            assert ran.code is not None
        return os.listdir(stage.ws)
    assert play(name, tools, scene) == []


def test_a_fifo_does_not_keep_it(name, tools):
    """Opened as if to make it, for writing: the caller waits for a reader, and nobody else does."""
    script = ("mkfifo fifo; (echo x > fifo) & (exec 3<> fifo; exec 3>&-); mkdir one; (: > fifo) & "
              "mkdir two; ln -s fifo link; (: > link) & mkdir three; kill %1 %2 %3; echo done")

    def scene(stage):
        ran = stage.run("/bin/sh", "-c", script)
        return ran.out, sorted(os.listdir(stage.ws))
    assert play(name, tools, scene) == ("done\n", ["fifo", "link", "one", "three", "two"])


def test_all_killed(name, tools):
    """Cordon, launcher, guard and command, at once and at any moment: nothing is left, nothing was
    there."""
    def scene(stage):
        chance = random.Random(SEED)
        for _ in range(KILLS):
            process, guard = storm(stage)
            pidfd = os.pidfd_open(guard)
            stage.cleanup.callback(os.close, pidfd)
            select.select([], [], [], chance.uniform(0, 0.01))
            line = [process.pid, *children(process.pid)]
            for pid in chance.sample(line, len(line)):
                stage.send(pid)
            stage.finish(process)
            assert wait_for_end(pidfd, WAIT)
        return os.listdir(stage.ws), stage.appeared
    assert play(name, tools, scene) == ([], [])
