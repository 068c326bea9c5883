"""Sessions by the library's calls: programs of hosts/ do what a host does, and say what came."""
import json
import shutil
import signal

import pytest

import host
from harness import BUILD

EMIT = BUILD / "tests/unit/process/emit"


@pytest.mark.parametrize("where,count", [("inside", 3000), ("outside", 1000)])
@pytest.mark.parametrize("stdio", ["pipe", "tty"])
def test_no_byte_is_lost_of_many_commands_that_end_at_once(place, stdio, where, count):
    """The same where a child stays and holds the output: tests/unit/process/test_process_flood.c."""
    emit = shutil.copy(EMIT, place.base)  # the build may be in /tmp, where commands do not see it
    ran = place.cordon(emit, count, stdio, where, program=host.build(place, "flood"), env=host.ENV)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{count}\n", "")


def test_limits_denials_and_the_thread_id(place):
    target = place.outside / "x"
    ran = place.cordon(target, program=host.build(place, "bounds"), env=host.ENV)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    ways = ["run", "session", "terminal", "call"]
    code, hit = 128 + signal.SIGXFSZ, 8  # CORDON_LIMIT_FILE_SIZE
    assert lines[:4] == [f"{way}: {code}, limits {hit}, nothing refused" for way in ways]
    for way, line in zip(ways, lines[4:8]):
        assert line.startswith(f"{way}: 1, limits 0, write of {target} was refused. Allow it with")
    assert lines[8:12] == [f"{way}: 0, limits 0, nothing refused" for way in ways]
    assert lines[-2] == "thread-7 thread-7"
    assert lines[-1] == "1: limits: the member `size` of the options is 1: it has to be set"
    assert not target.exists() and (place.ws / "large").stat().st_size == 1000


def test_those_of_an_owner_have_time_to_end(place):
    """The command takes a third of a second to end when it is asked to."""
    ran = place.cordon(program=host.build(place, "grace"), env=host.ENV)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["1 asked", "first: 7 0", "1 left", "1 asked",
                                       f"second: {128 + signal.SIGKILL} {signal.SIGKILL}"]


def test_what_commands_do(place):
    """Read as it happens: the session waits for a word that is sent when its first event is there."""
    program = host.build(place, "trace")
    ran = place.cordon(1, program=program, env=host.ENV)  # CORDON_TRACE_FILES
    assert (ran.returncode, ran.stderr) == (0, "")
    run, *events, again, first, second, third, ended = ran.stdout.splitlines()
    assert again == "again" and events == [first, second]
    called = json.loads(ended)
    assert called[0] == json.loads(third)
    told = [*json.loads(run), json.loads(first), json.loads(second), *called]
    assert [(event["seq"], event["operation"], event["path"]) for event in told] == [
        (number, "create", str(place.ws / name)) for number, name in (
            (1, "run"), (1, "first"), (2, "second"), (1, "third"), (2, "fourth"))]


def test_nobody_tells_what_was_not_asked_for(place):
    program = host.build(place, "trace")
    ran = place.cordon(8, program=program, env=host.ENV)
    assert ran.stderr == "policy.trace is 8, which has more than enum cordon_trace\n"
