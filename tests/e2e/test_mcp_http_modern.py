"""MCP over HTTP in the version without sessions, 2026-07-28: what the head of a request says has to be what its body says, and
the end of a stream cancels."""
import base64
import os

import pytest

from harness import BUILD
from talking_mcp_http import INITIALIZE, McpServer

PREFIX = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
META = {PREFIX + "protocolVersion": VERSION, PREFIX + "clientCapabilities": {}}


def ask(server, method, meta=META, name=None, number=1, params=None, **fields):
    """As its client would; `fields` change what the head says."""
    params = dict(params or {}, _meta=meta)
    fields = {"MCP_Protocol_Version": meta.get(PREFIX + "protocolVersion"), "Mcp_Method": method, "Mcp_Name": name} | fields
    return server.connect().ask(body={"jsonrpc": "2.0", "id": number, "method": method, "params": params}, **fields)


def command(server, cmd, number=1, meta=META, **arguments):
    return ask(server, "tools/call", meta, "exec_command", number,
               {"name": "exec_command", "arguments": {"cmd": cmd, "login": False} | arguments})


@pytest.fixture
def server(place):
    with McpServer(place) as server:
        yield server


def test_every_request_stands_for_itself(server, place):
    told = ask(server, "server/discover")
    assert told.status == 200 and "mcp-session-id" not in told.fields
    assert told.json["result"]["supportedVersions"][0] == VERSION
    answer = command(server, "echo hi")
    assert answer.is_stream
    lines = answer.next_raw()  # neither ids nor a beginning without data
    assert lines[0] == "event: message" and lines[1].startswith("data: {") and len(lines) == 2
    assert answer.next() == (None, None)
    # whoever came in has what was left running, and ids are of their requests alone
    left = command(server, "sleep 1000", yield_time_ms=250).rest()[-1]["result"]["structuredContent"]["session_id"]
    for i in range(3):
        os.mkfifo(place.ws / f"f{i}")
    begun = [command(server, f"cat f{i}") for i in range(3)]
    for i in reversed(range(3)):
        command(server, f"echo {i} > f{i}").rest()
        assert begun[i].rest()[-1]["result"]["structuredContent"]["output"] == f"{i}\n"
    listed = ask(server, "tools/call", META, "list_sessions", params={"name": "list_sessions", "arguments": {}}).rest()
    assert [one["session_id"] for one in listed[-1]["result"]["structuredContent"]["sessions"]] == [left]
    # the other versions, beside it
    mcp = server.client()
    assert mcp.call("ping") == {}


def encoded(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


HEADS = [
    ({}, 200), ({"Mcp_Name": encoded("list_sessions")}, 200), ({"Mcp_Session_Id": "any"}, 200), ({"Mcp_Param_X": "y"}, 200),
    ({"MCP_Protocol_Version": None}, 400), ({"MCP_Protocol_Version": "2025-11-25"}, 400),
    ({"Mcp_Method": None}, 400), ({"Mcp_Method": "tools/list"}, 400), ({"Mcp_Method": "Tools/Call"}, 400),
    ({"Mcp_Name": None}, 400), ({"Mcp_Name": "exec_command"}, 400), ({"Mcp_Name": encoded("exec_command")}, 400),
    ({"Mcp_Name": "=?base64?!?="}, 400), ({"Mcp_Name": encoded("list_sessions\0x")}, 400), ({"Mcp_Method": encoded("tools/call")}, 400), ({"Mcp_Name": "=?base64?bGlzdF9zZXNzaW9ucx==?="}, 400),
    ({"Mcp_Name": "=?BASE64?bGlzdF9zZXNzaW9ucw==?="}, 400), ({"mcp_Name": "list_sessions"}, 400)]


def test_head_and_body_say_the_same(server):
    for fields, status in HEADS:
        check_head(server, fields, status)


def check_head(server, fields, status):
    answer = ask(server, "tools/call", META, "list_sessions", 7, {"name": "list_sessions", "arguments": {}}, **fields)
    assert answer.status == status, fields
    if status == 400:
        error = answer.json
        assert error["id"] == 7 and error["error"]["code"] == -32020 and "says" in error["error"]["message"]


UNANSWERED = [
    ("tools/list", {PREFIX + "protocolVersion": VERSION}, 400, -32602),
    ("tools/list", {**META, PREFIX + "protocolVersion": "1900-01-01"}, 400, -32022),
    ("tools/list", {**META, PREFIX + "protocolVersion": "2025-11-25"}, 400, -32022),
    ("no/such", META, 404, -32601), ("initialize", META, 404, -32601), ("ping", META, 404, -32601)]


def test_what_cannot_be_answered_has_a_status(server):
    for method, meta, status, code in UNANSWERED:
        answer = ask(server, method, meta, number="x")
        assert answer.status == status and answer.json["error"]["code"] == code and answer.json["id"] == "x"


def test_a_head_that_says_it_alone_is_not_enough(server):
    answer = server.ask(body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, MCP_Protocol_Version=VERSION, Mcp_Method="tools/list")
    assert answer.status == 400 and answer.json["error"]["code"] == -32602
    assert server.ask(body={"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                      MCP_Protocol_Version=VERSION).status == 202
    assert server.ask(body={"jsonrpc": "2.0", "id": 1, "result": {}}, MCP_Protocol_Version=VERSION).status == 400
    # of the older versions this is no session
    assert server.ask(body={"jsonrpc": "2.0", "id": 1, "method": "initialize",
                            "params": INITIALIZE | {"protocolVersion": VERSION}}).json["result"]["protocolVersion"] == "2025-11-25"


def test_the_end_of_a_stream_cancels(server, place):
    """The command is interrupted; nobody else's is."""
    other = command(server, "mkfifo go; cat go", yield_time_ms=30000)
    answer = command(server, "trap 'echo interrupted > told; exit' INT; mkfifo fifo; read x < fifo", yield_time_ms=30000)
    while not (place.ws / "fifo").exists() or not (place.ws / "go").exists():
        command(server, "true", 2).rest()
    answer.connection.close()
    while not (place.ws / "told").exists():
        command(server, "true", 2).rest()
    (place.ws / "go").write_text("on\n")
    assert other.rest()[-1]["result"]["structuredContent"]["output"] == "on\n"


def test_listening(server):
    listening = ask(server, "subscriptions/listen", number="l", params={
        "notifications": {"resourceSubscriptions": ["cordon://sessions"]}})
    assert listening.is_stream
    assert listening.next()[1]["method"] == "notifications/subscriptions/acknowledged"
    command(server, "sleep 1000", yield_time_ms=250).rest()
    changed = listening.next()[1]
    assert changed["params"]["_meta"] == {PREFIX + "subscriptionId": "l"}
    listening.connection.close()
    assert ask(server, "tools/list").status == 200


def test_what_a_request_says_of_its_client_counts_for_it_alone(place):
    """Against the server with the tools of the conformance suite."""
    def call(name, number, **more):
        return ask(server, "tools/call", META | more.pop("meta", {}), name, number, {"name": name, "arguments": {}} | more)

    def able(*capabilities):
        return {PREFIX + "clientCapabilities": {name: {} for name in capabilities}}

    with McpServer(place, program=BUILD / "tests/unit/mcp/mcp_everything") as server:
        refused = call("test_missing_capability", 1)
        assert refused.status == 400 and refused.json["error"]["code"] == -32021
        assert refused.json["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
        assert call("test_missing_capability", 2, meta=able("sampling")).status == 200
        # log messages are for who asks for them
        assert [one.get("method") for one in call("test_logging_tool", 3).rest()] == [None]
        told = call("test_logging_tool", 4, meta={PREFIX + "logLevel": "info"}).rest()
        assert [one.get("method") for one in told] == ["notifications/message"] * 3 + [None]
        # a question is an answer, and nothing is asked on the stream
        asked = call("test_streaming_elicitation", 5, meta=able("elicitation")).json["result"]
        assert asked["resultType"] == "input_required"
        (key, question), = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        again = {"meta": able("elicitation"), "requestState": asked["requestState"],
                 "inputResponses": {key: {"action": "accept", "content": {"name": "x"}}}}
        assert call("test_streaming_elicitation", 6, **again | {"requestState": "x" + asked["requestState"][1:]}).json[
            "error"]["code"] == -32602
        answer = call("test_streaming_elicitation", 7, **again)
        result = (answer.rest()[-1] if answer.is_stream else answer.json)["result"]
        assert result["resultType"] == "complete" and '"action":"accept"' in result["content"][0]["text"]
        assert call("test_streaming_elicitation", 8, **again).json["error"]["code"] == -32602
