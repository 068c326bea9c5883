"""Attacks on a network that is proxied (network/attacker.py): all are played in one command, bare and inside, in a World of
their own; each has a token that the servers see when it gets through."""
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from harness import Place  # noqa: E402
from network.attacker import ATTACKS  # noqa: E402
from world import World  # noqa: E402

ATTACKER = Path(__file__).parent / "network/attacker.py"
INSIDE = ["--allow-host", "good.test:80", "--allow-host", "good.test:443"]


def play(*options):
    place = Place()
    with World(place) as world:
        program = place.base / "attacker.py"
        program.write_bytes(ATTACKER.read_bytes())
        argv = [sys.executable, "-B", program, "token"]
        ran = world.run("--json", *options, "--", *argv)
        result = json.loads(ran.stdout)
        assert result["exit_code"] == 0, result
        result["arrived"] = world.arrived()
    place.cleanup.close()
    return result


@pytest.fixture(scope="module")
def bare():
    return play("--sandbox", "disabled", "--network", "enabled")


@pytest.fixture(scope="module")
def inside():
    return play(*INSIDE)


def evidence(result, name):
    """What came of the attack: its token, but where it says that it went where it may."""
    token = f"token-{name.replace('_', '-')}"
    return [event for event in result["arrived"]
            if any(word == token for word in json.dumps(event).replace("/", " ").replace('"', " ").replace(".", " ").split())]


@pytest.mark.parametrize("name", ATTACKS)
def test_gets_through_bare(name, bare):
    assert evidence(bare, name), bare["arrived"][-3:]


@pytest.mark.parametrize("name", ATTACKS)
def test_is_held(name, inside):
    got = evidence(inside, name)
    assert not got, f"ESCAPE: {got}"


def test_the_rest_goes_on(inside):
    """What is allowed came through between all of them."""
    assert any(event.get("path", "").endswith("-is-fine") for event in inside["arrived"])
