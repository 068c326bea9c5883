"""permissions/explain: what `cordon explain --json` says, for clients; and what it says is what session/exec does."""
import json

import pytest
from served import READ_ONLY, Server, uri
from ws_client import RpcError

CONFIG = """
default_permissions = "mine"
[permissions.mine]
extends = ":workspace"
[permissions.mine.filesystem]
"{secret}" = "deny"
[permissions.mine.network]
enabled = true
[permissions.mine.network.domains]
"example.org" = "allow"
"""


@pytest.fixture
def client(place):
    home = place.home / ".config/cordon"
    (home / "rules").mkdir(parents=True, exist_ok=True)
    (place.outside / "secret").write_text("s\n")
    (home / "config.toml").write_text(CONFIG.format(secret=place.outside / "secret"))
    (home / "rules/my.rules").write_text('prefix_rule(pattern=["touch"], decision="forbidden", justification="no")\n')
    with Server(place) as server, server.client() as client:
        yield client


def explain(client, **params):
    return client.call("permissions/explain", {"cwd": uri(client.cwd), **params})["answer"]


def said(place, *words, code=0):
    done = place.cordon("explain", "--json", *words)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("params", "words", "code"), [
    ({"path": "a/b"}, ["--path", "a/b"], 0),
    ({"path": "a/b", "access": "write"}, ["--path", "a/b", "--for", "write"], 0),
    ({"path": ".git/hooks/x", "access": "write"}, ["--path", ".git/hooks/x", "--for", "write"], 1),
    ({"path": "~/x", "access": "write"}, ["--path", "~/x", "--for", "write"], 1),
    ({"path": "../outside/secret"}, ["--path", "../outside/secret"], 1),
    ({"path": "/dev/null", "access": "write"}, ["--path", "/dev/null", "--for", "write"], 0),
    ({"host": "example.org:443"}, ["--host", "example.org:443"], 0),
    ({"host": "example.net"}, ["--host", "example.net"], 1),
])
def test_one_thing_is_answered_as_by_the_command(place, client, params, words, code):
    answer = explain(client, **params)
    assert answer == said(place, *words, code=code)
    assert answer["allowed"] is (code == 0)


def test_all_of_it_is_what_the_command_says(place, client):
    ours, theirs = explain(client), said(place)
    assert set(ours) == set(theirs)
    same = ("mode", "limits", "watch", "judge", "git", "protect", "folder", "workspace_roots", "restricted", "config",
            "layers", "degraded", "refusal", "command", "network")
    assert {key: ours[key] for key in same} == {key: theirs[key] for key in same}
    assert ours["profile"]["name"] == theirs["profile"]["name"] == "mine"
    access = {entry["path"]: entry["access"] for entry in ours["entries"]}
    assert access.items() >= {entry["path"]: entry["access"] for entry in theirs["entries"]}.items()
    assert {"HOME", "PATH"} <= {item["name"] for item in ours["environment"]["passed"]}
    assert not any("value" in item for item in ours["environment"]["passed"])


def test_a_command_is_judged_by_the_rules(place, client):
    command = explain(client, argv=["sh", "-c", "true; touch x"])["command"]
    assert command == said(place, "--", "sh", "-c", "true; touch x", code=1)["command"]
    assert command["requirement"]["outcome"] == "forbid"
    with pytest.raises(RpcError, match="no"):
        client.call("session/exec", {"cmd": "true; touch x", "cwd": uri(client.cwd), "login": False})
    for policy, outcome in ((None, "skip"), ("forbids-only", "skip"), ("untrusted", "ask"), ("never", "skip")):
        command = explain(client, argv=["make"], approvalPolicy=policy)["command"]
        assert command["requirement"]["outcome"] == outcome
    assert not (place.ws / "x").exists()


def test_it_is_about_the_sandbox_of_the_call(place, client):
    for sandbox, verdict in (("read-only", "read"), (READ_ONLY, "read"), ("workspace-write", "write"), ("none", "write"),
                             ({"profile": "mine", "readable": ["a"]}, "read")):
        (place.ws / "a").mkdir(exist_ok=True)
        answer = explain(client, path="a/b", access="write", sandbox=sandbox)
        assert (answer["verdict"], answer["allowed"]) == (verdict, verdict == "write")
    assert explain(client, sandbox="none")["mode"] == "bare"


@pytest.mark.parametrize("wrong", [{"path": "a", "host": "b"}, {"host": "b", "argv": ["c"]}, {"argv": []}, {"path": ""},
                                   {"host": "a b"}, {"path": "a", "access": "run"},
                                   {"argv": ["a"], "approvalPolicy": "perhaps"}, {"cwd": "relative"}])
def test_what_makes_no_sense_is_refused(client, wrong):
    with pytest.raises(RpcError) as error:
        explain(client, **wrong)
    assert error.value.code in (-32600, -32602), error.value
