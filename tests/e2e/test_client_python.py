"""clients/python against the real server."""
import asyncio
import functools
import os
import pathlib
import sys
import typing

import pytest

from file_server import SERVER, Server
from harness import TOP, WAIT

CLIENT = TOP / "clients/python"
sys.path.insert(0, str(CLIENT))

import cordon  # noqa: E402
from cordon import (Closed, Disconnected, Exited, InputClosed, Output, RpcError,  # noqa: E402
                    Sandbox)
from cordon import sync  # noqa: E402


def run(test):
    @functools.wraps(test)
    def wrapped(*args, **kwargs):
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), WAIT))
    return wrapped


@pytest.fixture(autouse=True)
def home(place, monkeypatch):
    """Without the token that somebody's server may have made in the home of who runs the tests."""
    monkeypatch.setenv("HOME", str(place.home))
    monkeypatch.delenv("CORDON_HOME", raising=False)


@pytest.fixture(params=["ws", "unix"])
def server(place, request):
    listen = "ws://127.0.0.1:0" if request.param == "ws" else f"unix:{place.base}/s"
    return Server(place, listen)


async def shell(client, place, script, **more):
    return await client.start(["/bin/sh", "-c", script], place.ws, **more)


class Proxy:
    """Between client and server, to be cut."""

    def __init__(self, url):
        self.port = int(url.rpartition(":")[2])
        self.writers, self.is_closed = [], False

    async def open(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return f"ws://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def serve(self, reader, writer):
        if self.is_closed:
            writer.transport.abort()
            return
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers += [writer, other_writer]
        await asyncio.gather(self.pump(reader, other_writer), self.pump(other_reader, writer))

    @staticmethod
    async def pump(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    def cut(self, stay_away=False):
        self.is_closed = stay_away
        for writer in self.writers:
            writer.transport.abort()
        self.writers = []


@run
async def test_events_come_in_order(place, server):
    async with cordon.connect(server.url) as client:
        assert client.session_id and client.info["platformOs"] == "linux"
        process = await shell(client, place, "echo a; echo b >&2; exit 7")
        events = [event async for event in process.events()]
        assert {(e.stream, e.data) for e in events if isinstance(e, Output)} == {
            ("stdout", b"a\n"), ("stderr", b"b\n")}
        assert isinstance(events[-2], Exited) and events[-2].exit_code == 7
        assert isinstance(events[-1], Closed)
        assert (await process.wait()).exit_code == 7


@run
async def test_input_and_output(place, server):
    async with cordon.connect(server.url) as client:
        process = await shell(client, place, "sort; echo done >&2", stdin=True)
        result = await process.communicate(b"b\na\n" * 50000)
        assert result.stdout == b"a\n" * 50000 + b"b\n" * 50000
        assert (result.stderr, result.exit.exit_code, result.lost) == (b"done\n", 0, 0)
        closed = await shell(client, place, "cat")
        with pytest.raises(InputClosed):
            await closed.write(b"x")


@run
async def test_a_terminal(place, server):
    async with cordon.connect(server.url) as client:
        process = await shell(client, place, "stty size; read x; stty size; echo got $x",
                              tty=True, size=(30, 100))
        seen = b""
        async for event in process.events():
            seen += event.data if isinstance(event, Output) else b""
            if seen == b"30 100\r\n":
                await process.resize(40, 120)
                await process.write(b"y\n")
        assert b"40 120\r\ngot y\r\n" in seen


@run
async def test_signals_and_the_end(place, server):
    async with cordon.connect(server.url) as client:
        process = await shell(client, place, "trap 'exit 5' INT; echo ready; while :; do sleep 60 & wait; done")
        events = process.events()
        assert (await events.__anext__()).data == b"ready\n"
        await process.interrupt()
        assert (await process.wait()).exit_code == 5
        other = await shell(client, place, "sleep 600")
        assert await other.terminate() is True
        assert (await other.wait()).exit_code == 137
        assert await other.terminate() is False
        with pytest.raises(RpcError) as caught:
            await client.start(["/does/not/exist"], place.ws)
        assert caught.value.code == RpcError.INTERNAL


@run
async def test_a_sandbox_holds_and_tells(place, server):
    async with cordon.connect(server.url) as client:
        box = Sandbox(workspace=place.ws)
        process = await shell(client, place, f"echo in > f; echo out > {place.outside}/f", sandbox=box)
        result = await process.communicate()
        assert process.sandbox_type == "linuxSeccomp"
        assert result.exit.sandbox_denied and result.exit.exit_code != 0
        assert (place.ws / "f").read_text() == "in\n" and not (place.outside / "f").exists()
        inside = client.files.inside(box)
        assert await inside.read(place.ws / "f") == b"in\n"
        with pytest.raises(RpcError, match="Read-only file system"):
            await inside.write(place.outside / "f", b"")


@run
async def test_a_sandbox_that_reaches_hosts(place, server):
    async with cordon.connect(server.url) as client:
        box = Sandbox(allow_hosts=["good.test", "*.good.test:443"])
        process = await shell(client, place, "getent hosts bad.test", sandbox=box)
        result = await process.communicate()
        assert [(denial["host"], denial["reason"]) for denial in result.exit.denials] == [("bad.test", "not_allowed")]


@run
async def test_files(place, server):
    async with cordon.connect(server.url) as client:
        files, ws = client.files.inside("none"), place.ws
        await files.make_directory(ws / "d/e")
        await files.write(ws / "d/f é", b"hello")
        assert await files.read(ws / "d/f é") == b"hello"
        assert (await files.metadata(ws / "d/f é")).size == 5
        await files.copy(ws / "d", ws / "c", recursive=True)
        assert {entry.name for entry in await files.list(ws / "c")} == {"e", "f é"}
        walk = await files.walk(ws)
        assert walk.files == [f"{ws}/c/f é", f"{ws}/d/f é"] and not walk.truncated
        assert await files.real_path(ws / "c") == f"{ws}/c"
        await files.remove(ws / "c")
        with pytest.raises(RpcError) as caught:
            await files.read(ws / "c/f é")
        assert caught.value.code == RpcError.NOT_FOUND
        data = os.urandom(3 << 20)
        async with await files.open(ws / "big", "replace") as handle:
            await handle.write(0, data)
        async with await files.open(ws / "big") as handle:
            assert b"".join([await handle.read(i << 20) for i in range(4)]) == data
        await files.write(ws / "huge", data * 5)  # more than one frame
        assert await files.read(ws / "huge") == data * 5
        waiting = asyncio.create_task(files.wait_for([ws / "later"]))
        await asyncio.sleep(0)  # the task gets to send its call
        await client.call("environment/status")  # the watch stands
        (ws / "later").write_text("")
        assert await waiting is True
        assert await files.wait_for([ws]) is False


@run
async def test_calls_of_a_model(place, server):
    async with cordon.connect(server.url) as client:
        answer = await client.sessions.exec("echo hi; read x; echo got $x", place.ws, tty=True,
                                            login=False, shell="/bin/sh", screen=True,
                                            until={"text": "hi"})
        assert answer.exit_code is None and answer.session_id is not None
        assert [one["sessionId"] for one in await client.sessions.list()] == [answer.session_id]
        assert (await client.sessions.screen(answer.session_id)).lines[0] == "hi"
        answer = await client.sessions.write(answer.session_id, "you\n", until={"text": "got you"})
        if answer.session_id is not None:
            answer = await client.sessions.wait(answer.session_id)
        assert answer.exit_code == 0
        answer = await client.sessions.exec("sleep 600", place.ws, yield_time=0.25)
        assert (await client.sessions.terminate(answer.session_id, grace=0)).session_id is None


@run
async def test_a_lost_connection_loses_nothing(place):
    proxy = Proxy(Server(place).url)
    async with cordon.connect(await proxy.open()) as client:
        os.mkfifo(place.ws / "go")
        process = await shell(client, place, "echo one; read line <go; "
                                             "echo two; read x; echo got $x; exit 3", stdin=True)
        events = process.events()
        assert (await events.__anext__()).data == b"one\n"
        session = client.session_id
        proxy.cut(stay_away=True)
        (place.ws / "go").write_text("\n")  # what follows is written while nobody listens, or almost
        proxy.is_closed = False
        assert (await events.__anext__()).data == b"two\n"
        assert client.session_id == session
        proxy.cut()
        await process.write(b"you\n")
        rest = [event async for event in events]
        assert b"".join(e.data for e in rest if isinstance(e, Output)) == b"got you\n"
        assert (await process.wait()).exit_code == 3


@run
async def test_starts_survive_a_cut(place):
    """Each command runs once, whether its start had come through, been answered, or neither."""
    proxy = Proxy(Server(place).url)
    async with cordon.connect(await proxy.open()) as client:
        starts = [asyncio.ensure_future(shell(client, place, f"echo {number} >> ran; echo {number}",
                                              sandbox=Sandbox()))
                  for number in range(24)]
        for _ in range(3):
            await asyncio.wait(starts, return_when=asyncio.FIRST_COMPLETED)
            proxy.cut()
        ended = await asyncio.gather(*[(await start).communicate() for start in starts])
        assert [one.stdout for one in ended] == [b"%d\n" % number for number in range(24)]
        assert sorted(map(int, (place.ws / "ran").read_text().split())) == list(range(24))
        assert len({(await start).sandbox_type for start in starts} - {"none"}) == 1
        proxy.cut()
        with pytest.raises(RpcError, match="os error 2"):
            await client.start(["/no/such/program"], place.ws)


@run
async def test_much_input_is_one_write(place, server):
    async with cordon.connect(server.url) as client:
        process = await shell(client, place, "wc -c", stdin=True)
        assert (await process.communicate(bytes(9 << 20))).stdout.strip() == b"%d" % (9 << 20)


@run
async def test_what_ended_meanwhile_is_told(place):
    proxy = Proxy(Server(place).url)
    async with cordon.connect(await proxy.open()) as client:
        process = await shell(client, place, "echo one; read x; echo two; exit 4", stdin=True)
        first = await process.events().__anext__()
        assert first.data == b"one\n"
        await process.write(b"\n")
        proxy.cut(stay_away=True)
        async with cordon.connect(proxy_target(proxy)) as watcher:
            alias = await watcher.call("process/attach", {"sessionId": client.session_id,
                                                          "processId": process.id})
            await watcher.call("process/wait", {"processId": alias["alias"], "until": "closed"})
        proxy.is_closed = False
        result = await process.communicate()
        assert (result.stdout, result.exit.exit_code) == (b"two\n", 4)


def proxy_target(proxy):
    return f"ws://127.0.0.1:{proxy.port}"


@run
async def test_a_session_can_be_taken_up(place):
    url = Server(place).url
    client = await cordon.connect(url, reconnect_for=0)
    process = await shell(client, place, "echo one; read x; echo two", stdin=True)
    assert (await process.events().__anext__()).data == b"one\n"
    await client.close()
    with pytest.raises(Disconnected):
        await process.wait()
    async with cordon.connect(url, resume=client.session_id) as other:
        again = await other.take_up(process.id)
        await again.write(b"\n")
        assert (await again.communicate()).stdout == b"one\ntwo\n"


@run
async def test_a_server_that_ends_is_an_error(place):
    server = Server(place)
    async with cordon.connect(server.url, reconnect_for=0) as client:
        process = await shell(client, place, "sleep 600")
        place.stop(server.process)
        with pytest.raises(Disconnected):
            await process.wait()
        with pytest.raises(Disconnected):
            await client.files.read("/etc/hostname")
    with pytest.raises(Disconnected):
        await cordon.connect(server.url)


@run
async def test_a_token_is_needed(place):
    (place.base / "token").write_text("secret\n")
    process = place.start("--listen", "ws://127.0.0.1:0", "--ws-auth", "capability-token",
                          "--ws-token-file", place.base / "token", program=SERVER)
    url = process.stdout.readline().decode().strip()
    async with cordon.connect(url, token="secret") as client:
        assert (await client.call("environment/status"))["status"] == "ready"
    with pytest.raises(cordon.Error, match="401"):
        await cordon.connect(url, token="wrong")


def test_without_asyncio(place):
    with sync.spawn([str(SERVER), "--listen", "stdio"]) as client:
        process = client.start(["/bin/sh", "-c", "cat; exit 2"], str(place.ws), stdin=True)
        assert process.communicate(b"hello").stdout == b"hello"
        assert process.wait().exit_code == 2
        other = client.start(["echo", "hi"], str(place.ws))
        assert [type(event) for event in other.events()] == [Output, Exited, Closed]
        with pytest.raises(RpcError, match="Read-only"):  # no sandbox has to be said
            client.files.write(place.ws / "f", b"x")
        client.files.inside("none").write(place.ws / "f", b"x")
        with client.files.open(place.ws / "f") as handle:
            assert handle.read(0) == b"x"
        assert client.files.inside(Sandbox(workspace=place.ws)).read(place.ws / "f") == b"x"


@run
async def test_the_timeline(server, place):
    async with cordon.connect(server.url) as client:
        process = await shell(client, place, "mkdir a; read word; mkdir $word", stdin=True,
                              sandbox=Sandbox(), trace=["files"])
        seen = []
        async for event in process.timeline():
            seen.append((event["operation"], os.path.basename(event["path"])))
            if len(seen) == 1:
                await process.write(b"b\n")
        assert seen == [("create", "a"), ("create", "b")]
        assert [event["seq"] async for event in process.timeline(after=1)] == [2]
        answer = await client.sessions.exec("mkdir c", place.ws, login=False, trace=["files"],
                                            sandbox=Sandbox())
        assert [event["path"] async for event in client.timeline(answer.process_id)] == [
            str(place.ws / "c")]


@run
async def test_runs_have_the_options_of_run(server, place):
    async with cordon.connect(server.url) as client:
        result = await client.call("exec/run", {
            "runId": "r", "argv": ["sh", "-c", "touch own; seq 9999 >f; exit 3"], "cwd": place.ws.as_uri(),
            "sandbox": {"profile": None, "protect": ["./own"], "judge": "command"}, "approvalPolicy": "forbids-only",
            "maxFileBytes": 1000, "report": True, "output": "none"})
    document = result["document"]
    assert result["exitCode"] == document["exit_code"] == 3 and document["approval"] is None
    assert not (place.ws / "own").exists() and (place.ws / "f").stat().st_size == 1000
    assert any("own" in line for line in result["notes"]["refused"])


@run
async def test_questions(server, place):
    """They have the fields that their types say, and the answer counts."""
    box = Sandbox("read-only", watch="ask")
    async with cordon.connect(server.url) as client:
        asked = []

        async def ask(request: cordon.ApprovalRequest) -> cordon.Approval:
            asked.append(request)
            return {"decision": "approved", "reason": "why not"}

        client.handlers["approval/request"] = ask
        result = await client.call("exec/run", {
            "runId": "r", "argv": ["mkdir", "d"], "cwd": place.ws.as_uri(), "sandbox": box.to_json()})
    (request,), (put,) = asked, result["questions"]
    assert (place.ws / "d").is_dir() and request["question"]["kind"] == "held"
    for value, of in ((request, cordon.ApprovalRequest), (put, cordon.PutQuestion),
                      (request["question"], cordon.Question), (put["answer"], cordon.QuestionAnswer)):
        assert value.keys() == typing.get_type_hints(of).keys()
    decisions = typing.get_args(cordon.Decision)
    assert set(request["question"]["available_decisions"]) <= set(decisions)
    assert put["answer"] == {"decision": "approved", "by": "client", "reason": "why not"} and put["done"] is True
