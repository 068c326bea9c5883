"""`cordon mcp` in the version without sessions, 2026-07-28: every request says what it needs."""
import base64
import json

import pytest

from talking_mcp import Mcp
from talking_mcp_http import McpServer

PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"]


@pytest.fixture
def mcp(place):
    return Mcp(place, version=None)


def test_a_client_that_says_all_needs_no_beginning(mcp):
    told = mcp.call("server/discover", _meta=META)
    assert told["supportedVersions"] == ["2026-07-28", *LEGACY]
    assert told["resultType"] == "complete" and told["cacheScope"] == "private" and "tools" in told["capabilities"]
    assert told["_meta"][PREFIX + "serverInfo"]["name"] == "cordon"
    listed = mcp.call("tools/list", _meta=META)
    assert listed["ttlMs"] > 0 and listed["tools"][0]["outputSchema"]
    result = mcp.call("tools/call", _meta=META, name="exec_command", arguments={"cmd": "echo hi"})
    assert result["resultType"] == "complete" and result["structuredContent"]["output"] == "hi\n"
    # the other era, beside it
    assert mcp.call("initialize", protocolVersion="2026-07-28", capabilities={})["protocolVersion"] == "2025-11-25"
    assert "resultType" not in mcp.call("tools/list")


@pytest.mark.parametrize("meta, code", [
    ({}, -32602),
    ({PREFIX + "protocolVersion": "2026-07-28"}, -32602),
    ({PREFIX + "clientCapabilities": {}}, -32602),
    ({**META, PREFIX + "protocolVersion": "1900-01-01"}, -32022),
    ({**META, PREFIX + "protocolVersion": "2025-11-25"}, -32022),
    ({**META, PREFIX + "logLevel": "loud"}, -32602),
])
def test_a_request_that_says_too_little_is_refused(mcp, meta, code):
    error = mcp.fail("server/discover", _meta=meta)
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"supported": ["2026-07-28", *LEGACY],
                                 "requested": meta[PREFIX + "protocolVersion"]}


def test_what_went_is_unknown(mcp):
    for method in ("ping", "logging/setLevel", "initialize", "resources/subscribe"):
        assert mcp.fail(method, _meta=META)["code"] == -32601


def test_listening_is_acknowledged_first_and_ends_when_it_is_cancelled(mcp):
    uris = ["cordon://sessions", "file:///etc/passwd", 7]
    number = mcp.ask("subscriptions/listen", _meta=META, notifications={
        "toolsListChanged": True, "resourceSubscriptions": uris})
    told = mcp.read()
    assert told["method"] == "notifications/subscriptions/acknowledged"
    # tools never change, and of what is not there nothing is heard
    assert told["params"] == {"_meta": {PREFIX + "subscriptionId": number},
                              "notifications": {"resourceSubscriptions": uris[:1]}}
    started = mcp.call("tools/call", _meta=META, name="exec_command", arguments={
        "cmd": "echo 1; read a; echo 2; read b", "tty": True, "yield_time_ms": 250})
    session = started["structuredContent"]["session_id"]
    heard, = mcp.others
    assert heard["params"] == {"_meta": {PREFIX + "subscriptionId": number}, "uri": uris[0]}
    mcp.notify("notifications/cancelled", requestId=number)
    output = f"cordon://session/{session}/output"
    second = mcp.ask("subscriptions/listen", _meta=META, notifications={"resourceSubscriptions": [output]})
    assert mcp.read()["params"]["notifications"] == {"resourceSubscriptions": [output]}
    mcp.ask("tools/call", _meta=META, name="write_stdin", arguments={"session_id": session, "chars": "x\n"})
    while not any(one.get("params", {}).get("uri") == output for one in mcp.others):
        mcp.others.append(mcp.read())
    assert all(one["params"]["_meta"][PREFIX + "subscriptionId"] == second for one in mcp.others[1:] if "method" in one)


def test_listening_ends_well_with_the_input(mcp):
    number = mcp.ask("subscriptions/listen", _meta=META, notifications={})
    assert mcp.read()["method"] == "notifications/subscriptions/acknowledged"
    answer = json.loads(mcp.close()[0])
    assert answer["id"] == number and answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"][PREFIX + "subscriptionId"] == number


def test_a_state_of_nobody_is_refused(mcp):
    for state in ("", "1.2.3", "..", "1.99999999999999." + "0" * 64, 7):
        error = mcp.fail("tools/call", _meta=META, name="exec_command", arguments={"cmd": "touch x"}, requestState=state)
        assert error["code"] == -32602
    assert not (mcp.place.ws / "x").exists()


# --- over HTTP: headers repeat what the body says, and the end of a stream is the end of its request


@pytest.fixture
def server(place):
    with McpServer(place) as server:
        yield server


def ask(server, method, number=1, fields=None, connection=None, **params):
    """`fields`: other headers than the right ones; None leaves one out."""
    name = params.get("uri" if method == "resources/read" else "name")
    right = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method, "Mcp_Name": name}
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": META, **params}}
    return (connection or server.connect()).ask(body=body, **right | (fields or {}))


def call(server, tool, number=1, **arguments):
    answer = ask(server, "tools/call", number, name=tool, arguments=arguments)
    return answer.next()[1] if answer.is_stream else answer.json


def test_requests_need_no_session(server):
    answer = ask(server, "server/discover")
    assert answer.status == 200 and answer.json["result"]["supportedVersions"][0] == "2026-07-28"
    assert "mcp-session-id" not in answer.fields
    # a session of commands belongs to whoever comes through the door
    started = call(server, "exec_command", cmd="read a", tty=True, yield_time_ms=250)
    number = started["result"]["structuredContent"]["session_id"]
    listed = call(server, "list_sessions")["result"]["structuredContent"]["sessions"]
    assert [one["session_id"] for one in listed] == [number]
    # older clients beside it
    mcp = server.client()
    assert mcp.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 200


def test_an_answer_that_takes_longer_is_a_stream_without_ids(server):
    answer = ask(server, "tools/call", name="exec_command", arguments={"cmd": "sleep 0.1; echo hi"})
    assert answer.is_stream
    number, message = answer.next()
    assert number is None and message["result"]["structuredContent"]["output"] == "hi\n"
    assert answer.next() == (None, None)


@pytest.mark.parametrize("method, fields, params, status, code", [
    ("tools/list", {"MCP_Protocol_Version": None}, {}, 400, -32020),
    ("tools/list", {"MCP_Protocol_Version": "2025-11-25"}, {}, 400, -32020),
    ("tools/list", {"Mcp_Method": "tools/call"}, {}, 400, -32020),
    ("tools/list", {"Mcp_Method": "Tools/List"}, {}, 400, -32020),
    ("tools/call", {"Mcp_Name": None}, {"name": "list_sessions"}, 400, -32020),
    ("tools/call", {"Mcp_Name": "=?base64?!?="}, {"name": "list_sessions"}, 400, -32020),
    ("resources/read", {"Mcp_Name": "cordon://x"}, {"uri": "cordon://sessions"}, 400, -32020),
    ("tools/list", {}, {"_meta": {}}, 400, -32602),
    ("tools/list", {"MCP_Protocol_Version": "1900-01-01"},
     {"_meta": {**META, PREFIX + "protocolVersion": "1900-01-01"}}, 400, -32022),
    ("no/method", {}, {}, 404, -32601),
    ("resources/read", {}, {"uri": "cordon://nothing"}, 200, -32602),
])
def test_what_does_not_fit_is_refused_with_its_status(server, method, fields, params, status, code):
    answer = ask(server, method, fields=fields, **params)
    assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (status, code, 1)


def test_a_header_may_be_encoded(server):
    encoded = f"=?base64?{base64.b64encode(b'list_sessions').decode()}?="
    answer = ask(server, "tools/call", fields={"Mcp_Name": encoded}, name="list_sessions")
    assert answer.is_stream or answer.status == 200


def test_the_end_of_a_stream_cancels_its_request(server, place):
    connection = server.connect()
    ask(server, "tools/call", connection=connection, name="exec_command", arguments={
        "cmd": "trap 'touch interrupted; exit' INT; touch ready; while :; do sleep 0.02; done"})
    while not (place.ws / "ready").exists():
        call(server, "list_sessions")
    connection.close()
    while not (place.ws / "interrupted").exists():
        call(server, "list_sessions")


def test_listening_is_a_stream(server):
    listening = ask(server, "subscriptions/listen", "listen", notifications={"resourcesListChanged": True})
    assert listening.next()[1]["method"] == "notifications/subscriptions/acknowledged"
    call(server, "exec_command", cmd="read a", tty=True, yield_time_ms=250)
    told = listening.next()[1]
    assert told["method"] == "notifications/resources/list_changed"
    assert told["params"]["_meta"] == {PREFIX + "subscriptionId": "listen"}
    server.stop()
    last = listening.next()[1]
    while "method" in last:  # its session ended, too
        last = listening.next()[1]
    assert last["id"] == "listen" and last["result"]["resultType"] == "complete"
    listening.connection.close()


# --- a question of the sandbox is an answer, and its command waits


def test_a_question_is_an_answer_and_the_client_comes_back(place):
    home = place.home / ".config/cordon"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        'default_permissions = "asks"\n[permissions.asks]\nextends = ":workspace"\nwatch = "ask"\n')
    mcp = Mcp(place, version=None)
    able = {**META, PREFIX + "clientCapabilities": {"elicitation": {"form": {}}}}
    call = {"_meta": able, "name": "exec_command",
            "arguments": {"cmd": f"echo x >{place.outside}/f && echo done", "login": False}}
    asked = mcp.call("tools/call", **call)
    assert asked["resultType"] == "input_required" and not (place.outside / "f").exists()
    (key, request), = asked["inputRequests"].items()
    assert request["method"] == "elicitation/create" and str(place.outside) in request["params"]["message"]
    # for another command it is worth nothing, nor without an answer
    answer = {"requestState": asked["requestState"],
              "inputResponses": {key: {"action": "accept", "content": {"decision": "approved"}}}}
    assert mcp.fail("tools/call", **call | {"arguments": {"cmd": "rm -rf /"}}, **answer)["code"] == -32602
    again = mcp.call("tools/call", **call, requestState=asked["requestState"])
    assert again["resultType"] == "input_required" and list(again["inputRequests"]) == [key]
    assert mcp.fail("tools/call", **call, **answer)["code"] == -32602  # used before
    done = mcp.call("tools/call", **call, **answer | {"requestState": again["requestState"]})
    assert done["resultType"] == "complete" and done["structuredContent"]["output"] == "done\n"
    assert (place.outside / "f").read_text() == "x\n"
