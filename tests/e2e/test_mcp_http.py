"""`cordon mcp --listen`: MCP over HTTP. Sessions, the door, what is refused and with which words."""
import json
import random
import re
import select
import socket
import subprocess

import pytest

from harness import WAIT, read_until
from talking_mcp_http import BOTH, INITIALIZE, Answer, McpServer
from test_mcp_malformed import SERVER, almost_right, good_messages, state_of

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
FIRST = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE | {"protocolVersion": "2025-11-25"}}


def test_a_session_begins_and_ends(place):
    with McpServer(place) as server:
        mcp = server.client()
        assert re.fullmatch("[0-9a-f]{32}", mcp.session)
        assert mcp.initialized["protocolVersion"] == "2025-11-25"
        answer = mcp.post(PING)
        assert answer.json == {"jsonrpc": "2.0", "id": "p", "result": {}} and "mcp-session-id" not in answer.fields
        # the version may be any that there is, not only the session's own
        assert mcp.post(PING, MCP_Protocol_Version="2025-03-26").status == 200
        assert mcp.post(PING, MCP_Protocol_Version=None).status == 200
        assert "2025-11-25" in mcp.post(PING, MCP_Protocol_Version="1999-01-01").says
        # a second initialize, with the id and without one: a session of its own
        assert mcp.post(FIRST).status == 400
        other = server.client()
        assert other.session != mcp.session
        assert mcp.end().status == 200
        assert mcp.end().status == 404
        gone = mcp.post(PING)
        assert gone.status == 404 and "initialize" in gone.says
        assert mcp.listen().status == 404
        assert other.post(PING).status == 200


def test_who_names_no_session_is_told_how_to_get_one(place):
    with McpServer(place) as server:
        for method in ("POST", "GET", "DELETE"):
            answer = server.ask(method, PING if method == "POST" else b"")
            assert answer.status == 400 and "initialize" in answer.says
            assert server.ask(method, PING if method == "POST" else b"", Mcp_Session_Id="0" * 32).status == 404
        # what is no first request leaves no session
        wrong = server.ask(body=FIRST | {"params": {"protocolVersion": 7}})
        assert wrong.json["error"]["code"] == -32602 and "mcp-session-id" not in wrong.fields
        for body in (b"", b"garbage", b"[]", b"7", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}'):
            answer = server.ask(body=body)
            assert answer.status == 400 and answer.json["error"]["code"] in (-32700, -32600), body


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_versions_differ(place, version):
    with McpServer(place) as server:
        mcp = server.client(version=version)
        batch = mcp.post([PING, {"jsonrpc": "2.0", "method": "x"}, 7, PING | {"id": 2, "method": "no"}])
        if version == "2025-03-26":
            assert [(one["id"], one.get("error", {}).get("code")) for one in batch.json] == [
                ("p", None), (None, -32600), (2, -32601)]
            assert mcp.post([{"jsonrpc": "2.0", "method": "x"}]).status == 202
        else:
            assert batch.status == 400 and "2025-03-26" in batch.says
        listening = mcp.listen()
        assert listening.is_stream and listening.fields["cache-control"] == "no-cache, no-transform"
        if version == "2025-11-25":
            assert listening.next_raw() == ["id: 0-0", "retry: 1000", "data:"]
        assert mcp.listen().status == 409
        mcp.end()
        assert listening.next() == (None, None)


def test_requests_of_one_connection_are_answered_in_their_order(place):
    """Those that come with it, and behind it; with a body in chunks, and one that waits to be asked for."""
    with McpServer(place) as server, server.connect() as connection:
        session = server.client().session
        bodies = [json.dumps(PING | {"id": number}).encode() for number in range(20)]
        connection.send(b"".join(connection.head(length=len(body), Mcp_Session_Id=session) + body for body in bodies))
        assert [Answer(connection).json["id"] for _ in bodies] == list(range(20))
        head = connection.head(Mcp_Session_Id=session, Transfer_Encoding="chunked", Expect="100-continue")
        connection.send(head)
        assert connection.file.readline() == b"HTTP/1.1 100 Continue\r\n" and connection.file.readline() == b"\r\n"
        connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(bodies[0]), bodies[0]))
        assert Answer(connection).json["id"] == 0
        assert connection.ask(body=PING, Mcp_Session_Id=session, Connection="close").fields["connection"] == "close"
        assert connection.file.read() == b""


def test_what_is_refused_is_told_with_what_would_be_right(place):
    with McpServer(place) as server:
        session = server.client().session
        for status, says, method, fields in (
                (404, "/mcp", "POST", {"path": "/"}), (405, "POST", "PUT", {}),
                (415, "application/json", "POST", {"Content_Type": "text/plain"}),
                (406, "text/event-stream", "POST", {"Accept": "application/json"}),
                (406, "text/event-stream", "GET", {"Accept": "application/json"}),
                (403, "localhost", "POST", {"Host": "evil.example.com"}),
                (403, "Origin", "POST", {"Origin": "http://evil.example.com"}),
                (403, "Origin", "POST", {"Origin": "null"}),
                (403, "Origin", "GET", {"Origin": "http://localhost:1"})):
            with server.connect() as connection:
                connection.send(connection.head(method, length=4, Mcp_Session_Id=session, **fields)
                                if method == "POST" else connection.head(method, Mcp_Session_Id=session, **fields))
                answer = Answer(connection)  # before the body came
                assert answer.status == status and says in answer.says, (status, fields)
                assert ("allow" in answer.fields) == (status == 405)
        with server.connect() as connection:  # HEAD gets no body, which would be taken for the beginning of the next answer
            connection.send(connection.head("HEAD") + connection.head("PUT"))
            assert Answer(connection, "HEAD").status == 405
            assert Answer(connection).status == 405
        for origin in ("localhost", "127.0.0.1", "[::1]"):
            assert server.ask(body=PING, Mcp_Session_Id=session, Origin=f"http://{origin}:{server.port}").status == 200
        assert server.ask(Content_Length="16777217").status == 413
        assert server.ask(Content_Length="2, 2").status == 400
        assert server.ask(X="x" * 9000).status == 431


def test_wants_the_users_token_by_default(place):
    with McpServer(place, auth=None) as server:
        token = (place.home / ".config/cordon/private/ws-token").read_text().strip()
        answer = server.ask(body=FIRST)
        assert answer.status == 401 and answer.fields["www-authenticate"] == "Bearer" and "private/ws-token" in answer.says
        assert server.ask("GET", path="/other").status == 401
        mcp = server.client(Authorization=f"Bearer {token}")
        assert mcp.post(PING).status == 200
        # the id of a session opens nothing
        assert mcp.post(PING, Authorization=None).status == 401
        assert mcp.post(PING, Authorization="Bearer no").status == 401


def test_a_token_of_ones_own_and_a_new_one(place):
    file = place.outside / "token"
    file.write_text("one\n")
    with McpServer(place, "--ws-token-file", file, auth="capability-token") as server:
        assert server.ask(body=FIRST, Authorization="Bearer two").status == 401
        mcp = server.client(Authorization="Bearer one")
        looked = mcp.call("tools/call", name="exec_command", arguments={"cmd": f"cat {file}", "login": False})
        assert looked["structuredContent"]["exit_code"] == 1 and "one" not in looked["structuredContent"]["output"]
        file.write_text("two\n")
        server.process.send_signal(1)
        while mcp.post(PING).status != 401:
            pass
        assert mcp.post(PING, Authorization="Bearer two").status == 200


@pytest.mark.parametrize("options, says", [
    (["--listen", "http://0.0.0.0:0"], "capability-token"),
    (["--listen", "http://0.0.0.0:0", "--ws-auth", "anybody"], "loopback"),
    (["--listen", "ws://127.0.0.1:0"], "http://IP:PORT"), (["--listen", "http://localhost:0"], "http://IP:PORT"),
    (["--ws-auth", "anybody"], "--listen"), (["--session-idle", "5m"], "--listen")])
def test_what_would_be_open_does_not_start(place, options, says):
    ended = place.cordon("mcp", *options)
    assert ended.returncode and says in ended.stderr and not ended.stdout, ended


KNOCK = """
import http.client, sys
port, token, body, accept = sys.argv[1:]
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
for method, body in (("POST", body), ("GET", None)):  # the second refusal is the last one without a body, too
    connection.request(method, "/mcp", body, {"Content-Type": "application/json", "Accept": accept,
                                              "Authorization": "Bearer " + token})
    answer = connection.getresponse()
    answer.read()
    print(answer.status, answer.getheader("connection"))
"""


@pytest.mark.parametrize("auth", ["user-token", "own-processes"])
def test_a_command_does_not_come_in(place, auth):
    """It could have the next one started with permissions that it does not have itself: also with the token."""
    with McpServer(place, auth=auth) as server:
        token = place.home / ".config/cordon/private/ws-token"
        token = token.read_text().strip() if auth == "user-token" else "x"
        knock = ["python3", "-c", KNOCK, str(server.port), token, json.dumps(FIRST), BOTH]
        assert subprocess.run(knock, capture_output=True, text=True, timeout=WAIT, check=True).stdout == "200 None\n400 None\n"
        for flags in (["--network", "enabled"], ["--sandbox", "disabled"], ["--host-port", server.port]):
            ran = place.run(*flags, "--", *knock)
            assert ran.stdout == 2 * "403 close\n", ran
        ran = place.run("--allow-local-binding", "--", *knock)  # a loopback of its own
        assert ran.returncode and not ran.stdout, ran


def test_a_session_that_nobody_wants_ends(place):
    """And none that is listened to, or works on a request: tests/unit/mcp/http/test_server.c."""
    with McpServer(place, "--session-idle", "50ms", "--log-level", "info") as server:
        session = server.ask(body=FIRST).fields["mcp-session-id"]
        read_until(server.process.stderr, b"mcp-session-idle session=1")
        assert server.ask(body=PING, Mcp_Session_Id=session).status == 404


def test_sessions_have_a_ceiling(place):
    with McpServer(place) as server, server.connect() as connection:
        sessions = [connection.ask(body=FIRST).fields["mcp-session-id"] for _ in range(256)]
        full = connection.ask(body=FIRST)
        assert full.status == 503 and "DELETE" in full.says
        assert connection.ask("DELETE", Mcp_Session_Id=sessions[100]).status == 200
        assert connection.ask(body=FIRST).status == 200


def test_connections_have_a_ceiling(place):
    """Those who have not come in go first, then those who have nothing to say; never one that is listened to."""
    with McpServer(place, auth="anybody") as server:
        mcp = server.client()
        listening = mcp.listen()
        strangers = [server.connect() for _ in range(300)]  # they say nothing
        assert mcp.post(PING).status == 200
        for _ in range(256):  # they are refused, and do not go
            strangers.append(server.connect())
            strangers[-1].send(b"\n")
            assert Answer(strangers[-1]).status == 400
        assert mcp.post(PING).status == 200
        idle = []
        for _ in range(100):  # each asks at once: who takes ten seconds for that is closed
            idle.append(server.connect())
            assert idle[-1].ask("GET", path="/").status == 404
        wait_for_ends(idle, 100 - 64)
        mcp.end()
        assert listening.rest() == []


def wait_for_ends(connections, count):
    """Of so many of them, before the time is up that each may be idle (75 s)."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection.sock, select.POLLIN)
    while count > 0:
        ended = poll.poll(40000)
        assert ended, f"{count} more should end"
        for number, _ in ended:
            poll.unregister(number)
        count -= len(ended)


COUNT = 5000
AT_A_TIME = 20


def broken_head(text, chance):
    """A request in which something is changed, so that it is none any more, or another one, or goes on for ever."""
    text = bytearray(text)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        how = chance.randrange(5)
        if how == 0:
            text[at] = chance.choice(b"\0\r\n\t :;,=/\x7f\x80\xff09azAZ")
        elif how == 1:
            del text[at:at + chance.randrange(1, 20)]
        elif how == 2:
            text[at:at] = text[at:at + chance.randrange(1, 40)]
        elif how == 3:
            text[at:at] = chance.choice([b"\r\n", b"\n", b"\r\nContent-Length: 5\r\n", b"\r\nTransfer-Encoding: chunked\r\n",
                                         b"\r\n\r\n", b"\r\nHost: x\r\n", b"\r\nMcp-Session-Id: x\r\n", b"x" * 9000])
        if not text:
            return b"\r\n\r\n"
    return bytes(text)


def test_almost_right_requests(place):
    """10,000: half of them with a body that is almost right, half with a head that is. The server lives, a request behind
    them is answered, and neither memory nor descriptors become more."""
    chance = random.Random("http")
    known = list(good_messages())
    with McpServer(place, auth="anybody") as server:
        mcp = server.client()
        listening = mcp.listen()  # takes what goes to no stream
        connection = server.connect()
        warm = None
        for sent in range(0, COUNT, AT_A_TIME):
            if sent == COUNT // 2:
                warm = state_of(server.process.pid)
            bodies = [almost_right(chance.choice(known), chance) for _ in range(AT_A_TIME)]
            requests = [connection.head(length=len(body), Mcp_Session_Id=mcp.session) + body for body in bodies]
            connection.send(b"".join(requests))
            others = [server.connect() for _ in requests]
            for other, request in zip(others, requests):
                other.send(broken_head(request, chance))
                other.sock.shutdown(socket.SHUT_WR)
            for body in bodies:
                answer = Answer(connection)
                if answer.is_stream:
                    answer.rest()
                assert answer.status in (200, 202, 400), (answer.status, body)
            for other in others:
                other.file.read()
                other.close()
        assert connection.ask(body=PING, Mcp_Session_Id=mcp.session).json["result"] == {}
        connection.close()
        bytes_now, descriptors_now = state_of(server.process.pid)
        assert descriptors_now <= warm[1] + 64  # some commands run just now, with five each; and AT_A_TIME connections end
        assert bytes_now - warm[0] < 4 << 20 or b"__asan_init" in SERVER.read_bytes()
        listening.connection.close()
