"""The same calls outside of the sandbox and inside: same results, errors and trees.

`run` plays as many random sequences as it is told to; here it is as many as take some ten seconds for
each identity. CORDON_DIFFER_FIRST is the first seed, for runs that shall see others."""
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES = 3000


def run(*words):
    return subprocess.run([HERE / "run", "--first", os.environ.get("CORDON_DIFFER_FIRST", "1"), *words],
                          capture_output=True, text=True, check=False)


def who():
    """As root the ordinary user, too, who then plays in what only root can make."""
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


@pytest.mark.parametrize("name", who())
def test_random_sequences(name):
    done = run("--as", name, "--sequences", str(SEQUENCES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name}: {SEQUENCES} sequences, 0 differ" in done.stdout


@pytest.mark.parametrize("name", who())
def test_each_error(name):
    done = run("--as", name, "--errors")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_can_fail():
    """Read-only inside: nothing is as outside, and the shortest sequence that shows it is short."""
    done = run("--as", who()[0], "--sequences", "40", "--read-only", "--show", "1",
               "--places", "root")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "= EROFS" in done.stdout
    assert len(done.stdout.splitlines()) < 30
