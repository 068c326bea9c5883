"""After many runs, half of them killed at random moments, and one more run that ends by itself:
nothing is left of any - no process, mount, cgroup, file, temporary folder - and in the workspace and
in the temporary folders nothing of Cordon's was there at any moment.

    CORDON_LEFTOVER_RUNS   how many (200)
    CORDON_LEFTOVER_SEED   of the random choices (printed when something is left)

Processes are counted exactly: the playing process is a subreaper, so whatever loses its parent
becomes its child. Moments are drawn between the start of Cordon and a little after the command's
first words.
"""

import os
import random
import re
import select
import signal
import time
from pathlib import Path

import pytest

import events
import identity
from processes import children
from stage import CORDON, IN_LAYER, LAUNCHER, WAIT, Stage
from watch import Watch

RUNS = int(os.environ.get("CORDON_LEFTOVER_RUNS", "200"))
SEED = int(os.environ.get("CORDON_LEFTOVER_SEED", "1"))
QUIET = ("true", "daemon", "hold", "write")
STUBBORN = ("linger", "breed", "daemon", "hold", "write")


def command(stage, kind, number):
    attacks = stage.tools / "attacks"
    if kind == "true":
        return ["/bin/true"]
    if kind == "write":
        return ["/bin/sh", "-c", "echo @start; mkdir -p mine/b; rm -r mine; echo x > /dev/shm/x"]
    return [attacks, kind, f"left-{number}"]


def family(pid):
    """The process, its launcher, the command: whoever is there at this moment."""
    found = [pid]
    for each in found:
        found += children(each)
        if len(found) > 3:
            break
    return found[:3]


def strike(chance, process):
    """Kills the CLI, its launcher, or both, at a random moment."""
    if chance.random() < 0.5:
        select.select([process.stdout], [], [], 2)  # until the first words
        pause = chance.uniform(0, 0.004)
    else:
        pause = chance.uniform(0, 0.02)
    select.select([], [], [], pause)
    victims = family(process.pid)[:2]
    chance.shuffle(victims)
    for pid in victims[:chance.choice((1, 1, 2))]:
        Stage.send(pid, signal.SIGKILL if chance.random() < 0.8 else signal.SIGTERM)


OWNER = re.compile(r"cordon-(\d+)-\d+")
LAYERS = "/.local/state/cordon"  # of whom was killed, until somebody looks after them


def listing(*folders):
    return sorted(str(path) for folder in folders for path in Path(folder).rglob("*"))


def cgroups_of(pids):
    """Those whose owner is gone. Other tests, and the one that plays systemd, have theirs at the same time."""
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if (owner := OWNER.fullmatch(os.path.basename(path)))
            and int(owner[1]) in pids and not os.path.exists(f"/proc/{owner[1]}")]


def mounts():
    return Path("/proc/self/mountinfo").read_text("utf-8")


def alive():
    """What still lives when everything that dies has had the time to."""
    deadline = time.monotonic() + WAIT
    with events.child_ends() as wait:
        while identity.reap() and wait(deadline - time.monotonic()):
            pass
    return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in identity.own_children()]


def left_behind(name, tools):
    """A list of what is left; empty as it should be."""
    chance = random.Random(SEED)
    with Stage(name, True, tools) as stage:
        runtime = stage.base / "run"
        runtime.mkdir(mode=0o700)
        stage.env["XDG_RUNTIME_DIR"] = str(runtime)
        stage.file("ws/kept/file")
        (stage.ws / ".agents").mkdir()
        for _ in range(2):  # makes what Cordon keeps for itself; the first one empties it, too
            stage.run("/bin/true")
        places = [stage.ws, stage.tmp, stage.home, stage.out, runtime, "/tmp", "/dev/shm"]
        before = listing(*places), mounts()
        watch = Watch()
        stage.cleanup.callback(watch.close)
        for place in (stage.ws, stage.tmp, stage.out, "/tmp"):
            watch.add(place)
        codes, seen, pids = [], [], set()
        for number in range(RUNS):
            process = one_run(stage, chance, number)
            codes.append(process.returncode)
            pids.add(process.pid)
            seen += [path for path in watch.names() if path != stage.ws / "mine"]
        last = stage.run("/bin/true")
        found = [f"process: {words}" for words in alive()]
        found += [f"file: {path}" for path in sorted(set(listing(*places)) ^ set(before[0]))
                  if "/mine" not in path and not (IN_LAYER and LAYERS in path)]
        found += [f"for a moment: {path}" for path in seen]
        found += [] if mounts() == before[1] else [f"mounts: {mounts()}"]
        found += [f"cgroup: {path}" for path in cgroups_of(pids)]
        found += [] if last.code == 0 else [f"the last run: {last}"]
        found += [] if any(code < 0 for code in codes) else ["no run was killed"]
        return found


def one_run(stage, chance, number):
    is_killed = number % 2 == 1
    kind = chance.choice(STUBBORN if is_killed else QUIET)
    process = stage.start(*command(stage, kind, number), cordon=["--timeout", "20s"])
    if is_killed:
        strike(chance, process)
        if process.poll() is None and kind in ("linger", "breed"):
            process.send_signal(signal.SIGTERM)  # it was too early, or hit only the launcher
    process.wait(30)
    stage.stop(process)
    return process


@pytest.mark.parametrize("name", [name for name in identity.here()
                                  if identity.is_whole(name)])
def test_nothing_is_left(name, tools, lack):
    if not CORDON.exists() or not LAUNCHER.exists():
        lack(f"{CORDON} is not built")
    found = identity.play(name, lambda: left_behind(name, tools), private_tmp=True, timeout=600)
    assert not found, f"left (CORDON_LEFTOVER_SEED={SEED}):\n" + "\n".join(found)


def overlap(identities, tools):
    """Two runs of different users overlap in the shared /tmp; the first to start is the first to
    end. What is left in /tmp when both have run once more, each alone?"""
    def scene():
        first_stage, second_stage = Stage("root", True, tools), Stage("user", True, tools)
        with first_stage, second_stage:
            os.chown(second_stage.base, identity.USER, identity.USER)
            for path in second_stage.base.rglob("*"):
                os.chown(path, identity.USER, identity.USER)
            ids = {"root": {}, "user": dict(user=identity.USER, group=identity.USER,
                                            extra_groups=[])}
            script = "echo up; read line; mkdir -p /tmp/.codex && touch /tmp/.codex/config.toml"
            stages = {"root": first_stage, "user": second_stage}
            runs = [stages[each].start("/bin/sh", "-c", script, stdin=-1, cordon=["--tmp", "host"],
                                       **ids[each])
                    for each in identities]
            said = [run.stdout.readline() for run in runs]
            for run in runs:
                run.communicate("\n", timeout=20)
            for each in identities:
                again = stages[each].start("/bin/true", cordon=["--tmp", "host"], **ids[each])
                again.communicate(timeout=20)
            left = [name for name in os.listdir("/tmp") if name.startswith(".")]
            return said, left
    return identity.play("root", scene, private_tmp=True)


@pytest.mark.parametrize("first,second", [("root", "user"), ("user", "root")])
def check_two_users_in_one_tmp(first, second, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    said, left = overlap((first, second), tools)
    assert said == ["up\n", "up\n"]
    assert left == []


if os.geteuid() == 0:  # nobody else can be two users
    test_two_users_in_one_tmp = check_two_users_in_one_tmp
