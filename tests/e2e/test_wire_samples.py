"""Every recorded conversation with the original (tests/cases/wire) is held again with `cordon
serve`, and the answers are the same up to ids, times, paths, and how output was cut into chunks.

Before a request is sent, everything that had come before it in the recording has to have come. What
is different on purpose stands in DIFFERENT, with the reason, as in docs/compatibility.md."""
import base64
import contextlib
import json
import os
import pathlib
import re
import subprocess

import pytest
from harness import TOP, WAIT
from served import Server, ServedClient
from ws_client import Closed

SAMPLES = TOP / "tests/cases/wire"

PARSE_ERROR = "failed to parse JSON-RPC message from exec-server stdio: "

# What a command prints about the machine that it runs on: not compared.
VOLATILE = {"p10", "t1"}

DIFFERENT = {
    # arg0 works on a terminal, too: the original looks arg0 up in PATH there
    ("03-tty", 19): lambda got: got["result"]["processId"] == "t12",
}

# The same code, in words of ours.
SAID_DIFFERENTLY = {("08-fs", 45)}

# Fields of answers that are of the machine or the moment.
OF_THE_HOST = {"createdAtMs", "modifiedAtMs", "hostname"}


def load(name):
    return [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").read_text().splitlines()]


class StdioClient(ServedClient):
    """The same client over the standard input and output of a server."""

    def __init__(self, place, *options):
        self.process = place.start("serve", "--listen", "stdio", *options,
                                   stderr=subprocess.DEVNULL)
        super().__init__(None, lines=True)

    def send_bytes(self, data):
        """A server that has gone is found out by reading."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.process.stdin.fileno(), data)

    def read_line(self):
        line = self.process.stdout.readline()
        if not line:
            raise Closed
        return line


def in_order(value):
    """Entries of a folder come in no order."""
    if isinstance(value, list) and all("fileName" in item for item in value):
        return sorted(value, key=lambda item: item["fileName"])
    return value


class Output:
    """What is known of one process: on one side of the comparison."""

    def __init__(self):
        self.streams, self.seqs = {}, []

    def add(self, params):
        self.seqs.append(params["seq"])
        if "chunk" in params:
            data = self.streams.get(params["stream"], b"") + base64.b64decode(params["chunk"])
            self.streams[params["stream"]] = data

    def lines(self):
        return sum(data.count(b"\n") for data in self.streams.values())


class Replay:
    def __init__(self, name, place, open_client):
        self.name, self.place, self.open_client = name, place, open_client
        self.clients, self.client = {}, None
        self.wanted, self.got = {}, {}
        self.sessions, self.scripts = {}, {}

    # --- up to paths and ids ---

    def here(self, text):
        for there, ours in (("/workspace/probe", self.place.ws), ("/workspace", self.place.ws),
                            ("/home/user", self.place.home),
                            ("/nonexistent", "/no/such/program")):
            text = text.replace(there, str(ours))
        for there, ours in self.sessions.items():
            text = text.replace(there, ours)
        return text

    def message(self, message):
        return json.loads(self.here(json.dumps(message, ensure_ascii=False)))

    # --- the steps ---

    def run(self, lines):
        if not any(line["dir"] == "meta" for line in lines if "dir" in line):
            self.client = self.open_client()
        for line in lines:
            if "msg" in line:
                getattr(self, "on_" + line["dir"])(line["msg"])

    def on_meta(self, message):
        ((what, which),) = message.items()
        if what == "connect":
            self.clients[which] = self.client = self.open_client()
        else:
            self.clients.pop(which).sock.close()

    def on_c2s(self, message):
        """What was interrupted in the recording had been running for a while."""
        message = self.message(message)
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if message["method"] == "process/start":
            self.scripts[params["processId"]] = params["argv"][-1]
        script = self.scripts.get(params.get("processId"), "")
        if message["method"] == "process/signal" or params.get("chunk") == "Aw==":
            is_ready = has_trap if "trap" in script else has_child
            while "sleep" in script and not is_ready(script):
                pass
        self.client.send(message)

    def on_c2s_raw(self, text):
        self.client.send_text(text)

    def on_s2c(self, message):
        if "_eof" in message:
            if not self.clients:
                self.client.wait_closed()
        elif "id" in message:
            self.answer(message)
        elif "method" in message:
            self.event(message)

    def answer(self, wanted):
        got = self.client.answer(wanted["id"])
        if (self.name, wanted["id"]) in DIFFERENT:
            assert DIFFERENT[self.name, wanted["id"]](got), got
        elif "error" in wanted:
            self.compare_error(self.message(wanted["error"]), got.get("error"),
                               (self.name, wanted["id"]) in SAID_DIFFERENTLY)
        else:
            assert "result" in got, (wanted, got)
            self.compare_result(self.message(wanted["result"]), got["result"])

    @staticmethod
    def compare_error(wanted, got, only_code):
        assert got, wanted
        assert got["code"] == wanted["code"], (wanted, got)
        if wanted["message"].startswith(PARSE_ERROR):
            assert got["message"].startswith(PARSE_ERROR), got
        elif not only_code:
            assert got["message"] == wanted["message"], got

    def compare_result(self, wanted, got):
        if "sessionId" in wanted:
            self.sessions[wanted["sessionId"]] = got["sessionId"]
            self.compare_info(wanted["environmentInfo"], got["environmentInfo"])
        elif "chunks" in wanted:
            self.compare_read(wanted, got)
        else:
            skip = OF_THE_HOST | ({"size"} if wanted.get("isDirectory") else set())
            assert ({key: in_order(got.get(key)) for key in wanted if key not in skip}
                    == {key: in_order(wanted[key]) for key in wanted if key not in skip})

    @staticmethod
    def compare_info(wanted, got):
        """The same fields of the same types; the values are of this machine."""
        if isinstance(wanted, str):  # "as in 01-handshake"
            return
        for key, value in wanted.items():
            assert type(got[key]) is type(value), key
        assert got["platformOs"] == wanted["platformOs"]
        assert re.fullmatch("sha256:[0-9a-f]{64}", got["providerId"])
        assert set(wanted["capabilities"]) | {"sandboxProfiles", "http", "layers"} == set(got["capabilities"])

    @staticmethod
    def compare_read(wanted, got):
        streams = []
        for side in (wanted, got):
            output = Output()
            for chunk in side["chunks"]:
                output.add(chunk)
            streams.append(output.streams)
        assert streams[0] == streams[1]
        for key in ("exited", "exitCode", "failure", "sandboxDenied"):
            assert got[key] == wanted[key], key
        # a read that waits can be answered just before the end or just behind it
        if got["closed"] == wanted["closed"] and len(got["chunks"]) == len(wanted["chunks"]):
            assert got["nextSeq"] == wanted["nextSeq"]
        assert wanted["closed"] or not got["closed"]

    # --- events ---

    def event(self, message):
        params = message["params"]
        if message["method"] == "fs/missingChanged":  # when depends on what the sandbox puts there
            return
        name = params["processId"]
        wanted = self.wanted.setdefault(name, Output())
        got = self.got.setdefault(name, Output())
        wanted.add(params)
        if message["method"] == "process/output":
            while got.lines() < wanted.lines():
                self.take(name, "process/output")
            return
        while (took := self.take(name))["method"] != message["method"]:
            assert took["method"] == "process/output", took
        rest = {key: params[key] for key in params if key != "seq"}
        if os.geteuid():  # who could not have written to /etc without a sandbox either
            rest.pop("sandboxDenied", None)
        assert {key: took["params"].get(key) for key in rest} == rest
        if message["method"] == "process/closed":
            self.compare_output(name, wanted, got)

    def take(self, name, method=None):
        got = self.client.event(method, lambda params: params.get("processId") == name)
        self.got[name].add(got["params"])
        return got

    def compare_output(self, name, wanted, got):
        assert got.seqs == list(range(got.seqs[0], got.seqs[0] + len(got.seqs)))
        if name not in VOLATILE:
            assert {stream: self.here(data.decode(errors="surrogateescape")).encode(
                errors="surrogateescape") for stream, data in wanted.streams.items()} == got.streams


def processes():
    """(cmdline, text of status) of all that there are."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (path / "cmdline").read_bytes(), (path / "status").read_text()


def has_trap(script):
    """The shell that runs this script catches SIGINT."""
    return any(script.encode() in cmdline
               and int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> 1 & 1
               for cmdline, status in processes())


def has_child(script):
    """The shell that runs this script has become or started a sleep: before that it would take an
    interrupt for itself and wait for the sleep all the same."""
    shells = {re.search(r"\nPid:\s*(\d+)", status)[1] for cmdline, status in processes()
              if script.encode() in cmdline}
    return any(cmdline.startswith(b"sleep\0") and re.search(r"PPid:\s*(\d+)", status)[1] in shells
               for cmdline, status in processes())


def test_handshake(place):
    lines = load("01-handshake")
    client = StdioClient(place)
    Replay("01-handshake", place, lambda: client).run(lines)
    client.process.stdin.close()
    assert client.process.wait(WAIT) == 0


def test_pipe(place):
    with Server(place) as server:
        Replay("02-pipe", place, server.connect).run(load("02-pipe"))


def test_tty(place):
    lines = load("03-tty")
    env = next(line["msg"]["params"]["chunk"] for line in lines
               if line["msg"].get("method") == "process/output"
               and line["msg"]["params"]["processId"] == "e0")
    replay = Replay("03-tty", place, None)
    given = dict(line.split("=", 1) for line in
                 replay.here(base64.b64decode(env).decode()).splitlines())
    place.env = {name: value for name, value in given.items()
                 if name not in ("PWD", "SETV", "X")}
    with Server(place) as server:
        replay.open_client = server.connect
        replay.run(lines)


def test_client(place):
    """What an unmodified client said to run one command."""
    lines = load("20-client-exec-command")
    head = next(line["http"] for line in lines if line.get("dir") == "c2s" and "http" in line)
    reply = next(line["http"] for line in lines if line.get("dir") == "s2c" and "http" in line)
    fields = dict(line.split(": ", 1) for line in head[1:] if line)
    with Server(place) as server:
        client = server.connect(fields=fields)
        for line in filter(None, reply[1:]):
            name, value = line.split(": ", 1)
            assert name in client.reply.fields
            if name != "date":
                assert client.reply.fields[name].lower() == value.lower()
        Replay("20-client-exec-command", place, lambda: client).run(lines)


def test_resume(place):
    """Its times do not matter but for the order: the ticks come faster here."""
    lines = load("06-disconnect-resume")
    start = next(line["msg"]["params"] for line in lines
                 if line["msg"].get("method") == "process/start")
    start["argv"][2] = start["argv"][2].replace("sleep 0.2", "sleep 0.02")
    with Server(place) as server:
        first = Replay("06-disconnect-resume", place, server.connect)
        drop = next(index for index, line in enumerate(lines) if "drop" in line["msg"])
        again = next(index for index, line in enumerate(lines)
                     if line["msg"].get("connect") == "C")
        read = next(index for index, line in enumerate(lines[again:], again)
                    if line["msg"].get("method") == "process/read")
        first.run(lines[:drop])
        session = next(iter(first.sessions.values()))
        seen = first.clients["A"]
        seen.sock.close()
        resumed = attach(server, session)
        events = resumed.until("p1", "process/closed")
        resumed.notify("initialized", {})
        first.client = resumed
        before = first.got["p1"].seqs
        after = [event["params"]["seq"] for event in events]
        # On a busy machine two ticks may come in one piece, so how many pieces there are is open.
        assert after == list(range(after[0], after[-1] + 1))
        assert before == list(range(1, len(before) + 1))
        first.wanted = {}
        first.got = {}
        for line in lines[read:]:
            if "method" in line["msg"] or "id" in line["msg"]:
                getattr(first, "on_" + line["dir"])(line["msg"])
            if line["msg"].get("id") == 3 and "error" in line["msg"]:
                break
        resumed.sock.close()
        again = attach(server, session)
        assert again.session == session


def make_files(place):
    """What stood in the folder of the recording."""
    top = place.ws / "fsw"
    (top / "d/sub/.hid").mkdir(parents=True)
    for name, text in (("f", "hi\n"), ("sp ace \u00e9.txt", "hi"), ("d/a.txt", "a"),
                       ("d/sub/b.txt", "b"), ("d/sub/.hid/c", "c")):
        (top / name).write_text(text)
    for name, target in (("lnk", "f"), ("dl", "d"), ("dang", "nowhere")):
        (top / name).symlink_to(target)
    os.mkfifo(top / "fifo")


def whole_files_sample():
    """The recording without what was trimmed from it: long blocks, and opening 125 files."""
    for line in load("08-fs"):
        message = line["msg"]
        params = message.get("params", {})
        if line["dir"] == "c2s" and message.get("id") == 242:
            for number in range(118, 242):
                yield {"dir": "c2s", "msg": {**message, "id": number, "params": {
                    **params, "handleId": f"k{number - 116}"}}}
                yield {"dir": "s2c", "msg": {"id": number, "result": {
                    "handleId": f"k{number - 116}"}}}
        if "characters trimmed" in params.get("chunk", ""):
            size = (1 << 20) + (message["id"] == 111)  # a MiB, and one byte more
            params["chunk"] = base64.b64encode(b"z" * size).decode()
        yield line


def test_files(place):
    """Two answers are of the machine: what /proc says of the server, and that its user is root. And
    a number that is none for 64 bits makes the whole message none here."""
    make_files(place)
    not_ours = {31} | ({49} if os.geteuid() else set())
    lines = [line for line in whole_files_sample() if line["msg"].get("id") not in not_ours | {112}]
    with Server(place) as server:
        Replay("08-fs", place, server.connect).run(lines)


def attach(server, session):
    """Resumes as soon as the server has seen that the old connection is gone."""
    client = server.connect()
    while True:
        answer = client.answer(client.request("initialize", {"clientName": "probe",
                                                             "resumeSessionId": session}))
        if "result" in answer:
            client.session = answer["result"]["sessionId"]
            return client
        assert answer["error"]["code"] == -32010
