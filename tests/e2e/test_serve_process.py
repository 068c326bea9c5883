"""process/* of `cordon serve`, over WebSocket."""
import base64
import fcntl
import os
import re
import subprocess

import pytest

from harness import WAIT, read_until
from served import READ_ONLY, ServedClient, Server, uri, workspace_write
from ws_client import RpcError


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def read(client, name, **params):
    return client.call("process/read", {"processId": name, **params})


def test_a_command_runs_to_its_end(client):
    assert client.start("p", "echo out; echo err >&2; exit 7") == {
        "processId": "p", "sandboxType": "none"}
    ended = client.follow("p")
    assert ended.streams == {"stdout": b"out\n", "stderr": b"err\n"}
    assert ended.seqs == [1, 2, 3, 4]
    assert ended.exited == {"processId": "p", "seq": 3, "exitCode": 7, "sandboxDenied": False}


@pytest.mark.parametrize("command, code, tty_code", [
    ("exit 9", 9, 9), ("kill -9 $$", 137, 1), ("kill -SEGV $$", 139, 1), ("kill -TERM $$", 143, 1)])
def test_ends_have_the_codes_of_the_protocol(client, command, code, tty_code):
    assert client.run("pipe", command).code == code
    assert client.run("tty", command, tty=True).code == tty_code


def make_fifo(client):
    os.mkfifo(client.cwd / "fifo")
    return client.cwd


def test_what_is_left_behind_delays_closed_only(client):
    client.start("p", "(read x < fifo; echo late) & echo now", env={},
                 cwd=uri(make_fifo(client)))
    events = client.until("p", "process/exited")
    assert events[-1]["params"]["exitCode"] == 0
    (client.cwd / "fifo").write_text("go\n")
    rest = client.until("p", "process/closed")
    assert base64.b64decode(rest[0]["params"]["chunk"]) == b"late\n"
    assert [event["params"]["seq"] for event in events + rest] == [1, 2, 3, 4]
    assert [chunk["seq"] for chunk in read(client, "p")["chunks"]] == [1, 3]


def test_a_daemon_outlives_its_command_and_can_be_ended(client):
    make_fifo(client)
    os.mkfifo(client.cwd / "out")
    client.start("p", "(exec > out 2>&1 < /dev/null; echo up; cat fifo) & exec > /dev/null 2>&1")
    with open(client.cwd / "out", "rb") as out:
        assert out.readline() == b"up\n"
        client.follow("p")
        with open(client.cwd / "fifo", "wb", buffering=0) as fifo:
            fifo.write(b"still there\n")
            assert out.readline() == b"still there\n"
            assert client.call("process/terminate", {"processId": "p"}) == {"running": False}
            assert out.read() == b""  # nobody holds it any more


def test_a_sandbox_takes_everything_along(client, place):
    client.start("p", "(sleep 60; echo late) & echo now", sandbox=READ_ONLY)
    assert client.follow("p").output == b"now\n"


@pytest.mark.parametrize("sandbox", [None, READ_ONLY], ids=["bare", "sandboxed"])
@pytest.mark.parametrize("argv, message", [
    (["/no/such/program"], "No such file or directory (os error 2)"),
    (["no-such-program"], "No such file or directory (os error 2)"),
    (["/etc/passwd"], "Permission denied (os error 13)")])
def test_what_cannot_be_executed_is_an_error_of_the_start(client, sandbox, argv, message):
    for tty in (False, True):
        with pytest.raises(RpcError) as error:
            client.start("p", argv, sandbox=sandbox, tty=tty)
        assert (error.value.code, error.value.message) == (-32603, message)
        assert error.value.data["stage"] == "exec"
    assert client.run("p", "echo the id is free").code == 0


def test_a_missing_folder_is_an_error_of_the_start(client):
    for tty in (False, True):
        with pytest.raises(RpcError, match="os error 2"):
            client.start("p", "true", cwd=uri("/no/such/folder"), tty=tty)


def test_the_sandbox_holds_and_says_what_it_refused(client, place):
    ended = client.run("p", f"echo x > {place.outside}/f; exit 3", sandbox=READ_ONLY)
    assert ended.code == 3
    assert ended.exited["sandboxDenied"] is True
    denial = ended.exited["denials"][0]
    assert (denial["operation"], denial["source"]) == ("write", "sandbox")
    assert denial["path"] == f"{place.outside}/f"
    assert not (place.outside / "f").exists()
    assert client.call("process/wait", {"processId": "p"})["denials"] == ended.exited["denials"]


@pytest.mark.parametrize("change", [
    lambda box: box.update(policyContext=5), lambda box: box.update(useLegacyLandlock=5),
    lambda box: box["permissions"]["file_system"]["entries"].append(
        {"path": {"type": "special", "value": {"kind": "downloads"}}, "access": "deny"})],
    ids=["policyContext", "useLegacyLandlock", "kind"])
def test_what_a_policy_says_in_an_unknown_shape_is_an_error(client, place, change):
    sandbox = workspace_write(place.ws)
    change(sandbox)
    with pytest.raises(RpcError) as error:
        client.start("p", "true", sandbox=sandbox)
    assert error.value.code == -32602


def test_workspace_roots_are_what_project_roots_mean(client, place):
    sandbox = workspace_write(place.ws)
    assert client.run("a", "echo x > f && mkdir .git", sandbox=sandbox).code != 0
    assert (place.ws / "f").read_text() == "x\n"
    sandbox["workspaceRoots"] = []
    assert client.run("b", "echo y > f", sandbox=sandbox).code != 0
    assert (place.ws / "f").read_text() == "x\n"


def test_a_sandbox_follows_what_changes_on_the_host(client, place):
    sandbox = workspace_write(place.ws)
    assert client.run("a", "test ! -e .codex/f", sandbox=sandbox).code == 0
    (place.ws / ".codex").mkdir()
    (place.ws / ".codex/f").write_text("x\n")
    ended = client.run("b", "cat .codex/f; echo y > .codex/f", sandbox=sandbox)
    assert ended.streams["stdout"] == b"x\n"
    assert ended.code != 0
    assert (place.ws / ".codex/f").read_text() == "x\n"


def test_nothing_is_put_into_the_workspace(client, place):
    client.start("a", "ls -A; echo on; read line", sandbox=workspace_write(place.ws), pipeStdin=True)
    assert client.output_until("a", b"on\n") == b"on\n"
    assert not os.listdir(place.ws)
    client.write("a", b"end\n", "w")
    client.follow("a")
    assert not os.listdir(place.ws)


def test_git_init_outside_of_the_sandbox_beside_one_that_runs(client, place):
    """As a person approves it while a session of the model runs."""
    sandbox = workspace_write(place.ws)
    client.start("session", "echo on; read line", sandbox=sandbox, pipeStdin=True)
    client.output_until("session", b"on\n")
    again = "rm -rf .git .agents && git init -q . && mkdir .agents && git status --short"
    for number in range(2):
        assert client.run(f"outside{number}", again, env={"HOME": str(place.home)}).code == 0
        inside = client.run(f"inside{number}", "echo x > file && cat .git/HEAD && ! echo x > .git/x",
                            sandbox=sandbox)
        assert inside.code == 0, inside.output
    client.write("session", b"end\n", "w")
    assert client.follow("session").code == 0
    assert client.run("last", "git status --short").output == b"?? file\n"


def test_no_repository_comes_to_be_by_commands_of_two_places(client, place):
    """Each with a guard of its own view: another profile, or another folder of the sandbox."""
    (place.ws / "sub").mkdir()
    plain = workspace_write(place.ws)
    other = workspace_write(place.ws, place.ws / "sub")
    client.start("session", "mkdir objects; echo on; read line; mkdir refs", sandbox=plain, pipeStdin=True)
    client.output_until("session", b"on\n")
    for number, sandbox in enumerate((plain, other)):
        client.run(f"p{number}", "mkdir refs; rmdir HEAD; echo 'ref: refs/heads/main' > HEAD; "
                                 "printf '[core]\\nbare = false\\n' > config", sandbox=sandbox)
    client.write("session", b"end\n", "w")
    client.follow("session")
    assert not {"HEAD", "objects", "refs"} <= set(os.listdir(place.ws))


def test_what_comes_to_match_a_pattern_is_denied_to_the_next_command(client, place):
    """However long it takes to look through the tree."""
    for number in range(3000):
        (place.ws / f"a{number % 30}/b{number}").mkdir(parents=True)
    sandbox = workspace_write(place.ws)
    sandbox["permissions"]["file_system"]["entries"].append(
        {"path": {"type": "glob_pattern", "pattern": f"{place.ws}/**/*.env"}, "access": "deny"})
    assert client.run("a", "true", sandbox=sandbox).code == 0
    for name in ("one", "two"):
        (place.ws / f"a7/b7/{name}.env").write_text(f"secret-{name}\n")
        ended = client.run(name, f"cat a7/b7/{name}.env", sandbox=sandbox)
        assert ended.code != 0 and b"secret" not in ended.output


def older_sandbox(place, mode="auto", **files):
    return {"mode": mode, "policy": {"type": "read-only"}, "networkPolicy": "restricted",
            "sandboxPolicyCwd": str(place.ws), "enforceManagedNetwork": False,
            "windowsSandboxLevel": "disabled", "windowsSandboxPrivateDesktop": False,
            "useLegacyLandlock": False,
            "fileSystemPolicy": files or {"kind": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "special", "value": {"kind": "current_working_directory"}},
                 "access": "write"}]}}


def test_the_older_shape_of_the_sandbox_is_taken(client, place):
    started = client.start("a", f"echo x > f; echo y > {place.outside}/f",
                           sandbox=older_sandbox(place))
    assert started["sandboxType"] == "linux-seccomp"
    assert client.follow("a").code != 0
    assert (place.ws / "f").exists() and not (place.outside / "f").exists()
    started = client.start("b", f"echo y > {place.outside}/f",
                           sandbox=older_sandbox(place, mode="disabled"))
    assert started["sandboxType"] == "none"
    assert client.follow("b").code == 0
    assert (place.outside / "f").exists()


def test_what_a_model_chooses_makes_no_folder_writable(client, place):
    """The folder of a command and its $TMPDIR; the server's own $TMPDIR is what the entry means."""
    command = f"for f in {place.outside} {place.tmp}; do echo x > $f/f; done 2>&1"
    policy = {"inherit": "none", "ignoreDefaultExcludes": False, "exclude": [],
              "set": {"TMPDIR": str(place.outside)}, "includeOnly": []}
    client.run("a", command, sandbox=workspace_write(place.ws), env={"TMPDIR": str(place.outside)})
    client.run("b", command, sandbox=workspace_write(place.ws), envPolicy=policy)
    client.call("session/exec", {"cmd": command, "cwd": uri(place.outside), "login": False,
                                 "env": {"TMPDIR": str(place.outside)},
                                 "sandbox": workspace_write(place.ws)})
    client.run("c", "echo x > f", sandbox=workspace_write(), cwd=uri(place.outside))
    older = older_sandbox(place)
    del older["sandboxPolicyCwd"]
    with pytest.raises(RpcError, match="missing field `sandboxPolicyCwd`"):
        client.start("d", "echo x > f", sandbox=older, cwd=uri(place.outside))
    assert not (place.outside / "f").exists()
    assert (place.tmp / "f").exists()


@pytest.mark.parametrize("change, code, words", [
    ({"argv": []}, -32602, "argv must not be empty"),
    ({"argv": ["a", 5]}, -32602, "invalid type: number, expected a string"),
    ({"cwd": "/tmp"}, -32602, "invalid URI"),
    ({"cwd": "file://elsewhere/tmp"}, -32600, "invalid on 'linux'"),
    ({"tty": None}, -32602, "invalid type: null, expected a boolean"),
    ({"pipeStdin": None}, -32602, "invalid type: null, expected a boolean"),
    ({"env": {"A": 1}}, -32602, "invalid type: number, expected a string"),
    ({"envPolicy": {"inherit": "all"}}, -32602, "missing field `ignoreDefaultExcludes`"),
    ({"envPolicy": {"inherit": "some"}}, -32602, "unknown variant `some`"),
    ({"metadata": {"threadId": "x"}}, -32602, "UUID"),
    ({"sandbox": {}}, -32602, "missing field `permissions`"),
    ({"sandbox": {"permissions": {"type": "disabled"}}}, -32602, "windowsSandboxLevel"),
    ({"sandbox": {"permissions": {"type": "managed"}, "windowsSandboxLevel": "disabled"}}, -32602,
     "file_system"),
    ({"enforceManagedNetwork": True}, -32602, "managedNetwork.loopbackPorts"),
    ({"rows": 0}, -32602, "rows must be between 1 and 65535"),
])
def test_wrong_parameters_are_said(client, change, code, words):
    params = {"processId": "p", "argv": ["/bin/true"], "cwd": "file:///tmp", "env": {},
              "tty": False, **change}
    with pytest.raises(RpcError) as error:
        client.call("process/start", params)
    assert error.value.code == code
    assert words in error.value.message


def test_the_place_of_a_wrong_parameter_is_said(client):
    with pytest.raises(RpcError) as error:
        client.call("process/start", {"processId": "p", "argv": ["a", 5], "cwd": "file:///tmp",
                                      "env": {}, "tty": False})
    assert error.value.data == {"path": "$.argv[1]"}


def test_environment(server, client):
    def env(name, **params):
        out = client.run(name, ["/usr/bin/env"], **params).output.decode()
        return dict(line.split("=", 1) for line in out.splitlines())

    policy = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": ["HO*"],
              "set": {"SET": "1", "MY_TOKEN": "2"}, "includeOnly": []}
    assert env("a") == {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    got = env("b", envPolicy=policy, env={"HOME": "/x", "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN": "y"})
    assert got["HOME"] == "/x" and got["SET"] == "1" and got["MY_TOKEN"] == "2"
    assert got["LANG"] == "C" and "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN" not in got
    got = env("c", envPolicy={**policy, "inherit": "none", "includeOnly": ["P*"]})
    assert got == {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def test_arg0_is_seen_in_and_out_of_the_sandbox(client):
    script = "tr '\\0' ' ' < /proc/$$/cmdline; echo $0"
    for name, sandbox in (("a", None), ("b", READ_ONLY)):
        ended = client.run(name, ["/bin/bash", "-c", script], arg0="myname", sandbox=sandbox)
        assert ended.output.startswith(b"myname -c "), ended.output
        assert ended.output.endswith(b"myname\n")


# --- reading ---

def test_read_gives_what_is_retained(client):
    client.run("p", "echo out; read x; exit 7")
    whole = read(client, "p")
    assert base64.b64decode(whole["chunks"][0]["chunk"]) == b"out\n"
    assert (whole["nextSeq"], whole["exited"], whole["closed"]) == (4, True, True)
    assert (whole["exitCode"], whole["failure"], whole["nextOffset"]) == (7, None, 4)
    assert read(client, "p", afterSeq=1)["chunks"] == []
    assert read(client, "p", maxBytes=0)["nextSeq"] == 2
    assert read(client, "p", offset=2)["chunks"][0]["chunk"] == base64.b64encode(b"t\n").decode()
    for params in ({"afterSeq": -1}, {"maxBytes": "x"}):
        with pytest.raises(RpcError) as error:
            read(client, "p", **params)
        assert error.value.code == -32602
    with pytest.raises(RpcError, match="unknown process id q"):
        read(client, "q")


def test_a_long_poll_blocks_nothing_and_ends_with_output(client):
    client.start("p", "cat", pipeStdin=True)
    waiting = client.request("process/read", {"processId": "p", "waitMs": 60000})
    assert client.call("environment/status") == {"status": "ready"}
    assert client.write("p", b"x", "1") == "accepted"
    result = client.answer(waiting)["result"]
    assert base64.b64decode(result["chunks"][0]["chunk"]) == b"x"
    waiting = client.request("process/read", {"processId": "p", "afterSeq": 1, "waitMs": 60000})
    ended = client.request("process/wait", {"processId": "p", "until": "closed"})
    assert client.call("process/terminate", {"processId": "p"}) == {"running": True}
    assert client.answer(waiting)["result"]["exitCode"] == 137
    result = client.answer(ended)["result"]
    assert (result["closed"], result["signal"], result["nextSeq"]) == (True, "SIGKILL", 4)


def test_a_wait_can_be_over_before_the_command_is(client):
    client.start("p", "cat", pipeStdin=True)
    assert read(client, "p", waitMs=1)["exited"] is False
    assert client.call("process/wait", {"processId": "p", "timeoutMs": 1})["exited"] is False


def test_the_oldest_output_goes_first_and_is_counted(client):
    ended = client.run("p", "head -c 5000000 /dev/zero")
    assert len(ended.output) == 5000000
    offset, lost, total = 0, 0, 0
    while offset < 5000000:
        got = read(client, "p", offset=offset)
        lost += sum(gap["bytes"] for gap in got.get("lost", []))
        total += sum(len(base64.b64decode(chunk["chunk"])) for chunk in got["chunks"])
        offset = got["nextOffset"]
    assert lost + total == 5000000
    assert total >= 2 << 20  # 1 MiB of its beginning and as much of its end


def test_a_spool_keeps_what_memory_does_not(client):
    client.run("p", "seq 1 500000", spoolBytes=16 << 20)
    data, seq = b"", 0
    while True:
        got = read(client, "p", afterSeq=seq, maxBytes=1 << 20)
        if not got["chunks"]:
            break
        data += b"".join(base64.b64decode(chunk["chunk"]) for chunk in got["chunks"])
        seq = got["nextSeq"] - 1
        assert "lost" not in got
    assert data == b"".join(b"%d\n" % i for i in range(1, 500001))


def test_pulled_output_is_whole_however_slow_the_reader(client):
    client.start("p", "seq 1 1000000", delivery="pull")
    data, seq = b"", 0
    while True:
        got = read(client, "p", afterSeq=seq, waitMs=60000)
        assert "lost" not in got
        data += b"".join(base64.b64decode(chunk["chunk"]) for chunk in got["chunks"])
        if got["closed"] and not got["chunks"]:
            break
        if got["chunks"]:
            seq = got["chunks"][-1]["seq"]
        elif got["exited"]:
            seq = got["nextSeq"] - 1
    assert data == b"".join(b"%d\n" % i for i in range(1, 1000001))
    assert client.until("p", "process/closed")[0]["method"] == "process/exited"


# --- input and control ---

def test_input_by_a_pipe(client):
    client.start("p", "cat; echo eof", pipeStdin=True)
    assert client.write("p", b"one\n", "1") == "accepted"
    assert client.write("p", b"one\n", "1") == "accepted"  # once is enough
    assert client.write("p", b"", "2") == "accepted"
    assert client.call("process/closeStdin", {"processId": "p"}) == {"closed": True}
    assert client.follow("p").output == b"one\neof\n"
    with pytest.raises(RpcError, match="failed to write to process stdin"):
        client.write("p", b"x", "3")
    assert client.write("q", b"x", "1") == "unknownProcess"


def test_without_a_pipe_there_is_no_input(client):
    client.start("p", "cat; sleep 60")
    assert client.write("p", b"x", "1") == "stdinClosed"


def test_one_write_may_have_any_size_when_none_waits(client):
    client.start("p", "wc -c", pipeStdin=True)
    assert client.write("p", bytes(5 << 20), "1") == "accepted"
    client.call("process/closeStdin", {"processId": "p"})
    assert client.follow("p").output.strip() == b"%d" % (5 << 20)
    client.start("q", "sleep 60", pipeStdin=True)
    assert client.write("q", bytes(5 << 20), "1") == "accepted"
    with pytest.raises(RpcError, match="wait already"):
        client.write("q", b"x", "2")


@pytest.mark.parametrize("sandbox", [None, READ_ONLY], ids=["bare", "sandboxed"])
def test_requests_behind_an_unanswered_start_wait_for_it(client, sandbox):
    def behind(name, argv):
        at = {"processId": name}
        chunk = [base64.b64encode(text).decode() for text in (b"one\n", b"two\n")]
        return [client.request(method, params) for method, params in (
            ("process/start", {**at, "argv": argv, "cwd": uri(client.cwd), "tty": False, "env": {},
                               "pipeStdin": True, "sandbox": sandbox}),
            ("process/read", {**at, "waitMs": 0}),
            ("process/write", {**at, "writeId": "1", "chunk": chunk[0]}),
            ("process/write", {**at, "writeId": "2", "chunk": chunk[1]}),
            ("process/closeStdin", at))]

    for number in range(20):
        name = f"p{number}"
        answers = [client.answer(one) for one in behind(name, ["/bin/sh", "-c", "cat"])]
        assert not [one for one in answers if "error" in one], answers
        assert [one["result"] for one in answers[2:5]] == [
            {"status": "accepted"}, {"status": "accepted"}, {"closed": True}]
        assert client.follow(name).output == b"one\ntwo\n"
    answers = [client.answer(one) for one in behind("none", ["/no/such/program"])]
    assert answers[0]["error"]["message"] == "No such file or directory (os error 2)"
    assert answers[1]["error"]["message"] == "unknown process id none"
    assert answers[2]["result"] == {"status": "unknownProcess"}


def test_what_waits_for_a_start_ends_with_its_connection(server):
    for _ in range(10):
        with server.client() as client:
            client.request("process/start", {"processId": "p", "argv": ["/bin/cat"], "tty": False, "env": {},
                                             "cwd": uri(client.cwd), "pipeStdin": True, "sandbox": READ_ONLY})
            client.request("process/read", {"processId": "p", "waitMs": 60000})


def test_a_log_that_nobody_reads_stops_nothing(place):
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = place.start("serve", "--listen", "ws://127.0.0.1:0", "--ws-auth", "own-processes",
                          stdin=subprocess.DEVNULL, stderr=writing)
    url = read_until(process.stdout, b"\n").decode().strip()
    for _ in range(60):
        with ServedClient.connect(url) as client:
            client.cwd = place.ws
            assert client.initialize().run("p", "echo alive").output == b"alive\n"
    assert b"log-lines-lost" not in os.read(reading, 4096)
    with ServedClient.connect(url) as client:
        client.initialize()
    process.terminate()
    assert process.wait(WAIT) == 0
    os.close(writing)
    assert re.search(rb"log-lines-lost count=\d\d", os.read(reading, 4096))
    os.close(reading)


def test_too_much_input_is_refused_whole(client):
    client.start("p", "sleep 60", pipeStdin=True)
    with pytest.raises(RpcError, match="wait already") as error:
        for number in range(40):
            client.write("p", bytes(65536), str(number + 1))
    data = error.value.data
    assert (error.value.code, data["reason"], data["limit"]) == (-32600, "input-full", 1 << 20)
    assert data["limit"] - 65536 < data["pendingBytes"] <= data["limit"]
    room = data["limit"] - data["pendingBytes"]
    assert not room or client.write("p", bytes(room), "rest") == "accepted"


def test_a_terminal(client):
    client.start("p", "stty size; read l; echo got:$l; stty size; read x", tty=True, rows=10,
                 columns=20)
    client.output_until("p", b"10 20\r\n")
    client.call("process/resize", {"processId": "p", "rows": 30, "columns": 40})
    client.write("p", b"hey\n", "1")
    client.output_until("p", b"30 40\r\n")
    client.write("p", b"\x03", "2")
    assert client.until("p", "process/closed")[-2]["params"]["exitCode"] == 1
    with pytest.raises(RpcError, match="no terminal"):
        client.start("q", "sleep 60")
        client.call("process/resize", {"processId": "q", "rows": 1, "columns": 1})


@pytest.mark.parametrize("sandbox", [None, READ_ONLY], ids=["bare", "sandboxed"])
def test_an_interrupt_runs_traps(client, sandbox):
    client.start("p", "trap 'echo INT; exit 5' INT; echo ready; sleep 60 & wait", sandbox=sandbox)
    client.output_until("p", b"ready\n")
    assert client.call("process/signal", {"processId": "p", "signal": "interrupt"}) == {}
    ended = client.until("p", "process/exited")
    assert base64.b64decode(ended[0]["params"]["chunk"]) == b"INT\n"
    assert ended[-1]["params"]["exitCode"] == 5


def test_terminate_can_be_polite(client):
    client.start("p", "trap 'echo bye; exit 3' TERM; echo ready; sleep 60 & wait")
    client.output_until("p", b"ready\n")
    assert client.call("process/terminate", {"processId": "p", "graceMs": 60000})["running"]
    assert client.until("p", "process/exited")[-1]["params"]["exitCode"] == 3


def test_ids_belong_to_a_session(server, client):
    client.start("p", "cat", pipeStdin=True)
    with pytest.raises(RpcError, match="process p already exists"):
        client.start("p", "true")
    with server.client() as other:
        assert other.write("p", b"x", "1") == "unknownProcess"
        other.start("p", "true")
        other.follow("p")
        assert [item["processId"] for item in other.call("process/list")["processes"]] == ["p"]
        both = other.call("process/list", {"all": True})["processes"]
        assert sorted(item["sessionId"] for item in both) == sorted([client.session, other.session])
