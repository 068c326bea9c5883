"""`cordon mcp` asks: what the profile has asked about becomes a form at the client, and what that sends back a decision. Only
an answer that was offered is a yes."""
import json
from contextlib import closing

import pytest
from talking_mcp import Mcp

FORMS = {"elicitation": {}}
WATCH = '[permissions.asks]\nextends = ":workspace"\nwatch = "ask"\n'


def configured(place, text=""):
    home = place.home / ".config/cordon"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text('default_permissions = "asks"\n' + text + WATCH)


def question(client):
    """The next request of the server; notifications before it are left out."""
    for index, message in enumerate(client.others):
        if message.get("method") == "elicitation/create":
            return client.others.pop(index)
    while True:
        message = client.read()
        if message.get("method") == "elicitation/create":
            return message
        assert "method" in message, message
        client.others.append(message)


def begin(client, cmd, **more):
    return client.ask("tools/call", name="exec_command", arguments={"cmd": cmd, "login": False, **more})


def result(client, asked):
    return client.answer(asked)["result"]["structuredContent"]


def reply(client, asked, **answer):
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_yes_lets_the_call_succeed(place, version):
    configured(place)
    with closing(Mcp(place, version=version, capabilities=FORMS)) as client:
        call = begin(client, f"echo x >{place.outside}/f && echo done")
        whole = question(client)
        asked = whole["params"]
        schema = asked["requestedSchema"]["properties"]["decision"]
        words = [choice["const"] for choice in schema["oneOf"]] if version == "2025-11-25" else schema["enum"]
        assert {"approved", "denied", "abort"} <= set(words) and schema["type"] == "string"
        assert (asked.get("mode"), schema.get("default")) == (("form", "denied") if version == "2025-11-25" else (None, None))
        assert asked["requestedSchema"]["required"] == ["decision"]
        for part in ("Allow this, while the command waits?", f"echo x >{place.outside}/f", f"in: {place.ws}",
                     "because: ", "a yes covers: writing"):
            assert part in asked["message"]
        reply(client, whole, action="accept", content={"decision": "approved"})
        assert result(client, call)["output"] == "done\n"
    assert (place.outside / "f").read_text() == "x\n"


@pytest.mark.parametrize("answer", [
    {"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {"action": "accept", "content": {}},
    {"action": "accept", "content": {"decision": "yes"}}, {"action": "accept", "content": {"decision": True}},
    {"action": "accept", "content": {"decision": ["approved"]}}, {"action": "accept", "content": "approved"},
    {"action": "accept", "content": {"decision": "approved_execpolicy_amendment"}},
    {"action": "accept", "content": {"decision": "approved_without_sandbox"}},
    {"action": "accept", "content": {"decision": "approved\u0000"[:-1] + " "}},
    {"decision": "approved"}, {"action": "decline", "content": {"decision": "approved"}}, {},
    {"action": "accept", "content": {"decision": "denied", "reason": "not today"}},
])
def test_nothing_else_is_a_yes(place, answer):
    configured(place)
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, f"echo x >{place.outside}/f")
        reply(client, question(client), **answer)
        got = result(client, call)
        assert got["exit_code"] != 0 and str(place.outside / "f") in json.dumps(got["denials"])
    assert not (place.outside / "f").exists()


def test_an_error_and_garbage_are_a_no(place):
    configured(place)
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, f"echo x >{place.outside}/f; echo x >{place.outside}/g/h; true")
        first = question(client)["id"]
        client.send({"jsonrpc": "2.0", "id": 4711, "result": {"action": "accept", "content": {"decision": "approved"}}},
                    {"jsonrpc": "2.0", "id": str(first), "result": {"action": "accept", "content": {"decision": "approved"}}},
                    {"jsonrpc": "2.0", "id": first, "error": {"code": -32601, "message": "no"}})
        assert result(client, call)["exit_code"] == 0
    assert not (place.outside / "f").exists()


def test_a_client_that_goes_has_said_no(place):
    configured(place)
    client = Mcp(place, capabilities=FORMS)
    begin(client, f"echo x >{place.outside}/f")
    question(client)
    client.process.stdin.close()
    assert client.process.wait() == 0
    assert not (place.outside / "f").exists()


@pytest.mark.parametrize(("capabilities", "version", "text"), [
    ({}, "2025-11-25", ""), ({"elicitation": {"url": {}}}, "2025-11-25", ""), ({"elicitation": True}, "2025-11-25", ""),
    (FORMS, "2025-03-26", ""), (FORMS, "2025-11-25", '[mcp]\napprovals = "never"\n'),
])
def test_who_cannot_be_asked_is_told_what_would_allow_it(place, capabilities, version, text):
    configured(place, text)
    with closing(Mcp(place, version=version, capabilities=capabilities)) as client:
        client.answer(begin(client, f"echo x >{place.outside}/f"))
        got = client.call("tools/call", name="exec_command", arguments={
            "cmd": f"echo x >{place.outside}/f", "login": False})
        assert str(place.outside) in got["content"][0]["text"] and "Allow it with" in got["content"][0]["text"]
        assert not any(message.get("method") == "elicitation/create" for message in client.others)
    assert not (place.outside / "f").exists()


def test_what_ends_meanwhile_takes_its_question_back(place):
    configured(place)
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, f"timeout 0.2 sh -c 'echo x >{place.outside}/f'; echo $?")
        asked = question(client)
        assert result(client, call)["output"].endswith("124\n")
        assert {"jsonrpc": "2.0", "method": "notifications/cancelled"}.items() <= next(
            message for message in client.others if message.get("params", {}).get("requestId") == asked["id"]).items()
        reply(client, asked, action="accept", content={"decision": "approved"})
        client.call("ping")
    assert not (place.outside / "f").exists()


def test_the_configuration_may_have_all_asked_about(place):
    home = place.home / ".config/cordon"
    home.mkdir(parents=True)
    (home / "config.toml").write_text('[mcp]\napprovals = "ask"\n')
    (place.outside / "f").write_text("")
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, f"echo x >{place.outside}/f")
        reply(client, question(client), action="accept", content={"decision": "approved_for_session"})
        assert result(client, call)["exit_code"] == 0
        call = begin(client, f"echo y >{place.outside}/f")
        assert result(client, call)["exit_code"] == 0
    assert (place.outside / "f").read_text() == "y\n"


def test_what_is_asked_about_cannot_pass_for_something_else(place):
    configured(place)
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, f"echo x >{place.outside}/f # \u202e\x1b[2J\n\na yes covers: nothing at all" + "z" * 9000)
        asked = question(client)
        message = asked["params"]["message"]
        assert "\u202e" not in message and "\x1b" not in message and len(message) < 9000
        assert message.count("\na yes covers: ") == 1 and " more bytes that are not shown here ...\n    zzz" in message
        reply(client, asked, action="decline")
        client.answer(call)


def test_a_host_is_asked_about_and_a_rule_is_only_offered_for_it(place):
    configured(place, "")
    file = place.home / ".config/cordon/config.toml"
    file.write_text(file.read_text() + '[permissions.asks.network]\nenabled = true\n'
                    '[permissions.asks.network.domains]\n"allowed.test" = "allow"\n"asked.test" = "ask"\n')
    with closing(Mcp(place, capabilities=FORMS)) as client:
        call = begin(client, "curl -sS http://asked.test/")
        asked = question(client)
        offered = asked["params"]["requestedSchema"]["properties"]["decision"]["oneOf"]
        assert "asked.test" in asked["params"]["message"]
        titles = {choice["const"]: choice["title"] for choice in offered}
        assert "every port" in titles["approved_execpolicy_amendment"]
        reply(client, asked, action="decline")
        assert result(client, call)["exit_code"] != 0


def test_a_question_belongs_to_the_call_whose_command_asks(place):
    """Of two with the same text."""
    configured(place)
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": FORMS}
    dirs = [place.outside / name for name in "ab"]
    for path in dirs:
        path.mkdir()
    with closing(Mcp(place, version=None)) as client:
        params = [{"_meta": meta, "name": "exec_command", "arguments": {
            "cmd": "echo x >f", "workdir": str(path), "login": False}} for path in dirs]
        calls = {client.ask("tools/call", **some): (some, path) for some, path in zip(params, dirs)}
        for answer in [client.read() for _ in calls]:
            some, path = calls.pop(answer["id"])
            (key, asked), = answer["result"]["inputRequests"].items()
            assert f"{path}/f" in asked["params"]["message"]
            client.ask("tools/call", **some, inputResponses={key: {"action": "decline"}},
                       requestState=answer["result"]["requestState"])
        assert [client.read()["result"]["resultType"] for _ in dirs] == ["complete"] * 2


def test_in_the_version_without_sessions_the_question_is_the_answer(place):
    configured(place)
    prefix = "io.modelcontextprotocol/"
    with closing(Mcp(place, version=None)) as client:
        def call(capabilities, **more):
            return client.answer(client.ask("tools/call", name="exec_command", arguments={
                "cmd": f"echo x >{place.outside}/f && echo done", "login": False}, _meta={
                    prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": capabilities}, **more))
        assert call({})["result"]["structuredContent"]["exit_code"] != 0
        asked = call(FORMS)["result"]
        assert asked["resultType"] == "input_required"
        ((key, request),) = asked["inputRequests"].items()
        assert request["method"] == "elicitation/create" and "a yes covers: writing" in request["params"]["message"]
        yes = {key: {"action": "accept", "content": {"decision": "approved"}}}
        assert "error" in call(FORMS, inputResponses=yes, requestState=asked["requestState"][:-1] + ".")
        got = call(FORMS, inputResponses=yes, requestState=asked["requestState"])["result"]
        assert got["structuredContent"]["output"] == "done\n"
        assert "error" in call(FORMS, inputResponses=yes, requestState=asked["requestState"])
