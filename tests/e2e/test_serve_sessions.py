"""Sessions of clients (resume, process/attach) and of models (session/*) of `cordon serve`."""
import base64
import os

import pytest
from served import READ_ONLY, Server, uri
from ws_client import RpcError


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


DETACHED_MAX = 1024  # CLIENT_SESSIONS_DETACHED of server/client_session.h


def resume(server, session):
    """As soon as the server has seen that the old connection is gone."""
    while True:
        client = server.connect()
        try:
            return client.initialize(resumeSessionId=session)
        except RpcError as error:
            client.sock.close()
            if error.code != -32010:
                raise


def chunks_of(got):
    return b"".join(base64.b64decode(chunk["chunk"]) for chunk in got["chunks"])


# --- resume ---

def test_a_session_outlives_its_connection(server, place):
    os.mkfifo(place.ws / "first")
    os.mkfifo(place.ws / "second")
    client = server.client()
    client.start("p", "echo one; read x < first; echo two; read x < second; echo three")
    client.output_until("p", b"one\n")
    client.sock.close()
    (place.ws / "first").write_text("go\n")
    client = resume(server, client.session)
    got = client.call("process/read", {"processId": "p", "afterSeq": 1, "waitMs": 60000})
    assert chunks_of(got) == b"two\n"
    (place.ws / "second").write_text("go\n")
    rest = client.until("p", "process/closed")
    assert [event["params"]["seq"] for event in rest][-3:] == [3, 4, 5]
    whole = client.call("process/read", {"processId": "p"})
    assert chunks_of(whole) == b"one\ntwo\nthree\n"


def test_of_many_sessions_left_behind_the_oldest_ends(place):
    with Server(place, "--session-lifetime", "1h") as server:  # none ends by its time on a busy machine
        first = server.client()
        busy = server.client()
        busy.start("p", "read x", pipeStdin=True)
        for client in (first, busy):
            client.sock.close()
            resume(server, client.session).close()  # so that it is gone before the others
        for _ in range(DETACHED_MAX):
            last = server.client()
            last.close()
        with pytest.raises(RpcError, match="unknown session id"):
            resume(server, first.session)
        resume(server, last.session).close()
        assert resume(server, busy.session).write("p", b"x\n", "1") == "accepted"


def test_an_attached_session_is_not_taken_over(server):
    with server.client() as client:
        other = server.connect()
        with pytest.raises(RpcError) as error:
            other.initialize(resumeSessionId=client.session)
        assert error.value.code == -32010
        assert client.run("p", "echo still here").output == b"still here\n"
        assert other.initialize().session != client.session


def test_a_session_ends_some_time_after_its_connection(place):
    os.mkfifo(place.ws / "fifo")
    with Server(place, "--session-lifetime", "1ms") as server:
        client = server.client()
        client.start("p", "exec > fifo; echo up; sleep 60")
        with open(place.ws / "fifo", "rb") as fifo:
            assert fifo.readline() == b"up\n"
            client.sock.close()
            assert fifo.read() == b""  # killed
        with pytest.raises(RpcError, match="unknown session id"):
            resume(server, client.session)


def test_a_session_can_last_until_its_commands_end(place):
    os.mkfifo(place.ws / "fifo")
    with Server(place, "--session-lifetime", "1ms") as server:
        client = server.client(detachedLifetimeMs=0)
        client.start("p", "read x < fifo; echo $x")
        client.sock.close()
        with server.client() as other:  # the server is alive, and the millisecond long over
            other.run("q", "sleep 0.1")
        client = resume(server, client.session)
        (place.ws / "fifo").write_text("late\n")
        assert client.follow("p").output == b"late\n"


def test_a_detached_command_is_not_held_up(server, place):
    """Without a connection nobody reads: the oldest output goes, and is counted."""
    os.mkfifo(place.ws / "done")
    client = server.client()
    client.start("p", "head -c 20000000 /dev/zero; echo x > done")
    client.sock.close()
    assert (place.ws / "done").read_text() == "x\n"
    client = resume(server, client.session)
    got = client.call("process/read", {"processId": "p", "offset": 0})
    total = len(chunks_of(got)) + sum(gap["bytes"] for gap in got.get("lost", []))
    assert total == 20000000


# --- observers ---

def attach(client, owner, name, **params):
    return client.call("process/attach", {"sessionId": owner.session, "processId": name, **params})


def test_an_observer_sees_what_its_owner_sees(server):
    with server.client() as owner, server.client() as observer:
        owner.start("p", "echo one; read x; echo $x; exit 3", tty=True)
        owner.output_until("p", b"one\r\n")
        alias = attach(observer, owner, "p", offset=0)["alias"]
        observer.output_until(alias, b"one\r\n")
        with pytest.raises(RpcError, match="another connection writes"):
            observer.write(alias, b"x\n", "1")
        owner.write("p", b"two\n", "1")
        seen, meant = observer.follow(alias), owner.follow("p")
        assert seen.code == meant.code == 3
        assert meant.output in (b"one\r\n" + seen.output, seen.output)


def test_one_connection_at_a_time_has_the_pen(server):
    with server.client() as owner, server.client() as observer, server.client() as third:
        owner.start("p", "cat", pipeStdin=True)
        alias = attach(observer, owner, "p", write=True)["alias"]
        assert observer.write(alias, b"from the observer\n", "1") == "accepted"
        owner.output_until("p", b"from the observer\n")
        with pytest.raises(RpcError, match="another connection writes"):
            owner.write("p", b"x", "2")
        with pytest.raises(RpcError, match="another connection writes"):
            attach(third, owner, "p", write=True)
        assert observer.call("process/detach", {"alias": alias}) == {}
        assert owner.write("p", b"mine again\n", "3") == "accepted"
        with pytest.raises(RpcError, match="unknown process id"):
            observer.call("process/read", {"processId": alias})
        attach(third, owner, "p", write=True)
        third.sock.close()
        third.wait_closed = None
        while True:  # until the server has seen it
            try:
                assert owner.write("p", b"end\n", "4") == "accepted"
                break
            except RpcError:
                pass


def test_an_observer_that_does_not_read_holds_up_nobody(server):
    with server.client() as owner, server.client() as observer:
        owner.start("p", "read x; head -c 50000000 /dev/zero", pipeStdin=True)
        alias = attach(observer, owner, "p")["alias"]
        owner.write("p", b"go\n", "1")
        assert len(owner.follow("p").output) == 50000000
        seen, lost = 0, 0
        for event in observer.until(alias, "process/closed"):
            lost += event["params"].get("bytes", 0)
            seen += len(base64.b64decode(event["params"].get("chunk", "")))
        assert seen + lost == 50000000
        assert lost > 0


def test_an_observer_cannot_be_its_own(server):
    with server.client() as client:
        client.start("p", "sleep 60")
        with pytest.raises(RpcError, match="own"):
            attach(client, client, "p")
        with server.client() as other:
            with pytest.raises(RpcError, match="unknown process id"):
                attach(other, client, "q")
            with pytest.raises(RpcError, match="nothing is attached"):
                other.call("process/detach", {"alias": "x"})


# --- session/* ---

def exec_command(client, cmd, **params):
    return client.call("session/exec", {"cmd": cmd, "cwd": uri(client.cwd), **params})


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def test_a_model_gets_its_text_and_its_runner_the_values(client):
    got = exec_command(client, "echo hi; exit 3")
    assert got["text"].endswith("Process exited with code 3\nOriginal token count: 1\nOutput:\nhi\n")
    assert (got["reason"], got["sessionId"], got["exitCode"]) == ("ended", None, 3)
    assert (base64.b64decode(got["output"]), got["outputBytes"]) == (b"hi\n", 3)
    assert got["text"].startswith(f"Chunk ID: {got['chunkId']}\n")


def test_a_session_goes_on(client):
    got = exec_command(client, "read x; echo got $x", tty=True, yieldTimeMs=250)
    number = got["sessionId"]
    assert got["reason"] == "yielded" and f"session ID {number}" in got["text"]
    (item,) = client.call("session/list")["sessions"]
    assert (item["sessionId"], item["tty"], item["cwd"]) == (number, True, uri(client.cwd))
    got = client.call("session/write", {"sessionId": number, "chars": "me\n",
                                        "yieldTimeMs": 30000})
    assert got["exitCode"] == 0 and "got me" in got["text"]
    with pytest.raises(RpcError) as error:
        client.call("session/write", {"sessionId": number, "chars": "x"})
    assert error.value.code == -32600 and error.value.data["text"]


def test_waiting_for_something_else_than_time(client):
    got = exec_command(client, "echo a; read x; echo b", pipeStdin=True, until={"text": "a\n"})
    assert got["reason"] == "met"
    number = got["sessionId"]
    waiting = client.request("session/wait", {"sessionId": number, "until": {"bytes": 2}})
    client.request("session/write", {"sessionId": number, "chars": "\n", "close": True})
    assert client.answer(waiting)["result"]["reason"] in ("met", "ended")
    with pytest.raises(RpcError, match="until"):
        exec_command(client, "true", until={"moon": 1})


def test_a_session_can_be_ended(client):
    number = exec_command(client, "echo up; sleep 60", until={"text": "up"})["sessionId"]
    got = client.call("session/terminate", {"sessionId": number, "graceMs": 0})
    assert (got["reason"], got["exitCode"], got["signal"]) == ("ended", 137, "SIGKILL")
    assert client.call("session/list") == {"sessions": []}


def test_a_session_has_a_screen_when_asked(client):
    number = exec_command(client, "printf 'a\\rb'; sleep 60", tty=True, screen=True, rows=5,
                          columns=20, until={"text": "b"})["sessionId"]
    screen = client.call("session/screen", {"sessionId": number})
    assert screen["lines"][0] == "b"
    assert (screen["rows"], screen["columns"], screen["cursorColumn"]) == (5, 20, 1)
    number = exec_command(client, "sleep 60", yieldTimeMs=250)["sessionId"]
    with pytest.raises(RpcError, match="without"):
        client.call("session/screen", {"sessionId": number})


def test_sessions_are_of_one_client(server, client):
    number = exec_command(client, "sleep 60", yieldTimeMs=250)["sessionId"]
    with server.client() as other:
        assert other.call("session/list") == {"sessions": []}
        for method in ("session/write", "session/wait", "session/terminate", "session/screen"):
            with pytest.raises(RpcError) as error:
                other.call(method, {"sessionId": number})
            assert error.value.code == -32600
    assert len(client.call("session/list")["sessions"]) == 1


def test_a_session_is_in_its_sandbox_and_environment(client, place):
    got = exec_command(client, f"echo $TERM $CODEX_THREAD_ID; echo x > {place.outside}/f",
                       sandbox=READ_ONLY, threadId="thread", login=False)
    assert "dumb thread\n" in got["text"] and got["exitCode"] != 0
    assert not (place.outside / "f").exists()
    got = exec_command(client, "echo $TERM $A", env={"TERM": "mine", "A": "1"}, login=False)
    assert "mine 1\n" in got["text"]


def test_a_session_that_cannot_start_says_so_to_the_model(client):
    with pytest.raises(RpcError) as error:
        exec_command(client, "true", cwd=uri("/no/such/folder"))
    assert error.value.code == -32603 and "/no/such/folder" in error.value.message
