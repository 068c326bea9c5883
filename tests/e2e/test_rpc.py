"""Connections of src/rpc, by way of a server that has nothing else (tests/unit/rpc/rpc_echo.c): HTTP
heads, frames, limits, closing, Unix sockets, stdio."""
import contextlib
import json
import os
import socket
import stat
import struct
import subprocess

import pytest

import malformed
import ws_client
from harness import BUILD, WAIT
from ws_client import (BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Client, Closed, Refused,
                       close_frame, dial, frame, http, http_get, upgrade_head)

ECHO = BUILD / "tests/unit/rpc/rpc_echo"
FRAME_MAX, MESSAGE_MAX = 16 << 20, 64 << 20


def short(value):
    """A name for a case that says enough."""
    return repr(value)[:40]


class Server:
    def __init__(self, place, *words, listens=("ws://127.0.0.1:0",), **kwargs):
        self.process = place.start(*words, *listens, program=ECHO, **kwargs)
        self.urls = [self.process.stdout.readline().decode().strip() for _ in listens]
        self.url = self.urls[0]

    def end(self):
        with Client.connect(self.url) as client:
            client.request("end")
            client.wait_closed()
        assert self.process.wait(WAIT) == 0


@pytest.fixture
def server(place):
    """Shows at its end that whatever the test did, the server does its work."""
    server = Server(place)
    assert server.url.startswith("ws://127.0.0.1:")
    with Client.connect(server.url) as other:
        yield server
        assert other.call("echo", [1]) == [1]
    server.end()


@pytest.fixture
def client(server):
    with Client.connect(server.url) as client:
        yield client


# --- the HTTP side ---

def test_upgrade_is_answered_as_the_rfc_has_it(server):
    with dial(server.url) as sock:
        sock.sendall(upgrade_head(fields={"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}))
        reply = ws_client.Reply(sock.recv(65536))
    assert reply.status == 101
    assert reply.fields["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455, 1.3
    assert reply.fields["connection"] == "upgrade" and reply.fields["upgrade"] == "websocket"
    assert "date" in reply.fields
    assert not {"sec-websocket-protocol", "sec-websocket-extensions"} & set(reply.fields)


@pytest.mark.parametrize("fields", [
    {"Sec-WebSocket-Protocol": "a, b", "Sec-WebSocket-Extensions": "permessage-deflate"},
    {"connection": "keep-alive, UPGRADE", "Upgrade": "WebSocket"},
    {"Authorization": "Bearer whatever"},
])
def test_upgrade_with_more_than_it_needs(server, fields):
    without = {"Connection"} if "connection" in fields else ()
    with dial(server.url) as sock:
        sock.sendall(upgrade_head(path="/?a=b", fields=fields, without=without))
        reply = ws_client.Reply(sock.recv(65536))
    assert reply.status == 101
    assert "sec-websocket-extensions" not in reply.fields


@pytest.mark.parametrize("request_bytes, status", [
    (upgrade_head(without=["Sec-WebSocket-Key"]), 400),
    (upgrade_head(fields={"Sec-WebSocket-Key": "c2hvcnQ="}), 400),
    (upgrade_head(fields={"Sec-WebSocket-Key": "!" * 24}), 400),
    (upgrade_head(fields={"Sec-WebSocket-Version": "8"}), 400),
    (upgrade_head(without=["Upgrade"]), 400),
    (upgrade_head(without=["Connection"]), 400),
    (upgrade_head(fields={"Content-Length": "5"}), 400),
    (upgrade_head(fields={"Transfer-Encoding": "chunked"}), 400),
    (upgrade_head(method="POST"), 405),
    (upgrade_head(fields={"Origin": "http://localhost"}), 403),
    (upgrade_head(fields={"Origin": ""}), 403),
    (upgrade_head(path="/other"), 404),
    (upgrade_head(path="http://x/"), 404),
    (upgrade_head(fields={"X": "a\rb"}), 400),
    (upgrade_head(fields={"X": "a\0b"}), 400),
    (upgrade_head(fields={"X": "a\x7fb"}), 400),
    (upgrade_head(fields={"X ": "a"}), 400),
    (upgrade_head(fields={"": "a"}), 400),
    (upgrade_head(fields={"Sec-Websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}), 400),
    (upgrade_head().replace(b"HTTP/1.1", b"HTTP/2.0"), 400),
    (upgrade_head().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    (upgrade_head().replace(b"GET /", b"GET  /"), 400),
    (upgrade_head().replace(b"GET", b"G\xc3\xa4T"), 400),
    (b"\r\n\r\n", 400),
    (b"no http\r\n\r\n", 400),
    (b"GET / HTTP/1.1\nHost: x\n\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 65 + b"\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 64 + b"\r\n", 400),  # well-formed, but no upgrade
    (b"GET /" + b"x" * 16384, 431),
    (b"x" * 20000, 431),
], ids=short)
def test_bad_requests_are_answered_and_closed(server, request_bytes, status):
    assert http(server.url, request_bytes).status == status


@pytest.mark.parametrize("path, method, status, body", [
    ("/readyz", "GET", 200, b""),
    ("/readyz?x", "HEAD", 200, b""),
    ("/readyz", "POST", 405, b""),
    ("/healthz", "GET", 200, b""),
    ("/metrics", "GET", 200, b"echo_up 1\n"),
    ("/metrics", "HEAD", 200, b""),
    ("/metrics", "DELETE", 405, b""),
    ("/readyz/", "GET", 404, b""),
    ("/favicon.ico", "GET", 404, b""),
    ("*", "OPTIONS", 404, b""),
])
def test_pages(server, path, method, status, body):
    reply = http_get(server.url, path, method)
    assert (reply.status, reply.body) == (status, body)
    if status == 405:
        assert reply.fields["allow"] == "GET,HEAD"
    if body:
        assert reply.fields["content-type"].startswith("text/plain; version=0.0.4")
        assert reply.fields["content-length"] == str(len(body))


def test_origin_is_refused_for_every_page(server):
    for path in ("/", "/readyz", "/metrics", "/nothing"):
        assert http_get(server.url, path, fields={"Origin": "null"}).status == 403


def test_heads_in_single_bytes_and_with_frames_behind(server):
    request = upgrade_head() + frame(json.dumps({"id": 1, "method": "echo", "params": "early"}))
    with dial(server.url) as sock:
        for byte in request:
            sock.sendall(bytes([byte]))
        data = b""
        while b"early" not in data:
            data += sock.recv(65536)
    with dial(server.url) as sock:
        sock.sendall(request)
        data = b""
        while b"early" not in data:
            data += sock.recv(65536)


def test_half_a_head_and_then_the_end(server):
    for part in (b"", b"GET", upgrade_head()[:-2]):
        with dial(server.url) as sock:
            sock.sendall(part)
            sock.shutdown(socket.SHUT_WR)
            assert ws_client.read_all(sock) == b""


# --- frames ---

def test_text_binary_and_fragments_are_one_message_each(client):
    text = json.dumps({"id": 7, "method": "echo", "params": "ä€😀"}, ensure_ascii=False).encode()
    for opcode in (TEXT, BINARY):
        client.send_bytes(frame(text, opcode))
        assert client.answer(7)["result"] == "ä€😀"
        parts = [text[i:i + 1] for i in range(len(text))]  # also inside characters
        client.send_bytes(frame(parts[0], opcode, fin=False))
        for part in parts[1:-1]:
            client.send_bytes(frame(part, CONTINUATION, fin=False))
            client.send_bytes(frame(b"", CONTINUATION, fin=False))
        client.send_bytes(frame(parts[-1], CONTINUATION))
        assert client.answer(7)["result"] == "ä€😀"


def test_ping_between_fragments(client):
    client.send_bytes(frame('{"id":1,"method":', fin=False))
    assert client.ping(b"x" * 125) == b"x" * 125
    client.send_bytes(frame('"echo","params":2}', CONTINUATION))
    assert client.answer(1)["result"] == 2


def test_many_messages_in_one_write_are_answered_in_order(client):
    client.send_bytes(b"".join(frame(json.dumps({"id": i, "method": "echo", "params": i}))
                               for i in range(1000)))
    assert [client.receive()["result"] for _ in range(1000)] == list(range(1000))


@pytest.mark.parametrize("data, code", [
    (frame("{}", masked=False), 1002),
    (frame("{}", rsv=4), 1002),
    (frame("{}", rsv=1), 1002),
    (frame("{}", 3), 1002),
    (frame("{}", 11), 1002),
    (frame("{}", CONTINUATION), 1002),
    (frame("{", fin=False) + frame("}"), 1002),
    (frame("x" * 126, PING), 1002),
    (frame("x", PING, fin=False), 1002),
    (frame("x", CLOSE), None),                                 # no room for a code
    (close_frame(1005), 1002),
    (close_frame(999), 1002),
    (close_frame(1000, b"\xff"), 1007),
    (b"\x81\xfe\x00\x01" + b"abcd" + b"x", 1002),              # 16 bits for a length below 126
    (b"\x81\xff" + struct.pack(">Q", 5) + b"abcdxxxxx", 1002),
    (b"\x81\xff" + struct.pack(">Q", 1 << 63) + b"abcd", 1002),
    (b"\x81\xff" + struct.pack(">Q", FRAME_MAX + 1) + b"abcdxxxxx", 1009),
    (frame(b'{"a":"\xff"}'), 1007),
    (frame(b'{"a":"\xed\xa0\x80"}'), 1007),                    # a surrogate
    (frame(b'{"a":"\xc3', fin=True), 1007),
    (frame(b'{"a":"\xc3', fin=False) + frame(b'"}', CONTINUATION), 1007),
], ids=short)
def test_offences_are_closed_with_a_code(client, data, code):
    client.send_bytes(data)
    assert client.wait_closed().code == code


@pytest.mark.parametrize("sent, code, reason", [
    (close_frame(1000, b"bye"), 1000, "bye"),
    (close_frame(None), None, ""),
    (close_frame(4999), 4999, ""),
])
def test_close_is_answered_in_kind(client, sent, code, reason):
    client.send_bytes(sent)
    closed = client.wait_closed()
    assert (closed.code, closed.reason) == (code, reason)


def test_close_by_the_server(client):
    client.request("close", {"code": 1008, "reason": "grund: ä" + "x" * 200})
    closed = client.wait_closed()
    assert closed.code == 1008
    assert closed.reason == "grund: ä" + "x" * 114  # 123 bytes


def test_answer_before_a_close_is_not_lost(client):
    client.request("large", {"size": 3 << 20})
    client.request("close", {"code": 1000})
    assert len(client.answer(1)["result"]) == 3 << 20
    assert client.wait_closed().code == 1000


def test_frame_and_message_of_the_largest_size(client):
    def whole(size):
        return b'{"id":1,"method":"count","params":"' + b"x" * (size - 37) + b'"}'

    client.send_bytes(frame(whole(FRAME_MAX)))
    assert client.answer(1)["result"]["open"] == 2
    text = whole(MESSAGE_MAX)
    client.send_bytes(frame(text[:FRAME_MAX], fin=False))
    for at in range(FRAME_MAX, MESSAGE_MAX, FRAME_MAX):
        client.send_bytes(frame(text[at:at + FRAME_MAX], CONTINUATION,
                                fin=at + FRAME_MAX == MESSAGE_MAX))
    assert client.answer(1)["result"]["open"] == 2


def test_message_beyond_the_largest_size(client):
    part = frame(b" " * FRAME_MAX, CONTINUATION, fin=False)
    client.send_bytes(frame(b"{", fin=False))
    with contextlib.suppress(OSError):
        for _ in range(4):
            client.send_bytes(part)
    assert client.wait_closed().code == 1009


# --- messages ---

@pytest.mark.parametrize("text", [
    "", " ", "no json", "[]", '[{"id":1,"method":"echo"}]', "1", '"a"', "null", "{}",
    '{"id":1}', '{"id":null,"method":"echo"}', '{"id":1.5,"method":"echo"}',
    '{"id":9223372036854775808,"method":"echo"}', '{"id":{},"method":"echo"}',
    '{"id":1,"method":1}', '{"id":1,"method":"echo","trace":1}',
    '{"id":1,"method":"echo","trace":{"traceparent":1}}', '{"id":1,"error":{}}',
    '{"id":1,"error":{"code":"a","message":"b"}}', '{"result":1}',
    '{"id":1,"method":"echo"} x', '{"id":1,"id":2,"method":"echo"}',
    '{"id":1,"method":"echo","params":"\\u0000"', '{"id":1,"method":"echo","params":"\\u0000"}}',
    '{"id":1,"method":"echo","params":[1e999}', '[{"id":1,"method":"echo","params":1e999}]',
    '{"method":"echo","params":{"id":1,"a":1e999}}',
], ids=short)
def test_what_is_no_message_is_answered_with_id_minus_one(client, text):
    client.send_text(text)
    message = client.receive()
    assert message["id"] == -1 and message["error"]["code"] == -32600
    address = "%s:%d" % client.sock.getsockname()
    assert message["error"]["message"].startswith(
        f"failed to parse websocket JSON-RPC message from exec-server websocket {address}: ")
    assert client.call("echo", "on") == "on"


@pytest.mark.parametrize("request_id", [7, -3, "seven", "a\0b"], ids=repr)
@pytest.mark.parametrize("params, reason", [
    ('"\\u0000"', "a text has a NUL character"), ('{"a\\u0000":1}', "a text has a NUL character"),
    ('["a}]\\"", {"b":"\\u0000"}]', "a text has a NUL character"),
    ("9223372036854775808", "a number does not fit into 64 bits"),
    ("[1e400]", "a number does not fit into 64 bits"),
    ('{"a":1,"a":2}', "duplicate object key"), ('"\\ud800"', "invalid Unicode"),
    ("[" * 200 + "]" * 200, "nested deeper"), ("[" + "0," * 262144 + "0]", "values in one message"),
], ids=short)
def test_a_request_that_cannot_be_read_is_refused_by_its_own_id(client, request_id, params, reason):
    for text in ('{"id":%s,"method":"echo","params":%s}', '{"params": %s , "method":"echo", "id" : %s }'):
        values = (json.dumps(request_id), params)
        client.send_text(text % (values if text.startswith('{"id') else values[::-1]))
        message = client.receive()
        assert (message["id"], message["error"]["code"]) == (request_id, -32602)
        assert "\0" in str(request_id) or reason in message["error"]["message"]
    assert client.call("echo", "on") == "on"


def test_ids_come_back_as_they_were(client):
    for number in (0, -5, (1 << 63) - 1, -(1 << 63), "", "text ä \" \\ \n"):
        client.send({"id": number, "method": "echo", "unknown": [{}], "jsonrpc": "2.0",
                     "trace": {"traceparent": None, "tracestate": "x"}})
        assert client.receive() == {"id": number, "result": None}


def test_values_up_to_the_limit_are_a_message(client):
    client.send_text('{"id":1,"method":"echo","params":[' + "0," * 262139 + "0]}")
    assert len(client.answer(1)["result"]) == 262140


def test_unknown_method_and_unknown_notification(client):
    with pytest.raises(ws_client.RpcError) as caught:
        client.call("no/such")
    assert caught.value.code == -32601 and "no/such" in caught.value.message
    client.notify("note")
    assert client.call("echo", 1) == 1
    client.notify("other")
    assert client.wait_closed().code == 1008


def test_requests_of_the_server(client):
    first, second = client.request("ask", {"n": 1}), client.request("ask", {"n": 2})
    questions = [client.event("question"), client.event("question")]
    assert [q["params"]["n"] for q in questions] == [1, 2]
    assert [q["id"] for q in questions] == [1, 2]
    client.send({"id": 2, "error": {"code": 1, "message": "no"}})
    client.send({"id": 1, "result": {"yes": True}})
    assert client.answer(second)["error"]["message"] == "no"
    assert client.answer(first)["result"] == {"yes": True}


@pytest.mark.parametrize("answer", [{"id": 1, "result": {}}, {"id": "1", "result": {}},
                                    {"id": 5, "error": {"code": 1, "message": "x"}}])
def test_answer_that_nobody_asked_for_closes(client, answer):
    client.send(answer)
    assert client.wait_closed().code == 1002


def test_question_is_not_answered_twice(client):
    number = client.request("ask")
    client.event("question")
    client.send({"id": 1, "result": 1})
    assert client.answer(number)["result"] == 1
    client.send({"id": 1, "result": 1})
    assert client.wait_closed().code == 1002


# --- queues and neighbours ---

def test_flood_arrives_complete_and_in_order_after_a_stall(server, client):
    number = client.request("flood", {"count": 2000, "size": 32768})
    with Client.connect(server.url) as other:  # until it sees that the first one's queue is full
        while other.call("count")["queued"] < 1 << 20:
            pass
        for i in range(100):
            assert other.call("echo", i) == i
        assert other.call("count")["queued"] < 2 << 20
    for seq in range(1, 2001):
        event = client.event("noise")
        assert event["params"]["seq"] == seq and len(event["params"]["chunk"]) == 43692
    assert client.answer(number)["result"] == {}


def test_peer_that_does_not_read_is_not_read(server, client):
    """Answers without end would be memory without end."""
    client.sock.settimeout(0.5)
    text = frame(json.dumps({"id": 1, "method": "large", "params": {"size": 100000}}))
    with contextlib.suppress(TimeoutError):
        while True:  # until the kernel's buffers are full as well
            client.send_bytes(text * 100)
    with Client.connect(server.url) as other:
        assert other.call("count")["queued"] < 5 << 20


def test_peers_that_vanish_in_the_middle(server):
    for linger in (False, True):
        for _ in range(20):
            client = Client.connect(server.url)
            client.request("flood", {"count": 1000, "size": 32768})
            client.receive()
            if linger:  # a reset
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sock.close()
    with Client.connect(server.url) as other:
        while other.call("count")["open"] != 2:
            pass


def test_half_close_ends_the_connection(client):
    client.request("echo", 1)
    client.sock.shutdown(socket.SHUT_WR)
    assert client.answer(1)["result"] == 1
    with pytest.raises(Closed):
        client.receive()


def test_storm_of_connections(server):
    for _ in range(3):
        clients = [Client.connect(server.url) for _ in range(100)]
        for number, client in enumerate(clients):
            assert client.call("echo", number) == number
        for client in clients:
            client.close()


def test_too_many_connections(place):
    server = Server(place, "--max-peers", "2")
    with Client.connect(server.url) as first:
        with Client.connect(server.url):
            with pytest.raises(Refused) as caught:
                Client.connect(server.url)
            assert caught.value.status == 503
            assert http_get(server.url, "/readyz").status == 200
            silent = [dial(server.url) for _ in range(5)]  # more than may wait
            assert http_get(server.url, "/readyz").status == 200
            assert ws_client.read_all(silent[0]) == b""  # the oldest had to go
            for sock in silent:
                sock.close()
        while first.call("count")["open"] > 1:
            pass
        Client.connect(server.url).close()
        assert first.call("count")["refused"] == 1


@pytest.mark.parametrize("kind", ["ws", "unix"])
def test_ten_thousand_malformed_inputs(place, kind):
    listen = "ws://127.0.0.1:0" if kind == "ws" else f"unix:{place.base}/s"
    server = Server(place, listens=(listen,))
    requests = [
        {"id": 1, "method": "echo", "params": {"path": "file:///tmp/x", "chunk": "YWJj", "n": [1]}},
        {"id": "a", "method": "echo", "params": ["x"], "trace": {"traceparent": "x"}},
        {"id": 3, "method": "count"},
        {"method": "note", "params": {"x": "file:///"}},
    ]

    def probe(client):
        assert client.call("echo", "alive") == "alive"

    counts = malformed.Assault(server.url, requests, probe).run(10000)
    assert counts["answered"] > 1000 and counts["closed"] > 1000
    server.end()


# --- listening ---

def test_several_listeners_at_once(place):
    server = Server(place, listens=("ws://127.0.0.1:0", f"unix:{place.base}/s", "ws://127.0.0.2:0"))
    assert server.urls[1] == f"unix:{place.base}/s"
    assert server.urls[2].startswith("ws://127.0.0.2:")
    clients = [Client.connect(url) for url in server.urls]
    for client in clients:
        assert client.call("echo", 1) == 1
    clients[0].request("end")
    for client in clients:
        closed = client.wait_closed()
        assert client.lines or (closed.code, closed.reason) == (1001, "the server ends")
        client.sock.close()
    assert server.process.wait(WAIT) == 0
    assert not (place.base / "s").exists()


def test_ipv6(place):
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"this host has no IPv6: {error}")
    server = Server(place, listens=("ws://[::1]:0",))
    with Client.connect(server.url) as client:
        assert client.call("echo", 1) == 1
        client.send_text("")
        assert f"exec-server websocket [::1]:{client.sock.getsockname()[1]}: " in \
            client.receive()["error"]["message"]


@pytest.mark.parametrize("listen, says", [
    ("ws://localhost:0", "invalid websocket"), ("ws://127.0.0.1", "invalid websocket"),
    ("ws://:1", "invalid websocket"), ("ws://127.0.0.1:65536", "invalid websocket"),
    ("ws://[::1:1", "invalid websocket"), ("ws://127.0.0.1:1/", "invalid websocket"),
    ("wss://127.0.0.1:1", "unsupported"), ("http://127.0.0.1:1", "unsupported"),
    ("127.0.0.1:1", "unsupported"), ("", "unsupported"), ("unix:", "path"),
    ("unix:" + "x" * 108, "107 bytes"), ("unix:/no/such/folder/s", "/no/such/folder/s"),
    ("ws://0.0.0.0:0", "--ws-auth"), ("ws://[::]:0", "--ws-auth"), ("fd:0", "no listening"),
])
def test_bad_addresses_are_one_line_and_exit_1(place, listen, says):
    process = place.start(listen, program=ECHO)
    out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 1 and out == b""
    assert says in err.decode() and err.count(b"\n") == 1


def test_port_in_use(place, server):
    process = place.start(server.url, program=ECHO)
    assert "Address already in use" in process.communicate(timeout=WAIT)[1].decode()


def test_unix_socket_is_for_its_owner(place):
    path = place.base / "s"
    server = Server(place, listens=(f"unix:{path}",), preexec_fn=lambda: os.umask(0))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if os.geteuid() == 0:
        path.chmod(0o666)
        place.base.chmod(0o755)
        script = ("import os, socket; os.setuid(12345); s = socket.socket(socket.AF_UNIX); "
                  f"s.connect({str(path)!r}); print(s.recv(100))")
        ran = subprocess.run(["python3", "-c", script], capture_output=True, timeout=WAIT)
        assert ran.stdout in (b"b''\n", b"") and b"PermissionError" not in ran.stderr
        with Client.connect(server.url) as client:
            assert client.call("count")["refused"] == 1


def test_unix_socket_that_was_left_over_is_replaced(place):
    path = place.base / "s"
    first = Server(place, listens=(f"unix:{path}",))
    busy = place.start(f"unix:{path}", program=ECHO)
    assert "another server listens there" in busy.communicate(timeout=WAIT)[1].decode()
    first.process.kill()
    first.process.wait()
    assert path.exists()
    second = Server(place, listens=(f"unix:{path}",))
    with Client.connect(second.url) as client:
        assert client.call("echo", 1) == 1
        path.unlink()
        path.write_text("not the server's")
        client.request("end")
    assert second.process.wait(WAIT) == 0
    assert path.read_text() == "not the server's"
    third = place.start(f"unix:{path}", program=ECHO)
    assert "is no socket" in third.communicate(timeout=WAIT)[1].decode()


def test_unix_socket_speaks_lines_and_http(place):
    server = Server(place, listens=(f"unix:{place.base}/s",))
    assert http_get(server.url, "/healthz").status == 200
    with Client.connect(server.url, websocket=True) as client:
        assert client.call("echo", 1) == 1
    with Client.connect(server.url) as client:
        assert client.call("echo", 2) == 2
        client.send_text("[]")
        assert client.receive()["error"]["message"].startswith(
            "failed to parse JSON-RPC message from exec-server unix socket: ")
    server.end()


def test_sockets_that_systemd_made(place):
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local, \
            socket.socket() as exposed:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        local.bind(f"{place.base}/s")
        local.listen()
        exposed.bind(("0.0.0.0", 0))
        exposed.listen()
        fds = [s.fileno() for s in (tcp, local)]
        server = Server(place, listens=[f"fd:{fd}" for fd in fds], pass_fds=fds)
        for url in server.urls:
            with Client.connect(url) as client:
                assert client.call("echo", 1) == 1
        refused = place.start(f"fd:{exposed.fileno()}", program=ECHO, pass_fds=[exposed.fileno()])
        assert "--ws-auth" in refused.communicate(timeout=WAIT)[1].decode()
    server.end()
    assert (place.base / "s").exists()  # it is systemd's


# --- stdio ---

def talk(place, data, **kwargs):
    process = place.start("stdio", program=ECHO, **kwargs)
    out, err = process.communicate(data, timeout=WAIT)
    assert process.returncode == 0 and err == b"stdio\n"
    return [json.loads(line) for line in out.splitlines()]


def test_stdio_answers_lines_and_ends_with_stdin(place):
    assert talk(place, b'\n  \r\n{"id":1,"method":"echo","params":1}\r\n'
                       b'{"id":2,"method":"echo"}') == [
        {"id": 1, "result": 1}, {"id": 2, "result": None}]
    assert talk(place, b"") == []


def test_stdio_parse_errors(place):
    bad, good = talk(place, b'\xff\n{"id":1,"method":"echo"}\n')
    assert bad["id"] == -1 and good["id"] == 1
    assert bad["error"]["message"].startswith(
        "failed to parse JSON-RPC message from exec-server stdio: ")


def test_stdio_lines_of_any_length_and_many_at_once(place):
    text = "x" * (5 << 20)
    lines = [json.dumps({"id": 0, "method": "echo", "params": text})]
    lines += [json.dumps({"id": i, "method": "echo", "params": i}) for i in range(1, 5000)]
    answers = talk(place, "\n".join(lines).encode())
    assert answers[0]["result"] == text
    assert [a["id"] for a in answers] == list(range(5000))


def test_stdio_unknown_notification_ends_it(place):
    assert talk(place, b'{"method":"other"}\n{"id":1,"method":"echo"}\n') == []


def test_stdio_line_that_is_too_long(place):
    process = place.start("stdio", program=ECHO)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(b" " * (MESSAGE_MAX + (1 << 20)))
        process.stdin.flush()
    out, _ = process.communicate(timeout=WAIT)
    assert process.returncode == 0 and out == b""


def test_stdio_of_files(place):
    (place.ws / "in").write_text('{"id":1,"method":"large","params":{"size":300000}}\n')
    with open(place.ws / "in") as stdin, open(place.ws / "out", "w") as stdout:
        process = place.start("stdio", program=ECHO, stdin=stdin, stdout=stdout)
        assert process.wait(WAIT) == 0
    assert len(json.loads((place.ws / "out").read_text())["result"]) == 300000


def test_stdio_leaves_the_callers_descriptions_blocking(place):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader, writer = os.pipe()
        process = place.start("stdio", program=ECHO, stdin=theirs, stdout=writer)
        ours.sendall(b'{"id":1,"method":"echo"}\n')
        assert os.read(reader, 100) == b'{"id":1,"result":null}\n'
        assert os.get_blocking(writer) and os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(WAIT) == 0
        os.close(reader)
        os.close(writer)
