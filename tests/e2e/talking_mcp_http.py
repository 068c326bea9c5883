"""A client of MCP over HTTP that speaks HTTP itself, so that tests see what is on the wire:

    with McpServer(place) as server:       cordon mcp --listen http://127.0.0.1:0
        mcp = server.client()              initialized: has an id of a session
        mcp.post(message).json             an answer that was there at once
        events = mcp.post(message)         or a stream: events.next() is (id, message)
        mcp.listen(last=ID)                GET
"""
import json
import signal
import socket
import subprocess

from harness import WAIT, finish
from served import SANITIZERS

BOTH = "application/json, text/event-stream"
INITIALIZE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class McpServer:
    def __init__(self, place, *options, auth="own-processes", program=None, words=("mcp",), **kwargs):
        auth = ["--ws-auth", auth] if auth else []
        kwargs = {"program": program} | kwargs if program else kwargs
        self.process = place.start(*words, "--listen", "http://127.0.0.1:0", *auth, *options,
                                   stdin=subprocess.DEVNULL, **kwargs)
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url.endswith("/mcp"), self.process.stderr.read()
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.said = b""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()

    def stop(self):
        """As systemd does; what it said goes to `said`."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            _, self.said = finish(self.process, 0)
        assert not SANITIZERS.search(self.said.decode()), self.said

    def connect(self):
        return Connection(self.port)

    def ask(self, method="POST", body=b"", path="/mcp", **fields):
        """An answer on a connection of its own."""
        with self.connect() as connection:
            return connection.ask(method, body, path, **fields)

    def client(self, **kwargs):
        return McpClient(self, **kwargs)


class Connection:
    def __init__(self, port):
        self.port = port
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self.file = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, text):
        self.sock.sendall(text)

    def head(self, method="POST", path="/mcp", length=None, **fields):
        """`fields`: Mcp_Session_Id="..." and so on; None leaves one out."""
        usual = {"Host": f"127.0.0.1:{self.port}", "Accept": BOTH}
        if method == "POST":
            usual |= {"Content-Type": "application/json", "Content-Length": length}
        fields = usual | {name.replace("_", "-"): value for name, value in fields.items()}
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if value is not None]
        return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()

    def ask(self, method="POST", body=b"", path="/mcp", **fields):
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        body = body.encode() if isinstance(body, str) else body
        self.send(self.head(method, path, len(body) if method == "POST" else None, **fields) + body)
        return Answer(self)


class Answer:
    """What comes to one request. Of a stream of events only the head is read, and to HEAD nothing else comes."""

    def __init__(self, connection, to="POST"):
        self.connection, self.file = connection, connection.file
        line = self.file.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        self.status = int(line.split()[1])
        self.fields = {}
        while (line := self.file.readline().decode().strip()):
            name, _, value = line.partition(": ")
            assert name.lower() not in self.fields, line
            self.fields[name.lower()] = value
        self.is_stream = self.fields.get("content-type") == "text/event-stream"
        length = int(self.fields.get("content-length", 0)) if to != "HEAD" else 0
        self.text = None if self.is_stream else self.file.read(length)
        self.left = b""
        self.last = None  # the id of the last event that next() gave

    @property
    def json(self):
        assert self.fields.get("content-type") == "application/json", (self.status, self.fields)
        return json.loads(self.text)

    @property
    def says(self):
        """The words of a refusal."""
        return self.json["error"]["message"]

    def chunk(self):
        size = int(self.file.readline(), 16)
        data = self.file.read(size)
        assert self.file.readline() == b"\r\n"
        return data

    def next_raw(self):
        """The lines of the next event; None: the stream has ended."""
        while b"\n\n" not in self.left:
            if not (data := self.chunk()):
                assert not self.left
                return None
            self.left += data
        event, _, self.left = self.left.partition(b"\n\n")
        return event.decode().split("\n")

    def next(self):
        """(id, message) of the next event; the message of one that only has an id is None. (None, None): the end."""
        while (lines := self.next_raw()) == [":"]:
            pass
        if lines is None:
            return None, None
        fields = dict(line.split(":", 1) for line in lines)
        data = fields.get("data", "").strip()
        self.last = fields.get("id", "").strip() or None
        return self.last, json.loads(data) if data else None

    def rest(self):
        """The messages up to the end."""
        messages = []
        while True:
            number, message = self.next()
            if number is None and message is None:
                return messages
            if message is not None:
                messages.append(message)


class McpClient:
    """A session, each of whose requests has a connection of its own. `version` None: not initialized."""

    def __init__(self, server, version="2025-11-25", capabilities=None, **fields):
        self.server, self.version, self.last, self.session = server, version, 0, None
        self.fields = fields  # with every request
        if version:
            answer = self.post(self.message("initialize", **INITIALIZE | {
                "protocolVersion": version, "capabilities": capabilities or {}}))
            assert answer.status == 200, (answer.status, answer.text)
            self.initialized = answer.json["result"]
            self.session = answer.fields["mcp-session-id"]
            assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def message(self, method, **params):
        self.last += 1
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}

    def ask(self, method, body=b"", **fields):
        own = {"Mcp_Session_Id": self.session}
        if self.session and self.version != "2025-03-26":
            own["MCP_Protocol_Version"] = self.version
        return self.server.connect().ask(method, body, **own | self.fields | fields)

    def post(self, message, **fields):
        return self.ask("POST", message, **fields)

    def listen(self, last=None):
        return self.ask("GET", Accept="text/event-stream", Last_Event_ID=last)

    def end(self):
        return self.ask("DELETE")

    def begin(self, method, **params):
        return self.post(self.message(method, **params))

    def call(self, method, **params):
        """The result, at once or by a stream; an error is an assertion."""
        answer = self.begin(method, **params)
        message = answer.rest()[-1] if answer.is_stream else answer.json
        assert "result" in message, message
        return message["result"]
