"""Streams of events of MCP over HTTP: what is answered at once and what later, what a broken connection leaves, and clients
that do not read."""
import concurrent.futures
import json
import os

import pytest

from talking_mcp_http import McpServer

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}


def command(cmd, **arguments):
    return {"name": "exec_command", "arguments": {"cmd": cmd, "login": False} | arguments}


def test_what_takes_its_time_is_a_stream(place):
    with McpServer(place) as server:
        mcp = server.client()
        assert not mcp.begin("tools/list").is_stream
        answer = mcp.begin("tools/call", **command("echo hello"))
        assert answer.is_stream
        begun, nothing = answer.next()
        number, message = answer.next()
        assert nothing is None and message["id"] == mcp.last
        assert message["result"]["structuredContent"]["output"] == "hello\n"
        assert begun.split("-")[0] == number.split("-")[0] != "0" and [one.split("-")[1] for one in (begun, number)] == ["0", "1"]
        assert answer.next() == (None, None)
        # the connection is good for the next one
        assert answer.connection.ask(body=PING, Mcp_Session_Id=mcp.session).json["id"] == "p"


def test_progress_comes_before_the_answer(place):
    with McpServer(place) as server:
        mcp = server.client()
        fifo = place.ws / "fifo"
        answer = mcp.begin("tools/call", **command("mkfifo fifo; echo working; cat fifo"), _meta={"progressToken": "t"})
        answer.next()
        message = answer.next()[1]
        assert message["method"] == "notifications/progress" and message["params"]["progressToken"] == "t"
        fifo.write_text("done\n")
        assert answer.rest()[-1]["result"]["structuredContent"]["output"] == "working\ndone\n"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_a_broken_connection_cancels_nothing(place, version):
    """The client comes back for the rest, by the id that it has seen last."""
    with McpServer(place) as server:
        mcp = server.client(version=version)
        os.mkfifo(place.ws / "fifo")  # before either command: their order is not certain
        answer = mcp.begin("tools/call", **command("echo working; cat fifo"), _meta={"progressToken": 1})
        if version == "2025-11-25":
            last, nothing = answer.next()
            assert nothing is None
        else:
            last, progress = answer.next()
            assert progress["method"] == "notifications/progress"
        answer.connection.close()
        mcp.call("tools/call", **command("echo done > fifo"))
        again = mcp.listen(last)
        messages = again.rest()
        assert messages[-1]["result"]["structuredContent"]["output"] == "working\ndone\n"
        # once more: the answer is kept; and behind it there is nothing
        assert mcp.listen(last).rest()[-1] == messages[-1]
        stream = last.split("-")[0]
        assert mcp.listen(again.last).status == 204
        for wrong in ("x", f"{stream}-99", "99-1", f"{stream}-01"):
            assert mcp.listen(wrong).status == 400


def test_who_listens_again_takes_the_place_of_the_connection_that_was_lost(place):
    with McpServer(place) as server:
        mcp = server.client()
        os.mkfifo(place.ws / "fifo")
        answer = mcp.begin("tools/call", **command("cat fifo"))
        last, _ = answer.next()
        again = mcp.listen(last)
        assert answer.next() == (None, None)
        mcp.call("tools/call", **command("echo done > fifo"))
        assert again.rest()[-1]["result"]["structuredContent"]["output"] == "done\n"


def test_a_cancelled_request_has_no_answer_and_its_stream_ends(place):
    with McpServer(place) as server:
        mcp = server.client()
        answer = mcp.begin("tools/call", **command("sleep 1000", yield_time_ms=30000))
        answer.next()
        assert mcp.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": mcp.last}}).status == 202
        assert answer.next() == (None, None)
        assert mcp.begin("ping").json["result"] == {}


def test_the_end_of_a_session_ends_its_commands_and_streams(place):
    with McpServer(place) as server:
        mcp, other = server.client(), server.client()
        listening = mcp.listen()
        answer = mcp.begin("tools/call", **command("echo $$ > pid; exec sleep 1000", yield_time_ms=30000))
        answer.next()
        left = other.call("tools/call", **command("sleep 1000", yield_time_ms=250))["structuredContent"]["session_id"]
        assert [one["session_id"] for one in other.call("tools/call", name="list_sessions", arguments={})[
            "structuredContent"]["sessions"]] == [left]
        assert mcp.end().status == 200
        assert answer.next() == (None, None) and listening.rest() == []
        assert [one["session_id"] for one in other.call("tools/call", name="list_sessions", arguments={})[
            "structuredContent"]["sessions"]] == [left]


def test_sessions_do_not_see_each_others_commands(place):
    def last(answer):
        return answer.rest()[-1] if answer.is_stream else answer.json

    with McpServer(place) as server:
        one, other = server.client(), server.client()
        number = one.call("tools/call", **command("echo secret; sleep 1000", yield_time_ms=250))["structuredContent"]["session_id"]
        uri = f"cordon://session/{number}/output"
        assert "secret" in one.call("resources/read", uri=uri)["contents"][0]["text"]
        for method, params in (("resources/read", {"uri": uri}), ("resources/subscribe", {"uri": uri})):
            assert last(other.begin(method, **params))["error"]["code"] == -32002
        for name, more in (("write_stdin", {"chars": "x"}), ("terminate_session", {}), ("read_screen", {})):
            assert other.call("tools/call", name=name, arguments={"session_id": number} | more)["isError"]
        assert json.loads(other.call("resources/read", uri="cordon://sessions")["contents"][0]["text"]) == {"sessions": []}
        assert number in [value["session_id"] for value in json.loads(
            one.call("resources/read", uri="cordon://sessions")["contents"][0]["text"])["sessions"]]


def test_a_client_that_does_not_read_holds_up_nobody(place):
    """It gets what is small enough to be kept when it comes back; the others go on, and memory stays bounded."""
    with McpServer(place) as server:
        slow, quick = server.client(), server.client()
        begun = [slow.begin("tools/call", **command("head -c 3000000 /dev/zero | tr '\\0' x", max_output_tokens=10 ** 6))
                 for _ in range(2)]
        for _ in range(4):  # fewer than fit into a minute, after which the server gives up
            assert quick.call("tools/call", **command("echo x"))["structuredContent"]["output"] == "x\n"
        for answer in begun:
            assert len(answer.rest()[-1]["result"]["structuredContent"]["output"]) > 500000


def test_a_hundred_clients_at_once(place):
    def one(number):
        mcp = server.client()
        outputs = [mcp.call("tools/call", **command(f"echo {number}.{i}"))["structuredContent"]["output"] for i in range(3)]
        assert mcp.end().status == 200
        return outputs

    with McpServer(place) as server, concurrent.futures.ThreadPoolExecutor(100) as pool:
        outputs = [*pool.map(one, range(100))]
    assert [text for number, texts in enumerate(outputs) for i, text in enumerate(texts) if text != f"{number}.{i}\n"] == []


def test_messages_of_a_batch_are_answered_on_one_stream(place):
    with McpServer(place) as server:
        mcp = server.client(version="2025-03-26")
        answer = mcp.post([mcp.message("tools/call", **command("echo a")), PING, mcp.message("tools/call", **command("echo b"))])
        messages = {one["id"]: one["result"] for one in answer.rest()}
        assert sorted(map(str, messages)) == sorted(["p", str(mcp.last), str(mcp.last - 1)])
        assert json.dumps(messages).count("exit") >= 2


def test_a_client_of_http_1_0_reads_up_to_the_end(place):
    with McpServer(place) as server:
        mcp = server.client()
        body = json.dumps(mcp.message("tools/call", **command("echo hello"))).encode()
        with server.connect() as connection:
            head = connection.head(length=len(body), Mcp_Session_Id=mcp.session)
            connection.send(head.replace(b"HTTP/1.1", b"HTTP/1.0") + body)
            head, _, text = connection.file.read().partition(b"\r\n\r\n")
            assert b"chunked" not in head and b"connection: close" in head
            assert b'"output":"hello\\n"' in text and text.endswith(b"\n\n")
