"""Attacks on a network that is proxied (network/attacker.py): all are played in one command, bare and inside, in a World of
their own; each has a token that the servers see when it gets through."""
import json
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from harness import Place, TOP  # noqa: E402
from network.attacker import ATTACKS, OF_ROOT  # noqa: E402
from world import World  # noqa: E402

ATTACKER = Path(__file__).parent / "network/attacker.py"
INSIDE = ["--allow-host", "good.test:80", "--allow-host", "good.test:443"]


def play(*options, answer=None, through=()):
    """`answer`: of who is asked about what no rule is about."""
    place = Place()
    if answer:
        hook = place.base / "hook"
        hook.write_text(f"#!/bin/sh\ncat >>{place.base}/asked\necho '{{\"decision\": \"{answer}\"}}'\n")
        hook.chmod(0o755)
        options += ("--watch", "ask", "-a", "on-request", "--approval-hook", hook)
    with World(place, through, is_open="disabled" in options) as world:
        program = place.base / "attacker.py"
        program.write_bytes(ATTACKER.read_bytes())
        argv = [sys.executable, "-B", program, "token"]
        ran = world.run("--json", *options, "--", *argv)
        result = json.loads(ran.stdout)
        assert result["exit_code"] == 0, result
        result["arrived"] = world.arrived()
        result["asked"] = (place.base / "asked").read_text() if answer else ""
    place.cleanup.close()
    return result


@pytest.fixture(scope="module")
def bare():
    return play("--sandbox", "disabled", "--network", "enabled")


@pytest.fixture(scope="module")
def inside():
    return play(*INSIDE)


def evidence(result, name):
    """What came of the attack: its token, but where it says that it went where it may. What ends in "-asks" may go there, but not
    be read as another host's."""
    token = f"token-{name.replace('_', '-')}"

    def is_of_it(event):
        words = re.split(r'[ "/.]', json.dumps(event))
        return token in words or (event["server"] == "reading" and f"{token}-asks" in words)
    return [event for event in result["arrived"] if is_of_it(event)]


@pytest.mark.parametrize("name", [name for name in ATTACKS if os.geteuid() == 0 or name not in OF_ROOT])
def test_gets_through_bare(name, bare):
    assert evidence(bare, name), bare["arrived"][-3:]


@pytest.mark.parametrize("name", ATTACKS)
def test_is_held(name, inside):
    got = evidence(inside, name)
    assert not got, f"ESCAPE: {got}"


def test_a_no_holds_all_of_them():
    """Who may be asked is asked; until a yes not even a look-up leaves."""
    asked = play(*INSIDE, answer="denied")
    assert '"host":"evil.test"' in asked["asked"].replace(" ", "")
    assert {name: evidence(asked, name) for name in ATTACKS if evidence(asked, name)} == {}
    test_the_rest_goes_on(asked)


def test_the_rest_goes_on(inside):
    """What is allowed came through between all of them."""
    assert any(event.get("path", "").endswith("-is-fine") for event in inside["arrived"])


def test_none_gets_by_the_guard_where_nothing_is_redirected():
    """Without nf_nat the guard leads all of it to the proxy."""
    led = play(*INSIDE, through=[TOP / "scripts/without-nat"])
    assert {name: evidence(led, name) for name in ATTACKS if evidence(led, name)} == {}
    test_the_rest_goes_on(led)
