"""What the tests with real tools share."""
import shutil

import pytest

PYTHON = "/usr/bin/python3"


def need(*programs):
    """Skips the test where the machine lacks a program."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (scripts/deps)")


def passes(ran):
    """The standard output of a command that has to succeed."""
    assert ran.returncode == 0, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout
