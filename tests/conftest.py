"""Rules for all tests that run the real programs."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from folders import make_base

# What pytest makes of the tests is kept out of their folders, and kept: else each of its processes, of which
# there are many, makes it anew for seconds.
sys.pycache_prefix = str(Path(__file__).parents[1] / "build/pycache")
sys.dont_write_bytecode = False

# The folder for all tests, by the process that made it; here, since what is imported next looks for it.
made = None if "CORDON_TESTS" in os.environ else make_base()


def pytest_configure(config):
    # a shell ignores these for what it starts in the background, and our children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    config.addinivalue_line(
        "markers",
        "no_userns: also run in the pass of `make test` in which user namespaces are forbidden",
    )


def pytest_unconfigure():
    if made:
        shutil.rmtree(made, ignore_errors=True)


def fail_instead_of_skip(report):
    """With CORDON_MUST_WORK=1 (CI) a skip or an expected failure hides a defect: it fails."""
    if report.skipped and os.environ.get("CORDON_MUST_WORK") == "1":
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: CORDON_MUST_WORK=1, but skipped: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    fail_instead_of_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    fail_instead_of_skip(outcome.get_result())
