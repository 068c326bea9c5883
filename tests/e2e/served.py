"""A running `cordon serve`, for tests:

    with Server(place) as server:              ws://127.0.0.1:0, or what `listen` says
        with server.client() as client:        connected and initialized
            client.start("p1", "echo hi")      process/start of `sh -c`
            client.follow("p1")                its events up to process/closed
"""
import base64
import os
import re
import signal
import subprocess

from harness import WAIT, read_until
from ws_client import Client

SANITIZERS = re.compile(r"(Address|Leak)Sanitizer|runtime error:")

READ_ONLY = {"permissions": {"type": "managed", "network": "restricted", "file_system": {
    "type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}},
    "windowsSandboxLevel": "disabled"}


def workspace_write(*roots):
    """What an unmodified client sends for workspace-write."""
    entries = [{"path": {"type": "special", "value": value}, "access": access}
               for value, access in (({"kind": "root"}, "read"), ({"kind": "project_roots"}, "write"),
                                     ({"kind": "slash_tmp"}, "write"), ({"kind": "tmpdir"}, "write"))]
    return {"permissions": {"type": "managed", "network": "restricted",
                            "file_system": {"type": "restricted", "entries": entries}},
            "windowsSandboxLevel": "disabled", "workspaceRoots": [uri(root) for root in roots]}


def uri(path):
    return f"file://{path}"


class Ended:
    """What the events of one process came to."""

    def __init__(self, events):
        self.events = events
        chunks = [event["params"] for event in events if event["method"] == "process/output"]
        pieces = [(chunk["stream"], base64.b64decode(chunk["chunk"])) for chunk in chunks]
        self.output = b"".join(data for _, data in pieces)
        self.streams = {stream: b"".join(data for of, data in pieces if of == stream)
                        for stream in {stream for stream, _ in pieces}}
        self.exited = next(event["params"] for event in events
                           if event["method"] == "process/exited")
        self.code = self.exited["exitCode"]
        self.seqs = [event["params"]["seq"] for event in events]


def exec_run(client, name, argv, **params):
    """Sends exec/run, of text for sh -c or an argv, in a workspace; the id of the request."""
    return client.request("exec/run", {
        "runId": name, "argv": ["/bin/sh", "-c", argv] if isinstance(argv, str) else argv,
        "cwd": uri(client.cwd), "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        "envPolicy": {"inherit": "none", "ignoreDefaultExcludes": True, "exclude": [], "set": {},
                      "includeOnly": []},
        "sandbox": workspace_write(client.cwd), **params})


def exec_result(client, number):
    message = client.answer(number)
    assert "error" not in message, message
    return message["result"]


class ServedClient(Client):
    """A client with the shorthands that most tests need."""

    def initialize(self, **params):
        self.session = self.call("initialize", {"clientName": "test", **params})["sessionId"]
        self.notify("initialized", {})
        return self

    def start(self, name, command, sandbox=None, env=None, **params):
        """`command`: text for sh -c, or an argv."""
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        return self.call("process/start", {
            "processId": name, "argv": argv, "cwd": uri(self.cwd), "tty": False,
            "env": {"PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})}, "sandbox": sandbox,
            **params})

    def until(self, name, method):
        """The events of a process up to one of this method; not what is decided about its network."""
        events = []
        while not events or events[-1]["method"] != method:
            events.append(self.event(where=lambda params: params.get("processId") == name and not {"decision", "request"} & set(params)))
        return events

    def follow(self, name):
        return Ended(self.until(name, "process/closed"))

    def output_until(self, name, wanted):
        """The output of a process from here on, up to the event that brings `wanted`."""
        seen = b""
        while wanted not in seen:
            params = self.event("process/output", lambda params: params["processId"] == name)
            seen += base64.b64decode(params["params"]["chunk"])
        return seen

    def run(self, name, command, **params):
        self.start(name, command, **params)
        return self.follow(name)

    def write(self, name, data, write_id):
        return self.call("process/write", {"processId": name, "writeId": write_id,
                                           "chunk": base64.b64encode(data).decode()})["status"]


def auth_of(listen, options):
    """Most tests are about something else than the token: a client by hand knows none."""
    is_said = "--ws-auth" in options or not listen.startswith("ws:")
    return [] if is_said else ["--ws-auth", "own-processes"]


class Server:
    def __init__(self, place, *options, listen="ws://127.0.0.1:0", env=None, cwd=None, **kwargs):
        self.place = place
        self.log = open(place.base / "serve.log", "ab+")  # noqa: SIM115
        place.cleanup.callback(self.log.close)
        self.process = place.start("serve", "--listen", listen, *auth_of(listen, options), *options, env=env, cwd=cwd,
                                   stdin=subprocess.DEVNULL, stderr=self.log, **kwargs)
        self.url = read_until(self.process.stdout, b"\n").decode().strip()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            assert not SANITIZERS.search(self.logged()), self.logged()

    def connect(self, **kwargs):
        client = ServedClient.connect(self.url, **kwargs)
        client.cwd = self.place.ws
        self.place.cleanup.callback(client.sock.close)
        return client

    def client(self, **params):
        return self.connect().initialize(**params)

    def stop(self, number=signal.SIGTERM):
        """The exit status."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(WAIT)

    def logged(self):
        self.log.seek(0)
        return self.log.read().decode()


