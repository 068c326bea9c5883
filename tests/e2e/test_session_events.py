"""What a process or a session does, over the wire: `trace`, session/events and session/event."""
import pytest
from served import Server, exec_result, exec_run, uri, workspace_write
from ws_client import RpcError

ALL = ["files", "network", "exec"]


@pytest.fixture
def server(place):
    with Server(place, env={"SHELL": "/bin/sh"}) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def start(client, name, command, trace=("files",), **params):
    return client.start(name, command, sandbox=workspace_write(client.cwd), trace=list(trace), **params)


def session(client, cmd, trace=("files",), **params):
    return client.call("session/exec", {
        "cmd": cmd, "cwd": uri(client.cwd), "login": False, "sandbox": workspace_write(client.cwd),
        "trace": list(trace), **params})


def page(client, name, after=0, **params):
    return client.call("session/events", {"processId": name, "afterSeq": after, **params})


def pages(client, name, **params):
    """All events, page by page to the end."""
    events, after = [], 0
    while True:
        got = page(client, name, after, waitMs=30000, **params)
        events += got["events"]
        assert got["dropped"] == 0
        assert got["nextSeq"] == (events[-1]["seq"] if events else 0) + 1
        if got["closed"] and not got["events"]:
            return events
        after = got["nextSeq"] - 1


def files(events, kind="done"):
    """(operation, name) of each."""
    return [(event["operation"], event["path"].rsplit("/", 1)[1]) for event in events
            if event["event"] == kind]


def pushed(events):
    return [event for message in events if message["method"] == "session/event"
            for event in message["params"]["events"]]


def test_pages_of_a_process(client, place):
    denied = place.outside / "denied"
    start(client, "p", f"echo x >a; mkdir d; echo x >{denied}; rm a; true", trace=ALL, delivery="pull")
    events = pages(client, "p", max=2)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert files(events) == [("create", "a"), ("create", "d"), ("remove", "a")]
    assert files(events, "denied") == [("create", "denied")]
    programs = [event["argv"][0] for event in events if event["event"] == "exec"]
    assert programs == ["/bin/sh", "mkdir", "rm"]
    assert [event["exit_code"] for event in events if event["event"] == "exec-end"] == [0, 0, 0]
    assert not [message for message in client.events if message["method"] == "session/event"]


def test_events_come_while_it_runs(client):
    """The command goes on only after its event was read."""
    start(client, "p", "mkdir d; read word; mkdir $word", pipeStdin=True)
    got = page(client, "p", waitMs=30000)
    assert files(got["events"]) == [("create", "d")] and not got["closed"]
    client.write("p", b"e\n", "w")
    got = page(client, "p", got["nextSeq"] - 1, waitMs=30000)
    assert files(got["events"]) == [("create", "e")]
    assert files(pages(client, "p")) == [("create", "d"), ("create", "e")]
    assert page(client, "p", 100)["events"] == []


def test_they_are_sent_to_who_started_it(client):
    start(client, "p", "mkdir d; read word; mkdir $word", pipeStdin=True)
    first = client.until("p", "session/event")
    assert files(pushed(first)) == [("create", "d")]
    assert first[-1]["params"]["dropped"] == 0 and first[-1]["params"]["nextSeq"] == 2
    client.write("p", b"e\n", "w")
    rest = client.until("p", "process/closed")
    assert files(pushed(rest)) == [("create", "e")]
    methods = [message["method"] for message in rest]
    assert methods.index("session/event") < methods.index("process/exited")


def test_two_readers(server, client):
    """Each has a cursor of its own, and a watcher is sent what comes from then on."""
    start(client, "p", "mkdir a; read word; mkdir $word", pipeStdin=True)
    client.until("p", "session/event")
    with server.client() as other:
        alias = other.call("process/attach", {"sessionId": client.session, "processId": "p"})["alias"]
        assert files(page(other, alias)["events"]) == [("create", "a")]
        client.write("p", b"b\n", "w")
        assert files(pushed(client.until("p", "process/closed"))) == [("create", "b")]
        assert files(pushed(other.until(alias, "process/closed"))) == [("create", "b")]
        assert files(pages(other, alias, max=1)) == files(pages(client, "p")) == [
            ("create", "a"), ("create", "b")]


def test_a_session(client):
    got = session(client, "mkdir a; cat; mkdir b", pipeStdin=True, yieldTimeMs=250)
    name = f"session:{got['sessionId']}"
    assert got["processId"] == name
    assert files(page(client, name, waitMs=30000)["events"]) == [("create", "a")]
    client.call("session/write", {"sessionId": got["sessionId"], "chars": "", "close": True})
    assert files(pages(client, name)) == [("create", "a"), ("create", "b")]


def test_a_session_that_ended_at_once(client):
    got = session(client, "mkdir a", until={"text": "never, so its end"}, yieldTimeMs=30000)
    assert got["sessionId"] is None
    assert files(pages(client, got["processId"])) == [("create", "a")]


def test_the_result_of_a_run_has_them(client):
    for trace, wanted in ((["files"], [("create", "a")]), ([], None)):
        result = exec_result(client, exec_run(client, "r", "mkdir -p a", trace=trace))
        (attempt,) = result["attempts"]
        assert ("events" in attempt["result"]) == (wanted is not None)
        if wanted:
            assert files(attempt["result"]["events"]) == wanted


def test_only_what_was_asked_for(client):
    start(client, "p", "mkdir a", trace=["exec"])
    assert {event["event"] for event in pages(client, "p")} == {"exec", "exec-end"}


def test_more_than_is_kept(client):
    """The newest are there, the others counted, whether asked for or sent."""
    (client.cwd / "many.py").write_text("for i in range(6000): open(f'f{i}', 'w').close()\n")
    start(client, "p", ["/usr/bin/env", "python3", "-B", "many.py"])
    sent = client.until("p", "process/closed")
    got = page(client, "p", max=4096)
    lost = sum(event["count"] for event in got["events"] if event["event"] == "lost")
    last = got["events"][-1]["seq"]
    assert 0 < len(got["events"]) <= 4096 and got["dropped"] + len(got["events"]) == last
    # what says how many were lost may be among those that are not kept
    assert last + lost >= (4096 if got["dropped"] else 6000) and got["nextSeq"] == last + 1
    assert page(client, "p", got["dropped"], max=1)["dropped"] == 0
    sent = [message for message in sent if message["method"] == "session/event"]
    while not sent or sent[-1]["params"]["nextSeq"] <= last:  # it may have had no room before the end
        sent.append(client.event("session/event"))
    assert sum(message["params"]["dropped"] for message in sent) + len(pushed(sent)) == last


def test_without_a_timeline(client):
    client.start("plain", "true", sandbox=workspace_write(client.cwd))
    client.start("bare", "true", trace=["files"])
    for name in ("plain", "bare"):
        with pytest.raises(RpcError, match="no timeline") as error:
            page(client, name)
        assert error.value.code == -32600
    with pytest.raises(RpcError, match="unknown process id"):
        page(client, "missing")
    assert "processId" not in session(client, "true", trace=[])


@pytest.mark.parametrize("trace", ["files", ["file"], ["files,exec"], [1], {}, 7])
def test_malformed_trace(client, trace):
    for method, params in (("process/start", {"processId": "p", "argv": ["true"], "env": {}, "tty": False}),
                           ("session/exec", {"cmd": "true"})):
        with pytest.raises(RpcError) as error:
            client.call(method, {**params, "cwd": uri(client.cwd), "trace": trace,
                                 "sandbox": workspace_write(client.cwd)})
        assert error.value.code == -32602


@pytest.mark.parametrize("params", [
    {"processId": 1}, {"processId": None}, {"afterSeq": -1}, {"afterSeq": 1 << 60}, {"afterSeq": "1"}, {"max": 0},
    {"max": 4097}, {"waitMs": -1}, {"waitMs": 1 << 60}])
def test_malformed_page(client, params):
    start(client, "p", "true")
    with pytest.raises(RpcError) as error:
        client.call("session/events", {"processId": "p", **params})
    assert error.value.code == -32602


def test_a_reader_that_leaves(server, client):
    """It waits no more, and the others still do."""
    start(client, "p", "read word; mkdir $word", pipeStdin=True)
    with server.client() as other:
        alias = other.call("process/attach", {"sessionId": client.session, "processId": "p"})["alias"]
        other.request("session/events", {"processId": alias, "waitMs": 60000})
    waiting = client.request("session/events", {"processId": "p", "waitMs": 60000})
    client.write("p", b"a\n", "w")
    assert files(client.answer(waiting)["result"]["events"]) == [("create", "a")]


# --- the audit log ---

SECRET = {"PATH": "/usr/bin:/bin", "MY_SECRET": "hunter2-and-more"}


def by_process(client, cmd):
    client.start("p", cmd, sandbox=workspace_write(client.cwd), env=SECRET)
    assert not pushed(client.until("p", "process/closed"))
    with pytest.raises(RpcError, match="no timeline"):
        page(client, "p")


def by_session(client, cmd):
    got = session(client, cmd, trace=[], until={"text": "never, so its end"}, yieldTimeMs=30000, env=SECRET)
    assert "processId" not in got


def by_run(client, cmd):
    result = exec_result(client, exec_run(client, "r", cmd, env=SECRET))
    assert "events" not in result["attempts"][0]["result"]


@pytest.mark.parametrize("run", [by_process, by_session, by_run])
def test_the_audit_log_has_it(place, run):
    """Where the configuration says so; the client did not ask and is told nothing."""
    place.audits(["files", "exec"])
    with Server(place, env={"SHELL": "/bin/sh"}) as server, server.client() as client:
        run(client, "mkdir d; echo x >a; echo y >>a; env true --token=abcdef123456 hunter2-and-more; true")
        assert server.stop() == 0
    told = place.records()
    assert (told[0][0], told[-1][0]) == ("begin", "end")
    assert [(body["operation"], body["path"]) for event, body in told if event == "file"] == [
        ("create", f"{place.ws}/d"), ("create", f"{place.ws}/a"), ("write", f"{place.ws}/a")]
    programs = [body["argv"] for event, body in told if event == "exec"]
    assert ["mkdir", "d"] in programs
    assert ["env", "true", "--token=[redacted]", "[redacted]"] in programs


def test_the_audit_log_and_a_client_have_each_its_own(place):
    place.audits(["exec"])
    with Server(place) as server, server.client() as client:
        start(client, "p", "mkdir d; true")
        assert files(pages(client, "p")) == [("create", "d")]
        assert server.stop() == 0
    assert {event for event, _ in place.records()} == {"begin", "exec", "end"}
