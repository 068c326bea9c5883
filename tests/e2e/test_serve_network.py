"""The managed network of process/start (networkProxy), as clients of the original want it: rules, the client's word on what no
rule is about, and decisions told; and denials of sessions that come late."""
import json

import pytest

from events import wait_in
from harness import WAIT
from served import READ_ONLY, Server, workspace_write
from world import World
from ws_client import RpcError

PROXY = {"enabled": True, "enableSocks5": True, "enableSocks5Udp": False, "allowUpstreamProxy": False,
         "dangerouslyAllowAllUnixSockets": False, "mode": "full", "allowLocalBinding": False}
DISABLED = {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}


class Inside:
    """A place whose servers are in the network of a World."""

    def __init__(self, world):
        self.world, self.start = world, world.start

    def __getattr__(self, name):
        return getattr(self.world.place, name)


@pytest.fixture
def world(place):
    with World(place) as world:
        yield world


@pytest.fixture
def client(place, world):
    with Server(Inside(world), listen=f"unix://{place.base}/s") as server:
        with server.client() as client:
            yield client


def managed(timeout=None, **proxy):
    asks = {} if timeout is None else {"policyDecisionTimeoutMs": timeout}
    return {"proxy": {**PROXY, **proxy}, "auditMetadata": {"a": 1}, "executionId": "e", **asks}


def decisions(client):
    """Those that have come so far."""
    client.call("approval/list")
    return [{key: event["params"][key] for key in ("decision", "source", "reason", "protocol", "host", "port", "policyOverride")}
            for event in client.events if event["method"] == "network/policyDecision"]


@pytest.mark.parametrize("sandbox", [None, DISABLED, READ_ONLY], ids=["none", "disabled", "read-only"])
def test_rules_hold_whatever_the_sandbox_is(client, world, sandbox):
    network = managed(domains={"good.test": "allow", "**.evil.test": "deny"})
    client.start("p", "exec 2>&1; curl -sSf http://good.test/a; curl -sS http://evil.test/; curl -sS http://11.0.0.2/; "
                 "curl -sS --noproxy '*' http://good.test/b; curl -sS --noproxy '*' http://11.0.0.2/; env | sort",
                 sandbox=sandbox, networkProxy=network, enforceManagedNetwork=True)
    ended = client.follow("p")
    assert [event["path"] for event in world.arrived("http")] == ["/a", "/b"]
    for line in ("HTTPS_PROXY=http://127.0.0.1:1008", "ALL_PROXY=socks5h://127.0.0.1:1008", "CODEX_NETWORK_PROXY_ACTIVE=1",
                 "CODEX_NETWORK_ALLOW_LOCAL_BINDING=0", "NO_PROXY=localhost,127.0.0.1,::1"):
        assert line in ended.output.decode().splitlines()
    told = decisions(client)
    common = {"decision": "deny", "source": "baseline_policy", "policyOverride": False}
    assert {**common, "reason": "denied", "protocol": "http", "host": "evil.test", "port": 80} in told
    assert {**common, "reason": "not_allowed", "protocol": "http", "host": "11.0.0.2", "port": 80} in told
    allowed = {**common, "decision": "allow", "reason": "allow", "protocol": "http", "host": "good.test", "port": 80}
    assert [decision for decision in told if decision["decision"] == "allow"] == [allowed] * 2


def test_the_client_decides(client, world):
    client.start("p", "for url in http://good.test/ https://evil.test/ http://good.test:8080/ http://good.test/again; do "
                 "curl -ksf $url >o && echo yes $url || echo no $url; done", sandbox=workspace_write(client.cwd),
                 networkProxy=managed(60000))
    answers = {80: {"decision": {"type": "allow"}}, 443: {"decision": {"type": "deny", "reason": "no"}}, 8080: {"decision": {"type": "ask"}}}
    asked = []
    for _ in answers:
        message = client.event("network/policyRequest")
        asked.append(message["params"])
        assert world.arrived("dns") == [] or message["params"]["request"]["port"] != 80
        client.send({"id": message["id"], "result": answers[message["params"]["request"]["port"]]})
    assert asked == [{"processId": "p", "request": request} for request in (
        {"protocol": "http", "host": "good.test", "port": 80}, {"protocol": "httpsConnect", "host": "evil.test", "port": 443},
        {"protocol": "http", "host": "good.test", "port": 8080})]
    assert client.follow("p").output.decode().splitlines() == [
        "yes http://good.test/", "no https://evil.test/", "no http://good.test:8080/", "yes http://good.test/again"]
    assert [(told["decision"], told["source"], told["port"], told["policyOverride"]) for told in decisions(client)] == [
        ("allow", "decider", 80, True), ("deny", "decider", 443, False), ("deny", "decider", 8080, False)]
    assert {event["port"] for event in world.arrived("http")} == {80} and world.arrived("tls") == []


def test_what_is_no_answer_is_a_no(client, world):
    answers = [None, {"error": {"code": -32000, "message": "no"}}, *({"result": result} for result in (
        {}, [1], {"decision": "allow"}, {"decision": {"type": "allowed"}}, {"decision": {"type": ["allow"]}}))]
    for number, answer in enumerate(answers):
        client.start(f"p{number}", "curl -sSf http://good.test/", networkProxy=managed(60000 if answer else 50))
        message = client.event("network/policyRequest")
        if answer:
            client.send({"id": message["id"], **answer})
        assert client.follow(f"p{number}").code != 0
        assert client.event("network/policyDecision")["params"]["reason"] == "policy_denied"
    assert world.arrived() == []


def test_without_a_word_on_decisions_nobody_is_asked(client, world):
    client.start("p", "curl -sSf http://good.test/", networkProxy=managed())
    assert client.follow("p").code != 0 and world.arrived() == []
    assert [message for message in client.events if message["method"] == "network/policyRequest"] == []


def test_a_client_that_leaves_is_a_no(place, client, world):
    """Its process goes on, and nothing leaves."""
    client.start("p", f"curl -sSf http://good.test/ || : >{place.ws}/refused", networkProxy=managed(60000))
    client.event("network/policyRequest")
    client.close()
    wait_in(place.ws, (place.ws / "refused").exists, WAIT)
    assert world.arrived() == []


def test_a_proxy_of_the_clients_own(client, world):
    """Its port is all that is reached, and what programs are told is the client's."""
    client.start("p", "curl -sSf http://127.0.0.1:8080/mine; curl -sS http://127.0.0.1:80/; curl -sS http://11.0.0.1/; echo $HTTP_PROXY",
                 sandbox=READ_ONLY, enforceManagedNetwork=True, managedNetwork={"loopbackPorts": [8080]},
                 env={"HTTP_PROXY": "http://127.0.0.1:8080"})
    assert client.follow("p").output.endswith(b"http://127.0.0.1:8080\n")
    assert [event["port"] for event in world.arrived("http")] == [8080] * len(world.arrived("http")) != []


REFUSED = [
    ({"networkProxy": {"proxy": {**PROXY, "enabled": False}}}, "enabled"),
    ({"networkProxy": {"proxy": {key: value for key, value in PROXY.items() if key != "mode"}}}, "mode"),
    ({"networkProxy": {"proxy": {**PROXY, "domain": {}}}}, "domain"),
    ({"networkProxy": {"proxy": {**PROXY, "domains": {"*": "deny"}}}}, "denies"),
    ({"networkProxy": {"proxy": {**PROXY, "mitm": {"hooks": {"a": {}}}}}}, "mitm"),
    ({"networkProxy": {"proxy": PROXY, "credentialProviders": [{}]}}, "credentialProviders"),
    ({"networkProxy": {"proxy": PROXY, "policyDecisionTimeoutMs": 0}}, "policyDecisionTimeoutMs"),
    ({"networkProxy": {"proxy": PROXY, "policyDecisionTimeoutMs": 9}, "processId": "x" * 257}, "256"),
    ({"networkProxy": {"proxy": PROXY}, "sandbox": "workspace-write"}, "allowHosts"),
    ({"networkProxy": {"proxy": PROXY}, "sandbox": {"permissions": {"type": "external", "network": "restricted"},
                                                    "windowsSandboxLevel": "disabled"}}, "external"),
    ({"enforceManagedNetwork": True}, "loopbackPorts"),
    ({"enforceManagedNetwork": True, "managedNetwork": {"loopbackPorts": [0]}}, "loopbackPorts"),
]


def test_what_cannot_be_kept_is_refused(place):
    with Server(place) as server, server.client() as client:
        for change, words in REFUSED:
            with pytest.raises(RpcError) as error:
                client.call("process/start", {"processId": "p", "argv": ["/bin/true"], "cwd": f"file://{place.ws}", "env": {},
                                              "tty": False, **change})
            assert words in json.dumps([error.value.message, error.value.data])


# --- sessions

def test_what_is_refused_after_a_call_is_told_with_the_next(client, world):
    """Once; and with the end all of it."""
    place = world.place
    answer = client.call("session/exec", {
        "cmd": "echo begun; until [ -e go ]; do sleep 0.01; done; curl -s http://evil.test/; curl -s http://evil.test/; : >tried; read x; "
               "curl -s http://11.0.0.2:81/; echo end", "shell": "/bin/sh", "login": False, "cwd": f"file://{client.cwd}",
        "sandbox": {"profile": "workspace-write", "allowHosts": ["good.test"]}, "pipeStdin": True, "until": {"text": "begun"}})
    assert "denials" not in answer and answer["notes"] == []
    number = answer["sessionId"]
    (place.ws / "go").touch()
    wait_in(place.ws, (place.ws / "tried").exists, WAIT)
    answer = client.call("session/write", {"sessionId": number, "chars": "", "until": {"bytes": 0}})
    (denial,) = answer["denials"]
    assert (denial["host"], denial["reason"], denial["program"]) == ("evil.test", "not_allowed", "curl")
    (note,) = [note for note in answer["notes"] if "refused" in note]
    assert note == f"the sandbox refused connecting to evil.test: {denial['remedy']}" and note in answer["text"]
    assert "--allow-host evil.test" in note
    answer = client.call("session/write", {"sessionId": number, "chars": "\n", "until": {"text": "nothing of that"}})
    assert answer["exitCode"] == 0 and [denial["host"] for denial in answer["denials"]] == ["evil.test", "11.0.0.2"]
    (note,) = [note for note in answer["notes"] if "refused" in note]
    assert "11.0.0.2 port 81" in note and "--allow-host 11.0.0.2:81" in note
