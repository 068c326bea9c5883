"""Sessions of models (session/...) as others see them: process/list, process/attach, `cordon
--connect`; several calls on one of them; and what of them is in the audit log."""
import base64
import json
import os

import pytest
from events import wait_in
from harness import WAIT
from served import READ_ONLY, Server, uri
from ws_client import RpcError


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


@pytest.fixture
def model(server):
    with server.client() as model:
        yield model


@pytest.fixture
def person(server):
    with server.client() as person:
        yield person


def exec_command(client, cmd, **params):
    return client.call("session/exec", {"cmd": cmd, "cwd": uri(client.cwd), "shell": "/bin/sh",
                                        "login": False, **params})


def begin(client, cmd, up="up", **params):
    """The number of a session that has written `up`."""
    return exec_command(client, cmd, tty=True, until={"text": up}, **params)["sessionId"]


def write(client, number, chars, **params):
    return client.call("session/write", {"sessionId": number, "chars": chars, **params})


def output_of(answer):
    return base64.b64decode(answer["output"])


def whole(client, name, until=b""):
    """Everything that the process wrote, as soon as `until` is in it."""
    seen, seq = b"", 0
    while True:
        got = client.call("process/read", {"processId": name, "afterSeq": seq, "waitMs": 60000})
        seen += b"".join(base64.b64decode(chunk["chunk"]) for chunk in got["chunks"])
        if until in seen:
            return seen
        seq = got["nextSeq"] - 1


# --- who looks on ---

def test_a_session_is_listed_like_any_process(server, model, person):
    number = begin(model, "echo up; read x; exit 3", sandbox="none")
    (item,) = person.call("process/list", {"all": True})["processes"]
    assert item["processId"] == f"session:{number}" and item["modelSession"] == number
    assert (item["sessionId"], item["tty"], item["exited"]) == (model.session, True, False)
    assert item["argv"] == ["/bin/sh", "-c", "echo up; read x; exit 3"]
    assert item["sandboxType"] == "none" and item["nextOffset"] >= 4 and item["pid"] > 0
    assert model.call("process/list")["processes"] == [item]
    assert person.call("process/list") == {"processes": []}
    write(model, number, "\n", until={"text": "never"})
    (item,) = person.call("process/list", {"all": True})["processes"]
    assert (item["exited"], item["closed"], item["exitCode"]) == (True, True, 3)


def test_watching_takes_nothing_from_the_model(server, model, person):
    number = begin(model, "echo up; read x; echo got $x; read x; exit 4")
    alias = person.call("process/attach", {"sessionId": model.session, "offset": 0,
                                           "processId": f"session:{number}"})["alias"]
    person.output_until(alias, b"up\r\n")
    answer = write(model, number, "one\n", until={"text": "got one"})
    assert b"got one" in output_of(answer)
    person.output_until(alias, b"got one\r\n")
    with pytest.raises(RpcError, match="another connection writes"):
        person.write(alias, b"x", "1")
    answer = write(model, number, "\n", yieldTimeMs=30000)
    assert (answer["reason"], answer["exitCode"]) == ("ended", 4)
    assert person.follow(alias).code == 4
    assert b"got one" in whole(person, alias)  # as long as any process that has ended
    assert not any(event["method"].startswith("process/") for event in model.events)


def test_a_person_takes_the_pen_and_gives_it_back(server, model, person):
    number = begin(model, "stty -echo; echo up; while read x; do echo got $x; done")
    name = {"sessionId": model.session, "processId": f"session:{number}"}
    alias = person.call("process/attach", {**name, "write": True})["alias"]
    with pytest.raises(RpcError, match="another client writes") as error:
        write(model, number, "mine\n")
    assert error.value.code == -32600
    assert error.value.data["text"].startswith("write_stdin failed")
    with server.client() as third, pytest.raises(RpcError, match="another connection writes"):
        third.call("process/attach", {**name, "write": True})
    waiting = model.request("session/wait", {"sessionId": number, "until": {"text": "got hers"}})
    assert person.write(alias, b"hers\n", "1") == "accepted"
    assert output_of(model.answer(waiting)["result"]) == b"got hers\r\n"
    write(model, number, "", until={"bytes": 0})  # looking on is always possible
    person.call("process/detach", {"alias": alias})
    assert b"got mine" in output_of(write(model, number, "mine\n", until={"text": "mine\r\n"}))


def test_a_person_ends_it(model, person):
    number = begin(model, "echo up; exec sleep 60")
    waiting = model.request("session/wait", {"sessionId": number})
    alias = person.call("process/attach", {"sessionId": model.session,
                                           "processId": f"session:{number}"})["alias"]
    assert person.call("process/terminate", {"processId": alias}) == {"running": True}
    answer = model.answer(waiting)["result"]
    assert (answer["reason"], answer["signal"]) == ("ended", "SIGKILL")
    person.until(alias, "process/closed")


def test_its_owner_can_read_and_wait_for_it_as_a_process(model):
    number = begin(model, "echo up; read x; exit 5")
    assert whole(model, f"session:{number}", b"up\r\n") == b"up\r\n"
    waiting = model.request("process/wait", {"processId": f"session:{number}"})
    assert model.write(f"session:{number}", b"\n", "1") == "accepted"
    assert model.answer(waiting)["result"]["exitCode"] == 5
    with pytest.raises(RpcError, match="session/exec"):
        model.start("session:1", "true")


def test_its_owner_can_look_on_without_taking_anything(model):
    number = begin(model, "echo up; read x; echo got $x; read x; exit 5")
    name = {"sessionId": model.session, "processId": f"session:{number}"}
    alias = model.call("process/attach", {**name, "offset": 0})["alias"]
    model.output_until(alias, b"up\r\n")
    assert b"got one" in output_of(write(model, number, "one\n", until={"text": "got one"}))
    model.output_until(alias, b"got one\r\n")
    assert b"two" in output_of(write(model, number, "two\n", yieldTimeMs=30000))
    assert model.follow(alias).code == 5


def test_who_wants_no_output_is_told_that_there_is_more(model, person):
    number = begin(model, "echo up; read x; yes | head -c 3000000; read x")
    name = {"sessionId": model.session, "processId": f"session:{number}", "output": False}
    for client in (model, person):
        alias = client.call("process/attach", name)["alias"]
    write(model, number, "\n", until={"bytes": 1})
    grown = {client: client.until(alias, "process/grown")[0]["params"]["nextOffset"]
             for client in (model, person)}
    assert model.call("process/read", {"processId": alias, "offset": 4, "maxBytes": 1})["chunks"]
    write(model, number, "\n", yieldTimeMs=30000)
    for client in (model, person):
        told = client.until(alias, "process/closed")
        assert not any(event["method"] == "process/output" for event in told)
        sizes = [grown[client], *(event["params"]["nextOffset"] for event in told
                                  if event["method"] == "process/grown")]
        assert sizes == sorted(set(sizes)) and sizes[-1] > 3000000


def test_what_cannot_start_leaves_nothing_behind(model, person):
    got = exec_command(model, "true", shell="/no/such/shell")
    assert "/no/such/shell" in got["text"]
    assert person.call("process/list", {"all": True}) == {"processes": []}


def test_a_session_counts_as_a_process(place):
    with Server(place, "--max-processes", "1") as server, server.client() as client:
        number = begin(client, "echo up; read x")
        with pytest.raises(RpcError, match="--max-processes"):
            client.start("p", "true")
        write(client, number, "\n", yieldTimeMs=30000)
        assert client.run("p", "true").code == 0


def test_from_the_command_line(place, server, model):
    number = begin(model, "echo up; read x; echo got $x; read y")

    def connect(*words, code=0):
        done = place.cordon("--connect", server.url, *words)
        assert done.returncode == code, done.stderr
        return done.stdout

    assert f"{model.session[:8]}/session:{number}" in connect("ps")
    assert connect("logs", f"session:{number}").replace("\r", "") == "up\n"
    write(model, number, "me\n", until={"text": "got me"})
    assert "got me" in connect("logs", f"{model.session[:8]}/session:{number}")
    waiting = model.request("session/wait", {"sessionId": number})
    connect("kill", "--signal", "KILL", f"session:{number}")
    assert model.answer(waiting)["result"]["signal"] == "SIGKILL"


# --- several calls on one session ---

def test_input_that_has_no_room_says_so_to_the_model_and_to_programs(model):
    number = exec_command(model, "exec sleep 60", pipeStdin=True, yieldTimeMs=250)["sessionId"]
    with pytest.raises(RpcError) as error:
        for _ in range(40):
            write(model, number, "x" * 65536, until={"bytes": 0})
    assert error.value.code == -32600
    data = error.value.data
    assert (data["reason"], data["limit"]) == ("input-full", 1 << 20)
    assert data["text"].startswith("write_stdin failed")


def test_writes_are_done_one_at_a_time_in_order(server, model):
    for gate in ("gate-a", "gate-b"):
        os.mkfifo(model.cwd / gate)
    number = begin(model,
                   "echo up; while read x; do echo in:$x; read y < gate-$x; echo out:$x; done")
    first = model.request("session/write", {"sessionId": number, "chars": "a\n",
                                            "until": {"text": "out:a\r\n"}})
    second = model.request("session/write", {"sessionId": number, "chars": "b\n",
                                             "until": {"text": "out:b\r\n"}})
    seen = whole(model, f"session:{number}", b"in:a\r\n")
    assert b"b" not in seen  # not even as the terminal's echo
    (model.cwd / "gate-a").write_text("\n")
    assert output_of(model.answer(first)["result"]) == b"a\r\nin:a\r\nout:a\r\n"
    (model.cwd / "gate-b").write_text("\n")
    assert output_of(model.answer(second)["result"]) == b"b\r\nin:b\r\nout:b\r\n"
    model.call("session/terminate", {"sessionId": number, "graceMs": 0})
    assert server.stop() == 0
    assert "stopping-unfinished" not in server.logged()  # no call is counted that was answered


def test_who_does_not_own_it_waits_for_nobody(server, model, person):
    number = begin(model, "echo up; exec cat")
    first = model.request("session/write", {"sessionId": number, "chars": "a\n",
                                            "yieldTimeMs": 30000, "until": {"text": "-"}})
    whole(model, f"session:{number}", b"a\r\na\r\n")
    with pytest.raises(RpcError, match="there is no session"):
        write(person, number, "mine\n")
    model.call("session/terminate", {"sessionId": number, "graceMs": 0})
    assert model.answer(first)["result"]["reason"] == "ended"


def test_an_interrupt_does_not_wait_for_its_turn(model):
    number = begin(model, "echo up; exec cat")
    first = model.request("session/write", {"sessionId": number, "chars": "a\n",
                                            "yieldTimeMs": 30000, "until": {"text": "never"}})
    second = model.request("session/write", {"sessionId": number, "chars": "b\n"})
    assert write(model, number, "\003", yieldTimeMs=30000)["reason"] == "ended"
    assert model.answer(first)["result"]["reason"] == "ended"
    error = model.answer(second)["error"]
    assert error["code"] == -32600 and "signal 2" in error["message"]


def test_a_connection_that_goes_before_its_turn_writes_nothing(server):
    client = server.client()
    number = begin(client, "echo up; exec cat")
    for chars in ("a\n", "b\n"):
        client.request("session/write", {"sessionId": number, "chars": chars,
                                         "yieldTimeMs": 30000, "until": {"text": "never"}})
    whole(client, f"session:{number}", b"a\r\na\r\n")
    client.sock.close()
    while True:  # until the server has seen it
        try:
            again = server.connect().initialize(resumeSessionId=client.session)
            break
        except RpcError as error:
            assert error.code == -32010
    write(again, number, "c\n", until={"text": "c\r\nc\r\n"})
    assert whole(again, f"session:{number}", b"c\r\nc\r\n") == b"up\r\na\r\na\r\nc\r\nc\r\n"


def test_a_stopping_server_answers_its_models(place):
    with Server(place) as server, server.client() as client:
        number = begin(client, "echo up; exec cat")
        waits = [client.request("session/wait", {"sessionId": number}) for _ in range(3)]
        writes = [client.request("session/write", {"sessionId": number, "chars": f"{i}\n",
                                                   "yieldTimeMs": 30000, "until": {"text": "-"}})
                  for i in range(3)]
        client.call("session/list")
        assert server.stop() == 0
        assert client.answer(writes[0])["result"]["reason"] == "ended"
        for late in writes[1:]:
            assert "has ended" in client.answer(late)["error"]["message"]
        assert [client.answer(wait)["result"]["reason"] for wait in waits] == ["ended"] * 3


# --- how far it is ---

def progress_of(client, request):
    """As it comes."""
    while True:
        yield client.event(where=lambda params: params.get("requestId") == request)["params"]


def test_who_waits_is_told_how_far_the_command_is(model):
    waiting = model.request("session/exec", {
        "cmd": r"read x; printf '\033[1mtwo\033[0m\r\nthr'; read x; printf 'ee\n\n'; read x", "pipeStdin": True,
        "cwd": uri(model.cwd), "login": False, "progressMs": 20, "yieldTimeMs": 30000})
    progress = progress_of(model, waiting)
    first = next(progress)
    number = first["sessionId"]
    assert first == {"requestId": waiting, "sessionId": number, "outputBytes": 0, "lastLine": ""}
    for line, size in (("thr", 16), ("three", 20)):
        writing = model.request("session/write", {"sessionId": number, "chars": "\n", "until": {"bytes": 0},
                                                  "progressMs": 60000})
        got = next(progress)
        while got["outputBytes"] < size:
            got = next(progress)
        assert (got["lastLine"], got["outputBytes"], got["sessionId"]) == (line, size, number)
        model.answer(writing)
        assert next(progress_of(model, writing))["sessionId"] == number
    assert model.call("session/cancel", {"requestId": waiting})["sessionId"] == number
    cancelled(model, waiting)
    told = len(model.events)
    model.call("session/terminate", {"sessionId": number, "graceMs": 0})
    assert not any(event["method"] == "session/progress" for event in model.events[told:])


# --- taken back ---

def cancelled(client, request):
    error = client.answer(request)["error"]
    assert (error["code"], error["data"]) == (-32600, {"reason": "cancelled"})


def test_a_call_that_is_cancelled_takes_nothing_of_its_session(model, person):
    waiting = model.request("session/exec", {"cmd": "echo up; read x; echo got $x", "tty": True,
                                             "cwd": uri(model.cwd), "yieldTimeMs": 30000})
    (item,) = model.call("session/list")["sessions"]
    number = item["sessionId"]
    whole(model, f"session:{number}", b"up\r\n")
    assert person.call("session/cancel", {"requestId": waiting}) == {"cancelled": False,
                                                                     "sessionId": None}
    assert model.call("session/cancel", {"requestId": waiting}) == {"cancelled": True,
                                                                    "sessionId": number}
    cancelled(model, waiting)
    waiting = model.request("session/wait", {"sessionId": number})
    assert model.call("session/cancel", {"requestId": waiting})["sessionId"] == number
    cancelled(model, waiting)
    waiting = model.request("session/write", {"sessionId": number, "chars": "me\n",
                                              "until": {"text": "never"}, "yieldTimeMs": 30000})
    answer = model.answer(waiting)["result"]
    assert output_of(answer) == b"up\r\nme\r\ngot me\r\n"
    assert model.call("session/cancel", {"requestId": waiting})["cancelled"] is False


def test_a_write_that_is_cancelled_before_its_turn_writes_nothing(model):
    number = begin(model, "echo up; exec cat")
    first, second, third = (
        model.request("session/write", {"sessionId": number, "chars": f"{char}\n",
                                        "yieldTimeMs": 30000, "until": {"text": until}})
        for char, until in (("a", "never"), ("b", "never"), ("c", "c\r\nc\r\n")))
    whole(model, f"session:{number}", b"a\r\na\r\n")
    assert model.call("session/cancel", {"requestId": second}) == {"cancelled": True,
                                                                   "sessionId": None}
    cancelled(model, second)
    assert model.call("session/cancel", {"requestId": first})["sessionId"] == number
    cancelled(model, first)
    assert output_of(model.answer(third)["result"]) == b"a\r\na\r\nc\r\nc\r\n"


def test_only_requests_of_sessions_that_wait_are_cancelled(model):
    model.start("p", "read x", pipeStdin=True)
    waiting = model.request("process/wait", {"processId": "p"})
    for wrong in (waiting, "no such", 99999, -1):
        assert model.call("session/cancel", {"requestId": wrong})["cancelled"] is False
    with pytest.raises(RpcError, match="requestId"):
        model.call("session/cancel", {})
    model.write("p", b"\n", "1")
    assert model.answer(waiting)["result"]["exitCode"] == 0


# --- input that comes with the call ---

@pytest.mark.parametrize("terminal", [False, True])
def test_input_comes_with_the_call_and_ends(model, terminal):
    got = exec_command(model, "cat; echo over", stdin="one\ntwo", tty=terminal, yieldTimeMs=30000)
    assert (got["reason"], got["exitCode"]) == ("ended", 0)
    output = output_of(got).replace(b"\r", b"")
    assert output.endswith(b"two" + b"over\n") and output.count(b"one\n") == 1 + terminal


def test_all_of_the_input_comes_as_it_is_and_nothing_behind_it(model):
    text = "\1é" * 300000  # more than pipes hold at once
    got = exec_command(model, "head -c 1 >/dev/null; wc -c", stdin=text, yieldTimeMs=30000)
    assert output_of(got).strip() == b"%d" % (len(text.encode()) - 1)
    assert exec_command(model, "wc -c", stdin="")["exitCode"] == 0
    assert output_of(exec_command(model, "od -An -c", stdin="\3")).split() == [b"003"]
    with pytest.raises(RpcError, match="stdin") as error:
        exec_command(model, "wc -c", stdin="x" * (1 << 20 | 1))
    assert error.value.code == -32602
    number = exec_command(model, "cat; exec sleep 60", stdin="x", until={"text": "x"})["sessionId"]
    with pytest.raises(RpcError, match="takes no input"):
        write(model, number, "more\n")


# --- the audit log ---

def logged(place, home, session):
    done = place.cordon("log", "--json", "--session", session, env={"CORDON_HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_was_run_is_in_the_log(place):
    home = place.base / "home"
    home.mkdir(exist_ok=True)
    with Server(place, env={"CORDON_HOME": str(home), "API_TOKEN": "hidden-by-name"}) as server:
        with server.client() as other:
            other.run("other", "true")
        with server.client() as client:
            client.run("p", "echo --password=hunter2 > /dev/null; exit 3",
                       env={"MY_SECRET": "in-the-environment"})
            client.run("q", f"echo x > {place.outside}/f", sandbox=READ_ONLY)
            with pytest.raises(RpcError):
                client.start("r", ["/no/such/program"])
            exec_command(client, "kill -9 $$", sandbox="none")
            client.start("s", "echo in-the-environment; sleep 60",
                         env={"MY_SECRET": "in-the-environment"})
            session = client.session
        server.stop()
    records = logged(place, home, session)
    assert len({record["session"] for record in records}) == 5
    assert all(record["session"].startswith(session + ".") for record in records)
    begun = [record["body"] for record in records if record["event"] == "begin"]
    assert [body.get("process").partition(":")[0] for body in begun] == ["p", "q", "r", "session",
                                                                        "s"]
    assert [body["sandbox"] for body in begun] == ["disabled", "require"] + ["disabled"] * 3
    ends = {record["session"]: record["body"] for record in records if record["event"] == "end"}
    order = [record["session"] for record in records if record["event"] == "begin"]
    assert [(ends[name]["end"], ends[name]["exit_code"], ends[name]["signal"])
            for name in order[:4]] == [("exited", 3, 0), ("exited", 2, 0),
                                       ("failed-to-start", None, 0), ("signaled", None, 9)]
    assert ends[order[4]]["end"] in ("cancelled", "signaled")
    (denied,) = [record for record in records if record["event"] == "denied"]
    assert denied["session"] == order[1] and denied["body"]["path"] == f"{place.outside}/f"
    text = json.dumps(records)
    for secret in ("hunter2", "in-the-environment", "hidden-by-name"):
        assert secret not in text
    shown = place.cordon("log", "--session", session, env={"CORDON_HOME": str(home)}).stdout
    for name in order:
        assert f"  {session[:8]}.{name.rpartition('.')[2]}  begin" in shown
    (one,) = {record["session"] for record in logged(place, home, order[0])}
    assert one == order[0]
    assert place.cordon("log", "verify", env={"CORDON_HOME": str(home)}).returncode == 0


def test_what_could_not_be_written_is_written_later(place):
    """Nothing of a command is lost because the log could not be opened for a time."""
    home = place.base / "home"
    home.mkdir(exist_ok=True)
    (home / "audit.tail").mkdir()
    with Server(place, env={"CORDON_HOME": str(home)}) as server:
        with server.client() as client:
            client.run("early", "true")
            session = client.session
            wait_in(place.base, lambda: "audit-failed" in server.logged(), WAIT)
            (home / "audit.tail").rmdir()
            client.run("late", "true")
        server.stop()
    begun = [record["body"]["process"] for record in logged(place, home, session) if record["event"] == "begin"]
    assert begun == ["early", "late"]
