"""Attacks on credentials that commands use and do not see (network/stealer.py): all are played in one command, bare with the secret in
its environment, and inside, in a World of their own."""
import base64
import hashlib
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
from harness import Place  # noqa: E402
from network.stealer import ATTACKS  # noqa: E402
from world import World  # noqa: E402

STEALER = Path(__file__).parent / "network/stealer.py"
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
OF_FILE = "ghp_9876543210zyxwvutsrqponmlkjihgfedcbaZY"
PROFILE = """
[permissions.dev.filesystem]
":root" = "read"
":workspace_roots" = "write"
[permissions.dev.network]
domains = {"good.test" = "allow", "evil.test" = "allow", "sub.good.test" = "allow", "11.0.0.1" = "allow"}
credentials = {GH_TOKEN = ["good.test"]}
[permissions.dev.network.mitm.hooks.api]
host = "sub.good.test"
methods = ["GET"]
path_prefixes = ["/"]
action = ["sign"]
[permissions.dev.network.mitm.actions.sign]
inject_request_headers = [{name = "Authorization", secret_file = "FILE"}]
"""


def play(*options):
    place = Place()
    secret = place.base / "home/kept/secret"
    secret.parent.mkdir()
    secret.write_text(OF_FILE + "\n")
    place.config(PROFILE.replace("FILE", str(secret)), "home/.config/cordon/config.toml")
    with World(place) as world:
        program = place.base / "stealer.py"
        program.write_bytes(STEALER.read_bytes())
        basic = base64.b64encode(f"user:{SECRET}".encode()).decode()
        ran = world.run(*options, "--env-inherit", "all", "--env", f"GIVEN={SECRET}", "--", sys.executable, "-B", program, env={
            "GH_TOKEN": SECRET, "COPY_OF_IT": SECRET, "A_URL": f"https://user:{SECRET}@good.test/", "BASIC_AUTH": f"Basic {basic}",
            "KEPT_FILE": str(secret), "SSL_CERT_FILE": str(world.ca)})
        assert ran.returncode == 0, ran
        result = {"found": json.loads(ran.stdout), "arrived": world.arrived()}
    place.cleanup.close()
    return result


@pytest.fixture(scope="module")
def bare():
    return play("--sandbox", "disabled", "--network", "enabled", "--env", f"GH_TOKEN={SECRET}")


@pytest.fixture(scope="module")
def inside():
    return play("--profile", "dev")


def evidence(result, name):
    """What it has found of the secrets, and where one has come to."""
    known = [hashlib.sha256(secret.encode()).hexdigest() for secret in (SECRET, OF_FILE)]
    shapes = (SECRET, base64.b64encode(f"x{SECRET}".encode()).decode())
    return [found for found in result["found"][name] if found in known] + [
        event for event in result["arrived"] if f"/token-{name}" in event.get("path", "") + "/"
        and any(shape in json.dumps(event) for shape in shapes)]


@pytest.mark.parametrize("name", ATTACKS)
def test_gets_it_bare(name, bare):
    assert evidence(bare, name), bare["found"][name]


@pytest.mark.parametrize("name", ATTACKS)
def test_does_not_get_it_inside(name, inside):
    got = evidence(inside, name)
    assert not got, f"ESCAPE: {got}"


def test_none_of_them_has_come_in_vain(inside):
    """They were let out where they may be: what they sent is what stands for the secret."""
    assert any("/token-in_the_query?key=ghp_" in event.get("path", "") for event in inside["arrived"])
    assert SECRET not in json.dumps([event for event in inside["arrived"] if "/token-" in event.get("path", "")])
