"""`cordon serve` as a service: stopping, limits, what slow and rude clients can do, what is left of
it when it is killed."""
import base64
import os
import resource
import signal
import socket
import time

import pytest
from harness import CORDON, WAIT
from processes import children, descendants, has_ended, stat_of
from served import READ_ONLY, ServedClient, Server, uri, workspace_write
from ws_client import Closed, Refused, RpcError, dial, frame, http_get, upgrade_head


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


# --- stopping ---

def test_sigterm_ends_commands_and_tells_how(place):
    with Server(place) as server, server.client() as client:
        client.start("p", "trap 'echo bye; exit 4' TERM; echo up; sleep 60 & wait")
        client.output_until("p", b"up\n")
        os.kill(server.process.pid, signal.SIGTERM)
        ended = client.follow("p")
        assert (ended.output, ended.code) == (b"bye\n", 4)
        assert client.wait_closed().code == 1001
        client.sock.close()
        assert server.process.wait(WAIT) == 0


def test_a_command_that_ignores_sigterm_is_killed(place):
    with Server(place) as server, server.client() as client:
        client.start("p", "trap '' TERM; echo up; while :; do sleep 60; done")
        client.output_until("p", b"up\n")
        assert server.stop() == 0


def test_draining_lets_commands_go_on_and_starts_none(place):
    os.mkfifo(place.ws / "fifo")
    with Server(place, "--drain-timeout", "1h") as server, server.client() as client:
        client.start("p", "read x < fifo; echo $x")
        os.kill(server.process.pid, signal.SIGTERM)
        while "stopping" not in server.logged():
            client.call("environment/status")
        with pytest.raises(RpcError, match="stopping"):
            client.start("q", "true")
        with pytest.raises(RpcError, match="stopping"):
            server.client()
        (place.ws / "fifo").write_text("done\n")
        assert client.follow("p").output == b"done\n"
        assert server.process.wait(WAIT) == 0


def test_a_second_sigterm_is_the_last(place):
    with Server(place, "--drain-timeout", "1h") as server, server.client() as client:
        client.start("p", "sleep 60")
        os.kill(server.process.pid, signal.SIGTERM)
        while "stopping" not in server.logged():
            client.call("environment/status")
        assert server.stop() == 0


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "tty"])
@pytest.mark.parametrize("sandboxed", [False, True], ids=["bare", "sandboxed"])
def test_kill_takes_everything_along(place, sandboxed, tty):
    socket_path = place.base / "s"
    before = set(os.listdir(place.ws))
    with Server(place, listen=f"unix:{socket_path}") as server:
        client = server.client()
        os.mkfifo(place.ws / "fifo")
        client.start("p", "exec 9<> fifo; (setsid sleep 60 &) ; echo up >&9; sleep 60", tty=tty,
                     spoolBytes=1 << 20, sandbox=workspace_write(place.ws) if sandboxed else None)
        with open(place.ws / "fifo", "rb") as fifo:
            assert fifo.readline() == b"up\n"
            started = descendants(server.process.pid)
            assert started
            server.stop(signal.SIGKILL)
            assert fifo.read() == b""  # nobody is left who could write to it
    for pid in started:
        while not has_ended(pid):
            pass
    (place.ws / "fifo").unlink()
    assert set(os.listdir(place.ws)) == before
    with Server(place, listen=f"unix:{socket_path}") as server:
        with server.client() as client:
            assert client.call("process/list", {"all": True}) == {"processes": []}
            assert client.run("p", "echo clean", sandbox=workspace_write(place.ws)).code == 0
    assert set(os.listdir(place.ws)) == before
    assert not socket_path.exists()
    assert not os.listdir(place.tmp)
    with open("/proc/self/mounts") as mounts:
        assert str(place.base) not in mounts.read()


def test_the_end_of_stdin_is_the_end(place):
    process = place.start("serve", "--listen", "stdio")
    process.stdin.write(b'{"id":1,"method":"environment/status"}\n')
    process.stdin.flush()
    assert b"initialize" in process.stdout.readline()
    process.stdin.close()
    assert process.wait(WAIT) == 0


# --- systemd ---

def test_systemd_gives_sockets_and_hears(place):
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(place.base / "notify"))
    notify.settimeout(WAIT)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.base / "s"))
    listener.listen()
    code = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID'] = "
            "os.environ['WATCHDOG_PID'] = str(os.getpid()); os.execv(sys.argv[2], sys.argv[2:])")
    with notify, listener:
        process = place.start("-c", code, listener.fileno(), CORDON, "serve",
                              program="/usr/bin/python3", pass_fds=[listener.fileno()],
                              env={"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(place.base / "notify"),
                                   "WATCHDOG_USEC": "20000"})
        assert notify.recv(100) == b"READY=1"
        assert notify.recv(100) == b"WATCHDOG=1"
        client = ServedClient.connect(f"unix:{place.base}/s")
        client.cwd = place.ws
        client.initialize()
        env = client.run("p", ["/usr/bin/env"], envPolicy={
            "inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {},
            "includeOnly": []}).output
        for name in (b"LISTEN_", b"NOTIFY_SOCKET", b"WATCHDOG_"):
            assert name not in env
        process.send_signal(signal.SIGHUP)
        while not notify.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC="):
            pass
        process.send_signal(signal.SIGTERM)
        while notify.recv(100) != b"STOPPING=1":
            pass
        assert process.wait(WAIT) == 0


def test_sighup_reads_the_configuration_again(place):
    with Server(place) as server, server.client() as client:
        def variable():
            got = client.call("session/exec", {"cmd": "echo \"<$MINE>\"", "login": False,
                                               "cwd": uri(place.ws)})
            return base64.b64decode(got["output"]).decode().strip()

        assert variable() == "<>"
        place.config('[shell_environment_policy]\nset = { MINE = "yes" }\n')
        os.kill(server.process.pid, signal.SIGHUP)
        while "reloaded" not in server.logged():
            client.call("environment/status")
        assert variable() == "<yes>"
        place.config("[shell_environment_policy\n")
        os.kill(server.process.pid, signal.SIGHUP)
        while "reload-failed" not in server.logged():
            client.call("environment/status")
        assert variable() == "<yes>"


def reload(server, client, *lines):
    """SIGHUP, and waits until these are in the log; what the log says since then."""
    before = len(server.logged())
    os.kill(server.process.pid, signal.SIGHUP)
    while not all(line in server.logged()[before:] for line in lines):
        client.call("environment/status")
    return server.logged()[before:]


def test_sighup_reads_the_token_again(place):
    token = place.base / "token"
    token.write_text("the-first\n")
    with Server(place, "--ws-auth", "capability-token", "--ws-token-file", token) as server:
        client = server.connect(token="the-first").initialize()
        told = reload(server, client, "what=--ws-token-file")
        assert "what=config" in told and "changed=true" not in told
        (place.base / "new").write_text("the-second\n")
        (place.base / "new").rename(token)
        place.config('approval_policy = "never"\n')
        told = reload(server, client, f"what=--ws-token-file file={token} changed=true")
        assert "config.toml changed=true" in told
        with pytest.raises(Refused):
            server.connect(token="the-first")
        server.connect(token="the-second").initialize()
        assert client.run("p", "echo still here").output == b"still here\n"
        token.unlink()
        told = reload(server, client, "reload-failed what=--ws-token-file")
        assert "No such file" in told and "reloaded what=config" in told
        server.connect(token="the-second").initialize()
        place.config("nonsense")
        token.write_text("the-third\n")
        told = reload(server, client, "what=--ws-token-file")
        assert "reload-failed what=config" in told and "changed=true" in told
        server.connect(token="the-third").initialize()
        assert not any(word in server.logged() for word in ("the-first", "the-second", "the-third"))


def test_a_token_that_a_link_leads_to_elsewhere_is_hidden_there(place):
    """As where a volume of secrets is renewed by turning a link."""
    for name in ("one", "two"):
        (place.ws / name).write_text(f"token-{name}\n")
    link = place.base / "token"
    link.symlink_to(place.ws / "one")
    with Server(place, "--ws-auth", "capability-token", "--ws-token-file", link) as server:
        client = server.connect(token="token-one").initialize()
        assert b"token-two" in client.run("a", "cat two", sandbox=READ_ONLY).output
        (place.base / "other").symlink_to(place.ws / "two")
        (place.base / "other").rename(link)
        reload(server, client, "what=--ws-token-file")
        for name in ("one", "two"):
            ended = client.run(name, f"cat {name}", sandbox=READ_ONLY)
            assert ended.code != 0 and b"token" not in ended.output.replace(name.encode(), b"")


# --- limits ---

@pytest.mark.parametrize("named", ["token", "link"])
def test_no_sandbox_shows_the_token(place, named):
    """Who can read it can be a client, and a client needs no sandbox."""
    token = place.ws / "token"
    token.write_text("a-token\n")
    (place.ws / "link").symlink_to(token)
    with Server(place, "--ws-auth", "capability-token", "--ws-token-file", named) as server:
        client = server.connect(token="a-token").initialize()
        for i, sandbox in enumerate((READ_ONLY, workspace_write(place.ws))):
            ended = client.run(f"a{i}", "cat token link; mv token x; ! echo x > token", sandbox=sandbox)
            assert ended.code == 0 and b"a-token" not in ended.output
        with pytest.raises(RpcError, match="Permission denied"):
            client.call("fs/readFile", {"path": uri(token), "sandbox": READ_ONLY})
        token.unlink()
        assert client.run("b", "true", sandbox=READ_ONLY).code == 0


def test_a_command_cannot_take_the_socket_away(place):
    with Server(place, listen=f"unix:{place.ws}/socket") as server, server.client() as client:
        ended = client.run("a", "! rm socket && ! mv socket x", sandbox=workspace_write(place.ws))
        assert ended.code == 0 and (place.ws / "socket").is_socket()


def test_more_connections_than_allowed_are_refused(place):
    with Server(place, "--max-connections", "2") as server:
        clients = [server.client(), server.client()]
        with pytest.raises((Closed, Refused, OSError)):
            server.client()
        assert all(client.run("p", "echo x").code == 0 for client in clients)


def test_a_refused_connection_by_lines_says_which_limit(place):
    with Server(place, "--max-connections", "1", listen=f"unix:{place.base}/socket") as server:
        with server.client():
            other = server.connect()
            other.request("initialize", {"clientName": "test"})
            assert other.receive()["error"]["data"] == {"reason": "max-connections", "limit": 1}


def test_more_processes_than_allowed_are_refused(place):
    with Server(place, "--max-processes", "2") as server, server.client() as client:
        client.start("a", "sleep 60")
        client.start("b", "sleep 60")
        for start in (lambda: client.start("c", "true"),
                      lambda: client.call("session/exec", {"cmd": "true", "cwd": "file:///"})):
            with pytest.raises(RpcError, match="2 processes") as error:
                start()
            assert error.value.code == -32603
            assert error.value.data == {"reason": "max-processes", "limit": 2}
        client.call("process/terminate", {"processId": "a"})
        client.follow("a")
        assert client.run("c", "echo x").code == 0


def test_where_descriptors_run_out_nothing_is_left_and_it_is_said(place):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with Server(place, preexec_fn=few) as server, server.client() as client:
        with pytest.raises(RpcError) as error:
            for number in range(100):
                client.start(f"q{number}", "sleep 60", pipeStdin=True, sandbox=workspace_write(place.ws))
        assert error.value.data["reason"] == "descriptors"
        assert os.listdir(place.ws) == []
        answers, held = [], []
        while "503" not in answers and len(held) < 64:  # who comes now is not told that it may not
            held.append(dial(server.url))
            held[-1].sendall(upgrade_head())
            answers.append(held[-1].recv(12)[9:].decode())
        assert set(answers) <= {"101", "503"} and answers[-1] == "503", answers
        for sock in held:
            sock.close()


def test_places_that_nothing_runs_in_give_way_where_descriptors_are_few(place):
    """Each keeps some, so that what comes next there is quick."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with Server(place, preexec_fn=few) as server, server.client() as client:
        for number in range(40):
            client.cwd = place.ws / str(number)
            client.cwd.mkdir()
            assert client.run(f"p{number}", "true", sandbox=workspace_write(client.cwd)).code == 0
        assert os.listdir(client.cwd) == []


def zombies_of(server):
    return sum(stat_of(pid)[:1] == ["Z"] for pid in children(server.process.pid))


def test_no_zombies_stay(place):
    with Server(place) as server, server.client() as client:
        for number in range(20):
            client.start(f"a{number}", "true", sandbox=workspace_write(place.ws))
            client.start(f"b{number}", "true", tty=True)
        for number in range(20):
            client.follow(f"a{number}")
            client.follow(f"b{number}")
        end = time.monotonic() + WAIT
        while zombies_of(server):
            assert time.monotonic() < end, "they stay"
            client.call("environment/status", {})


def test_descriptors_running_out_is_an_error_of_one_call(place):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with Server(place, preexec_fn=few) as server, server.client() as client:
        started = 0
        with pytest.raises(RpcError) as error:
            while True:
                client.start(f"p{started}", "sleep 60", pipeStdin=True)
                started += 1
        assert error.value.code == -32603 and started > 3
        assert error.value.data["reason"] == "descriptors"
        assert error.value.data["errno"] == "EMFILE"
        for number in range(started):
            client.call("process/terminate", {"processId": f"p{number}"})
            client.follow(f"p{number}")
        assert client.run("q", "echo x").code == 0


def test_a_full_disk_only_ends_the_spool(place):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    with Server(place, preexec_fn=small) as server, server.client() as client:
        ended = client.run("p", "head -c 10000000 /dev/zero", spoolBytes=1 << 30)
        assert len(ended.output) == 10000000
        got = client.call("process/read", {"processId": "p", "offset": 0})
        assert got["chunks"] and got["lost"]
        with pytest.raises(RpcError, match="os error 27") as error:
            client.call("fs/writeFile", {"path": uri(place.ws / "large"), "dataBase64":
                                         base64.b64encode(bytes(2 << 20)).decode()})
        assert error.value.data == {"reason": "file-too-large", "errno": "EFBIG"}


# --- rude and slow clients ---

def test_a_client_that_does_not_read_holds_up_only_itself(server):
    with server.client() as slow, server.client() as other:
        slow.start("p", "head -c 50000000 /dev/zero")
        for number in range(20):
            assert other.run(f"q{number}", "echo x").output == b"x\n"
        assert len(slow.follow("p").output) == 50000000


def test_a_client_that_never_reads_can_go(server):
    rude = server.client()
    rude.start("p", "head -c 200000000 /dev/zero")
    rude.sock.close()
    with server.client() as other:
        assert other.run("q", "echo x").output == b"x\n"


def test_a_disconnect_in_the_middle_of_a_message_is_nothing(server):
    client = server.client()
    client.start("p", "cat", pipeStdin=True)
    whole = frame(b'{"id":9,"method":"process/write","params":{' + b" " * 100000)
    client.send_bytes(whole[:50000])
    client.sock.close()
    with server.client() as other:
        assert other.run("q", "echo x").output == b"x\n"


def test_many_connections_come_and_go(server):
    with server.client() as client:
        for number in range(200):
            server.client().sock.close()
        assert client.run("p", "echo x").output == b"x\n"


def test_too_many_waiting_requests_are_refused(server):
    with server.client() as client:
        client.start("p", "sleep 60")
        numbers = [client.request("process/wait", {"processId": "p"}) for _ in range(1025)]
        error = client.answer(numbers[-1])["error"]
        assert "wait already" in error["message"]
        assert error["data"] == {"reason": "max-calls", "limit": 1024}
        client.call("process/terminate", {"processId": "p"})
        assert client.answer(numbers[0])["result"]["exited"]


# --- looking at it ---

def test_metrics(server):
    with server.client() as client:
        client.run("p", "echo x")
        client.start("q", "sleep 60")
        text = http_get(server.url, "/metrics").body.decode()
    values = dict(line.split() for line in text.splitlines() if not line.startswith("#"))
    assert values["cordon_connections"] == "1"
    assert values["cordon_processes"] == "1"
    assert values["cordon_processes_started_total"] == "2"
    assert values["cordon_processes_retained"] == "1"


def test_wrong_options_are_said(place):
    for options, words in ((["--listen", "tcp:1"], "tcp:1"), (["--max-processes", "0"], "from 1"),
                           (["--ws-token-file", "/x"], "--ws-auth"), (["x"], "no argument"),
                           (["--listen", "ws://0.0.0.0:0"], "--ws-auth"),
                           (["--listen", "stdio", "--ws-auth", "anybody"], "no effect")):
        ran = place.cordon("serve", *options)
        assert ran.returncode != 0 and words in ran.stderr, ran
        assert not ran.stdout


def test_the_minimal_set_of_an_unmodified_client(server):
    """What Codex sends: nothing but these calls, in this order, in any environment."""
    client = server.connect()
    started = client.call("initialize", {"clientName": "codex-environment",
                                         "resumeSessionId": None})
    assert started["sessionId"] and started["environmentInfo"]["shell"]["path"]
    client.send({"method": "initialized", "params": {}})
    assert client.start("p", "echo a", sandbox=READ_ONLY)["sandboxType"] == "linuxSeccomp"
    assert [event["method"] for event in client.until("p", "process/closed")] == [
        "process/output", "process/exited", "process/closed"]
    assert client.call("process/terminate", {"processId": "p"}) == {"running": False}


def test_unknown_notifications_end_a_connection(server):
    client = server.client()
    client.notify("bogus/thing")
    client.wait_closed()
    client = server.connect()
    client.notify("initialized")
    with pytest.raises((Closed, OSError)):
        client.call("environment/status")


@pytest.mark.parametrize("bare", [False, True], ids=["sandboxed", "bare"])
def test_a_command_cannot_be_its_servers_client(place, bare):
    """With the network enabled it reaches the socket; as a client it could start one without a sandbox."""
    (place.ws / "ask.py").write_text(
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('socket')\n"
        "s.sendall(b'{\"id\": 1, \"method\": \"initialize\", \"params\": {\"clientName\": \"x\"}}\\n')\n"
        "print('answer', len(s.recv(100)))\n")
    sandbox = None if bare else workspace_write(place.ws)
    if sandbox:
        sandbox["permissions"]["network"] = "enabled"
    with Server(place, listen=f"unix:{place.ws}/socket") as server, server.client() as client:
        ended = client.run("a", f"cd {place.ws} && python3 ask.py", sandbox=sandbox)
        refused = (b"answer 0\n", b"ConnectionResetError", b"BrokenPipeError", b"PermissionError")
        assert any(word in ended.output for word in refused), ended.output
