"""A WebSocket and JSON-RPC client on a raw socket, standard library only: what a test has to get
wrong on purpose is a parameter, and what the server really sent can be looked at byte by byte.

    client = Client.connect("ws://127.0.0.1:4711")         TCP; or "unix:/path" (JSON lines)
    client.call("initialize", {"clientName": "test"})      the result; an error raises RpcError
    client.notify("initialized", {})
    client.event("process/output")                         the next notification of that name
    client.close()

Everything waits for the server for at most WAIT seconds. Messages that were not asked for stay in
`client.events` in the order in which they came.
"""
import base64
import collections
import json
import os
import random
import socket
import struct

WAIT = 60
TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10

Frame = collections.namedtuple("Frame", "opcode payload fin")


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class Closed(Exception):
    """The server closed; `code` and `reason` are those of its Close frame, if it sent one."""

    def __init__(self, code=None, reason=""):
        super().__init__(f"closed with {code} {reason}")
        self.code, self.reason = code, reason


class Refused(Exception):
    """The upgrade was answered with something else than 101."""

    def __init__(self, reply):
        super().__init__(f"HTTP {reply.status}: {reply.body!r}")
        self.reply, self.status = reply, reply.status


class Reply:
    """The answer to an HTTP request. `rest` is what came behind it."""

    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1])
        self.fields = {}
        for line in lines:
            name, _, value = line.partition(":")
            self.fields[name.strip().lower()] = value.strip()


def dial(url, timeout=WAIT):
    """A connected socket to ws://IP:PORT or unix:PATH."""
    if url.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(url[len("unix:"):])
        return sock
    host, _, port = url[len("ws://"):].rpartition(":")
    sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def upgrade_head(host="localhost", path="/", fields=(), without=(), method="GET"):
    """The request of a handshake; `fields` are added or replaced, `without` left out."""
    head = {"Host": host, "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}
    head.update(fields)
    lines = [f"{name}: {value}" for name, value in head.items() if name not in without]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


def read_all(sock):
    """Everything up to the end, which a reset counts as."""
    data = b""
    try:
        while chunk := sock.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def http(url, request):
    """The reply to any bytes, read to the end of the connection."""
    with dial(url) as sock:
        sock.sendall(request)
        return Reply(read_all(sock))


def http_get(url, path, method="GET", fields=()):
    lines = [f"{name}: {value}" for name, value in dict(fields).items()]
    return http(url, "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode())


# Frames name test cases, and every process that collects tests has to come to the same names.
MASKS = random.Random(0)


def mask_bytes(payload, key):
    whole = (key * (len(payload) // 4 + 1))[:len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(whole, "big")).to_bytes(
        len(payload), "big")


def frame(payload, opcode=TEXT, fin=True, masked=True, rsv=0, length=None):
    """One frame of a client. `length` is what its head claims, if not the truth."""
    if isinstance(payload, str):
        payload = payload.encode()
    size = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | opcode])
    bit = masked << 7
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + payload
    key = MASKS.randbytes(4)
    return head + key + mask_bytes(payload, key)


def close_frame(code=1000, reason=b""):
    return frame(b"" if code is None else struct.pack(">H", code) + reason, CLOSE)


class Client:
    """One connection, past its handshake."""

    def __init__(self, sock, lines=False, rest=b""):
        self.sock, self.lines, self.rest = sock, lines, rest
        self.next_id = 1
        self.events = []   # notifications and the server's requests, oldest first
        self.answers = {}  # id -> message
        self.pongs = []
        self.pings = []

    @classmethod
    def connect(cls, url, token=None, fields=(), websocket=None):
        """`websocket` False: JSON lines; by default for unix: only."""
        sock = dial(url)
        lines = url.startswith("unix:") if websocket is None else not websocket
        if lines:
            return cls(sock, lines=True)
        fields = dict(fields)
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        sock.sendall(upgrade_head(fields=fields))
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = sock.recv(65536)
            if not chunk:
                break
            data += chunk
        if not data.startswith(b"HTTP/1.1 101 "):
            data += read_all(sock)
            sock.close()
            if not data:
                raise Closed
            raise Refused(Reply(data))
        client = cls(sock, rest=data.partition(b"\r\n\r\n")[2])
        client.reply = Reply(data)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def close(self):
        """Says good-bye and waits for the server to do so."""
        try:
            if self.lines:
                self.sock.shutdown(socket.SHUT_WR)
                read_all(self.sock)
            else:
                self.sock.sendall(close_frame())
                self.wait_closed()
        except OSError:
            pass
        self.sock.close()

    # --- bytes and frames ---

    def send_bytes(self, data):
        self.sock.sendall(data)

    def read_bytes(self, count):
        while len(self.rest) < count:
            try:
                chunk = self.sock.recv(max(65536, count - len(self.rest)))
            except (ConnectionResetError, BrokenPipeError):
                chunk = b""
            if not chunk:
                raise Closed
            self.rest += chunk
        data, self.rest = self.rest[:count], self.rest[count:]
        return data

    def read_frame(self):
        first, second = self.read_bytes(2)
        size = second & 127
        if size == 126:
            size, = struct.unpack(">H", self.read_bytes(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.read_bytes(8))
        assert not second & 128, "a server does not mask"
        return Frame(first & 15, self.read_bytes(size), bool(first & 128))

    def read_line(self):
        while b"\n" not in self.rest:
            chunk = self.sock.recv(65536)
            if not chunk:
                raise Closed
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def read_text(self):
        """The text of the next message. Pings are answered; a Close raises Closed."""
        if self.lines:
            return self.read_line()
        while True:
            got = self.read_frame()
            if got.opcode == CLOSE:
                code = struct.unpack(">H", got.payload[:2])[0] if got.payload else None
                raise Closed(code, got.payload[2:].decode())
            if got.opcode == PING:
                self.pings.append(got.payload)
                self.send_bytes(frame(got.payload, PONG))
            elif got.opcode == PONG:
                self.pongs.append(got.payload)
            else:
                assert got.opcode == TEXT and got.fin
                return got.payload

    def send_text(self, text):
        if isinstance(text, str):
            text = text.encode()
        self.send_bytes(text + b"\n" if self.lines else frame(text))

    def wait_closed(self):
        """Reads to the end; the Closed that says how it came."""
        try:
            while True:
                self.read_text()
        except Closed as closed:
            if closed.code is not None:
                read_all(self.sock)
            return closed

    def ping(self, payload=b""):
        """Waits for the answer, which comes in order with messages."""
        self.send_bytes(frame(payload, PING))
        while not self.pongs:
            got = self.read_frame()
            if got.opcode == PONG:
                self.pongs.append(got.payload)
            elif got.opcode == CLOSE:
                raise Closed(struct.unpack(">H", got.payload[:2])[0] if got.payload else None)
            else:
                self.sort(json.loads(got.payload))
        return self.pongs.pop(0)

    # --- messages ---

    def send(self, message):
        self.send_text(json.dumps(message))

    def receive(self):
        """The next message, whatever it is."""
        return json.loads(self.read_text())

    def sort(self, message):
        if "method" in message:
            self.events.append(message)
        else:
            self.answers[message["id"]] = message

    def request(self, method, params=None):
        """Sends only; the id."""
        number, self.next_id = self.next_id, self.next_id + 1
        message = {"id": number, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return number

    def answer(self, number):
        """The whole answer to the request of this id."""
        while number not in self.answers:
            self.sort(self.receive())
        return self.answers.pop(number)

    def call(self, method, params=None):
        message = self.answer(self.request(method, params))
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def notify(self, method, params=None):
        self.send({"method": method, "params": params})

    def event(self, method=None, where=lambda params: True):
        """The oldest notification (or request of the server) of this name that was not taken yet,
        waiting for it."""
        seen = 0
        while True:
            for index in range(seen, len(self.events)):
                message = self.events[index]
                if method in (None, message["method"]) and where(message.get("params")):
                    return self.events.pop(index)
            seen = len(self.events)
            self.sort(self.receive())
