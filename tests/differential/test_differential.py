"""The same calls outside of the sandbox and inside: same results, errors and trees.

`run` plays as many random sequences as it is told to; here it is as many as take some ten seconds for
each identity. CORDON_DIFFER_FIRST is the first seed, for runs that shall see others."""
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES = 3000


def run(*words):
    return subprocess.run([HERE / "run", "--first", os.environ.get("CORDON_DIFFER_FIRST", "1"), *words],
                          capture_output=True, text=True, check=False)


def who():
    """`make test` comes here as root and as an ordinary user, who may not look into root's directories."""
    return "root" if os.geteuid() == 0 else "user"


def test_random_sequences():
    done = run("--as", who(), "--sequences", str(SEQUENCES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{who()}: {SEQUENCES} sequences, 0 differ" in done.stdout


def test_each_error():
    done = run("--as", who(), "--errors")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_can_fail():
    """Read-only inside: nothing is as outside, and the shortest sequence that shows it is short."""
    done = run("--as", who(), "--sequences", "40", "--read-only", "--show", "1",
               "--places", "root")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "= EROFS" in done.stdout
    assert len(done.stdout.splitlines()) < 30
