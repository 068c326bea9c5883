"""One question, one answer: what the pure function says of a host (tests/unit/policy/test_network_policy.c plays the same files)
is what `cordon explain --host` says, and what a program meets that connects."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import TOP  # noqa: E402
from tools import PYTHON  # noqa: E402
from world import World  # noqa: E402

CONNECT = """if True:
    import json, socket, sys
    for text in sys.argv[1:]:
        host, _, port = text.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), 20) as client:
                client.sendall(b"GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n" % text.encode())
                print(text, "allow" if client.recv(1) else "deny", flush=True)
        except OSError as error:
            print(text, "deny", flush=True)
"""


@pytest.fixture
def world(place):
    with World(place) as world:
        world.names["good.test.evil.test"] = ["11.0.0.1"]
        world.tell_names()
        yield world


def profile(policy):
    """The same in a config file."""
    lines = ["[permissions.dev]", 'extends = ":read-only"', "[permissions.dev.network]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in policy.items() if key != "domains"]
    lines += ["[permissions.dev.network.domains]", *(f'"{pattern}" = "{word}"' for pattern, word in policy["domains"].items())]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("case", ["faces", "faces-limited"])
def test_every_face_says_the_same(world, case):
    case = json.loads((TOP / f"tests/cases/network/{case}.json").read_text())
    world.place.config(profile(case["policy"]))
    asked = {}
    for item in case["decide"]:
        answer = world.json("explain", "--json", "-p", "dev", "--host", item["host"], code=item["verdict"] != "allow")
        assert (answer["verdict"], answer["reason"]) == (item["verdict"], item.get("reason")), item
        asked[item["host"]] = answer["asked"]
    result = world.json("run", "--json", "-p", "dev", "--", PYTHON, "-c", CONNECT, *asked)
    assert dict(line.split() for line in result["stdout"].splitlines()) == {
        item["host"]: "allow" if item["verdict"] == "allow" else "deny" for item in case["decide"]}, [(d["host"], d["port"], d["reason"]) for d in result["denials"]]
    denied = {}
    for denial in result["denials"]:
        name = f"[{denial['host']}]" if ":" in denial["host"] else denial["host"]
        denied[f"{name}:{denial['port']}" if denial["port"] else name] = denial["reason"]
    for item in case["decide"]:
        if item["verdict"] != "allow":
            name = asked[item["host"]]
            assert denied.get(name, denied.get(name.rpartition(":")[0])) == item["reason"], (item, denied)
