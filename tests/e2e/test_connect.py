"""`cordon --connect URL`: every command against the real server, over both transports."""
import base64
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness import CORDON, WAIT, finish, read_until
from remote import FakeServer, PlainServer
from served import Server

BYTES = bytes(range(256)) * 20


@pytest.fixture(params=["ws", "unix"])
def server(place, request):
    listen = "ws://127.0.0.1:0" if request.param == "ws" else f"unix:{place.base}/serve.sock"
    with Server(place, listen=listen) as server:
        yield server


@pytest.fixture
def local(place):
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        yield server


@pytest.fixture
def plain(place, local):
    return PlainServer(place, local)


def connect(place, server, *words, **kwargs):
    return place.cordon("--connect", server.url, *words, **kwargs)


def shell(place, server, script, *options, **kwargs):
    return connect(place, server, "run", *options, "--", "sh", "-c", script, **kwargs)


def raw(place, server, *words, data=b"", code=0):
    """The bytes of stdout."""
    process = place.start("--connect", server.url, *words)
    out, err = process.communicate(data, timeout=WAIT)
    assert process.returncode == code, err
    return out


# --- run

def test_run_has_streams_and_status_of_the_command(place, server):
    ran = shell(place, server, "echo out; echo err >&2; pwd; exit 7")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, f"out\n{place.ws}\n", "err\n")


def test_hosts_go_over_the_wire_and_rules_count_at_once(place, local):
    """A server of this machine is reached by --host-port, until a rule of the server's user denies it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with client:
                        client.sendall(b"hi\n")

        threading.Thread(target=serve, daemon=True).start()
        port = listener.getsockname()[1]

        def run(script):
            return connect(place, local, "run", "--host-port", str(port), "--deny-host", "*.bad.test", "--", "bash", "-c", script)

        ask = f"exec 3<>/dev/tcp/127.0.0.1/{port} && read -r line <&3 && echo $line"
        ran = run(ask)
        assert (ran.returncode, ran.stdout) == (0, "hi\n"), ran.stderr
        ran = run("getent hosts a.bad.test")
        assert ran.returncode and "a.bad.test" in ran.stderr and "sandbox.denyHosts *.bad.test" in ran.stderr
        place.config('network_rule(host="127.0.0.1", protocol="socks5_tcp", decision="deny")\n',
                     "home/.config/cordon/rules/test.rules")
        ran = run(ask)
        assert ran.returncode and "test.rules:1 network_rule" in ran.stderr, ran.stderr
        listener.shutdown(socket.SHUT_RDWR)
    ran = connect(place, local, "run", "--allow-host", "127.1", "--", "true")
    assert ran.returncode == 125 and "four decimal numbers" in ran.stderr


def test_run_passes_input_and_its_end(place, server):
    assert raw(place, server, "run", "--", "cat", data=BYTES * 20) == BYTES * 20
    ran = connect(place, server, "run", "--stdin", "null", "--", "cat", text="not this")
    assert (ran.returncode, ran.stdout) == (0, "")


def test_input_may_be_a_file(place, server):
    (place.ws / "input").write_bytes(BYTES)
    with open(place.ws / "input", "rb") as file:
        process = place.start("--connect", server.url, "run", "--", "cat", stdin=file)
        out, _ = finish(process, 0)
    assert out == BYTES


def test_input_that_has_no_room_is_sent_again(place, local):
    tried = set()

    def refuse_once(message):
        name = (message.get("params") or {}).get("writeId")
        if message.get("method") != "process/write" or name in tried:
            return None
        tried.add(name)
        return {"id": message["id"], "error": {
            "code": -32600,
            "message": "1048576 bytes of input wait already for process run to read them"}}

    plain = PlainServer(place, local, refuse_once)
    assert raw(place, plain, "run", "--", "cat", data=BYTES * 30) == BYTES * 30
    assert len(tried) > 1


def test_five_megabytes_of_output_are_whole_and_in_order(place, server):
    out = raw(place, server, "run", "--", "sh", "-c", "seq 1000000; head -c 1000000 /dev/zero")
    assert out == b"".join(b"%d\n" % n for n in range(1, 1000001)) + bytes(1000000)


def test_a_slow_reader_gets_everything(place, server):
    process = place.start("--connect", server.url, "run", "--", "sh", "-c",
                          "seq 1000000; echo end >&2")
    first = read_until(process.stdout, b"\n")
    out, err = finish(process, 0)
    assert first + out == b"".join(b"%d\n" % n for n in range(1, 1000001))
    assert err == b"end\n"


def test_a_reader_that_leaves_ends_the_command(place, server):
    process = place.start("--connect", server.url, "run", "--", "sh", "-c", "echo $$; exec yes")
    read_until(process.stdout, b"y\n")
    process.stdout.close()
    assert process.wait(WAIT) == 128 + signal.SIGPIPE
    assert process.stderr.read() == b""


def test_run_is_sandboxed_unless_told_otherwise(place, server):
    inside, outside = place.ws / "inside", place.outside / "file"
    ran = shell(place, server, f"echo in > {inside}; echo out > {outside}")
    assert ran.returncode != 0 and "refused by the sandbox: write" in ran.stderr
    assert inside.exists() and not outside.exists()
    assert shell(place, server, f"echo 1 > {inside}.2", "-p", "read-only").returncode != 0
    assert shell(place, server, f"echo 1 > {outside}", "-p", "danger-full-access").returncode == 0
    assert outside.exists()


def test_run_has_the_profile_and_the_rules_of_the_servers_user(place):
    """As `cordon run` there, when nothing else is said."""
    secret = place.ws / "secret"
    secret.write_text("key\n")
    place.config(f'default_permissions = "mine"\n[permissions.mine]\nextends = ":workspace"\n'
                 f'[permissions.mine.filesystem]\n"{secret}" = "deny"\n')
    rules = place.home / ".config/cordon/rules"
    rules.mkdir(parents=True, exist_ok=True)
    (rules / "x.rules").write_text('prefix_rule(pattern = ["touch"], decision = "forbidden")\n')
    with Server(place, listen=f"unix:{place.base}/s") as server:
        ran = shell(place, server, f"cat {secret}")
        assert ran.returncode != 0 and "key" not in ran.stdout
        assert shell(place, server, f"cat {secret}", "-p", "workspace-write").stdout == "key\n"
        assert shell(place, server, f"cat {secret}", "-p", "mine").returncode != 0
        ran = connect(place, server, "run", "--", "touch", "made")
        assert ran.returncode == 126 and "forbid" in ran.stderr and not (place.ws / "made").exists()
        outside = place.outside / "o"
        assert shell(place, server, f"echo x > {outside}").returncode != 0
        assert shell(place, server, f"echo x > {outside}", "-w", place.outside).returncode == 0
        (place.ws / "sub").mkdir()
        assert shell(place, server, "echo x > sub/f").returncode == 0
        assert shell(place, server, "echo y > sub/f", "-r", place.ws / "sub").returncode != 0
        assert shell(place, server, "cat sub/f", "--deny", place.ws / "sub/f").returncode != 0
        ran = shell(place, server, "true", "-p", "nosuch")
        assert ran.returncode == 125 and "nosuch" in ran.stderr


def test_the_folder_is_the_servers_or_the_one_asked_for(place, server):
    (place.ws / "sub dir").mkdir()
    assert shell(place, server, "pwd", cwd=place.outside).stdout == f"{place.ws}\n"
    assert shell(place, server, "pwd", "-C", "sub dir").stdout == f"{place.ws}/sub dir\n"
    assert shell(place, server, "pwd", "-C", place.outside).stdout == f"{place.outside}\n"


def test_the_environment_is_the_servers_and_what_is_given(place):
    with Server(place, env={"OF_SERVER": "1", "MY_TOKEN": "2"}) as server:
        ran = shell(place, server, "echo $OF_SERVER-$MY_TOKEN-$GIVEN-$MINE-$NOT", "-e", "GIVEN=3=4",
                    "-e", "MINE", env={"MINE": "5", "NOT": "6"})
    assert ran.stdout == "1--3=4-5-\n"


def test_what_cannot_start_says_why(place, server):
    ran = connect(place, server, "run", "--", "no-such-program")
    assert ran.returncode == 127
    assert "starting no-such-program: " in ran.stderr and "No such file" in ran.stderr


def test_interrupts_reach_the_command(place, server):
    process = place.start("--connect", server.url, "run", "--", "sh", "-c",
                          "trap 'echo caught; exit 9' INT; echo ready; "
                          "while :; do sleep 1000 & wait; done")
    read_until(process.stdout, b"ready\n")
    process.send_signal(signal.SIGINT)
    assert finish(process, 9) == (b"caught\n", b"")


def test_the_second_interrupt_ends_the_command(place, server):
    process = place.start("--connect", server.url, "run", "--", "sh", "-c",
                          "trap 'echo caught' INT; echo ready; while :; do sleep 100 & wait; done")
    read_until(process.stdout, b"ready\n")
    process.send_signal(signal.SIGINT)
    read_until(process.stdout, b"caught\n")
    process.send_signal(signal.SIGINT)
    finish(process, 128 + signal.SIGKILL)


def test_the_command_ends_with_the_client(place, server):
    """Its end of a fifo is closed by nothing else."""
    os.mkfifo(place.ws / "fifo")
    process = place.start("--connect", server.url, "run", "--", "sh", "-c",
                          "exec 3> fifo; echo here >&3; exec sleep 1000")
    with open(place.ws / "fifo") as fifo:
        assert fifo.readline() == "here\n"
        process.kill()
        assert fifo.read() == ""


def test_a_server_that_dies_is_told(place, server):
    process = place.start("--connect", server.url, "run", "--", "sh", "-c",
                          "echo before; exec sleep 1000")
    read_until(process.stdout, b"before\n")
    server.stop(signal.SIGKILL)
    _, err = finish(process, 125)
    assert f"the command is lost: the server at {server.url} is gone" in err.decode()


# --- ps, logs, kill

def start(place, server, script, *options):
    ran = shell(place, server, script, "--detach", *options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_ps_lists_what_runs(place, server):
    assert connect(place, server, "ps").stdout.splitlines()[1:] == []
    ident = start(place, server, "printf '\\033[31m'; exec sleep 1000")
    session, process = ident.split("/")
    head, line = connect(place, server, "ps").stdout.splitlines()
    assert head.split() == ["ID", "STATE", "PID", "TTY", "AGE", "COMMAND"]
    assert line.split()[:2] == [f"{session[:8]}/{process}", "running"] and "sh -c" in line
    entry, = place.json("--connect", server.url, "ps", "--json")
    assert entry["sessionId"] == session and entry["processId"] == process
    assert line.split()[2] == str(entry["pid"])
    assert b"sleep 1000" in Path(f"/proc/{entry['pid']}/cmdline").read_bytes().replace(b"\0", b" ")


def test_ps_prints_no_control_characters(place, server):
    start(place, server, "# \x1b[31m\n sleep 1000")
    out = connect(place, server, "ps").stdout
    assert "<U+001B>[31m<U+000A> sleep" in out and "\x1b" not in out


def test_logs_are_what_was_written_so_far(place, local):
    with local.client() as client:
        client.run("p1", "echo out; echo err >&2")
        ran = connect(place, local, "logs", "p1")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "out\n", "err\n")
        assert connect(place, local, "logs", f"{client.session[:8]}/p1").stdout == "out\n"


def test_logs_begin_where_they_are_asked_to(place, server):
    with server.client() as client:
        client.run("p1", "printf 0123456789")
        for offset, wanted in (("start", "0123456789"), ("0", "0123456789"), ("4", "456789"),
                               ("-3", "789"), ("-1K", "0123456789"), ("end", ""), ("99", "")):
            ran = connect(place, server, "logs", "--from", offset, "p1")
            assert (ran.returncode, ran.stdout) == (0, wanted), offset


def test_logs_tell_what_is_lost(place, server):
    with server.client() as client:
        client.run("p1", "head -c 3000000 /dev/zero; printf end")
        ran = connect(place, server, "logs", "p1")
    assert ran.stdout.endswith("end") and ran.returncode == 0
    lost = 3000003 - len(ran.stdout)
    assert lost > 0 and f"cordon: {lost} bytes from byte " in ran.stderr
    assert ran.stderr.endswith(" on are not kept any more\n")


def test_logs_follow_to_the_end(place, server):
    with server.client() as client:
        client.start("p1", "echo one; read x; echo $x; exit 5", pipeStdin=True)
        client.output_until("p1", b"one\n")
        process = place.start("--connect", server.url, "logs", "-f", "p1")
        read_until(process.stdout, b"one\n")
        client.write("p1", b"two\n", "1")
        assert finish(process, 0) == (b"two\n", b"")


def test_kill_ends_a_process(place, server):
    for options, code in ((["-s", "INT"], 130), (["--signal", "SIGKILL"], 137), ([], 143),
                          (["-s", "15"], 143)):
        ident = start(place, server, "echo ready; exec sleep 1000")
        logs = place.start("--connect", server.url, "logs", "-f", ident)
        read_until(logs.stdout, b"ready\n")
        assert connect(place, server, "kill", *options, ident).returncode == 0
        finish(logs, 0)
        entry = next(entry for entry in place.json("--connect", server.url, "ps", "--json")
                     if ident.startswith(entry["sessionId"]))
        assert entry["exitCode"] == code
        ran = connect(place, server, "kill", ident)
        assert ran.returncode == 1 and "has ended already" in ran.stderr


def test_kill_is_patient(place, server):
    ident = start(place, server, "trap 'echo bye; exit 3' TERM; echo ready; "
                                 "while :; do sleep 1000 & wait; done")
    logs = place.start("--connect", server.url, "logs", "-f", ident)
    read_until(logs.stdout, b"ready\n")
    assert connect(place, server, "kill", "--grace", "1m", ident).returncode == 0
    assert finish(logs, 0)[0] == b"bye\n"


def test_a_process_that_is_not_there(place, server):
    with server.client() as one, server.client() as two:
        one.start("same", "sleep 1000")
        two.start("same", "sleep 1000")
        ran = connect(place, server, "logs", "same")
        assert ran.returncode == 125 and '2 sessions have a process "same"' in ran.stderr
        assert connect(place, server, "kill", f"{two.session[:8]}/same").returncode == 0
    ran = connect(place, server, "attach", "other")
    assert ran.returncode == 125 and 'there is no process "other"' in ran.stderr
    ran = connect(place, server, "kill", "-s", "HUP", "same")
    assert ran.returncode == 125 and "INT, TERM and KILL only" in ran.stderr


# --- cp

def test_cp_there_and_back(place, server):
    data = os.urandom(3 << 20)
    (place.ws / "here").write_bytes(data)
    assert connect(place, server, "cp", "here", "remote:there").returncode == 0
    assert (place.ws / "there").read_bytes() == data
    assert connect(place, server, "cp", f"remote:{place.ws}/there", place.tmp).returncode == 0
    assert (place.tmp / "there").read_bytes() == data
    assert connect(place, server, "cp", "here", f"remote:{place.outside}").returncode == 0
    assert (place.outside / "here").read_bytes() == data
    assert sorted(os.listdir(place.ws)) == ["here", "there"]


def test_cp_by_standard_streams(place, server):
    raw(place, server, "cp", "-", "remote:a file", data=BYTES)
    assert (place.ws / "a file").read_bytes() == BYTES
    assert raw(place, server, "cp", "remote:a file", "-") == BYTES
    raw(place, server, "cp", "-", "remote:empty")
    assert raw(place, server, "cp", "remote:empty", "-") == b""


def test_cp_keeps_the_mode_and_the_link_of_what_it_replaces(place, server):
    (place.ws / "source").write_text("new")
    target, link = place.ws / "target", place.ws / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("target")
    assert connect(place, server, "cp", "remote:source", "link").returncode == 0
    assert target.read_text() == "new" and target.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


@pytest.mark.parametrize("words, text", [
    (["a", "b"], "written remote:PATH"),
    (["remote:a", "remote:b"], "written remote:PATH"),
    (["remote:missing", "b"], "remote:missing: No such file"),
    (["missing", "remote:b"], "missing: No such file"),
    (["remote:.", "-"], "is a directory, which stdout cannot take"),
    (["-", "remote:/tmp"], "needs a name"),
    (["remote:", "b"], "names no file"),
])
def test_cp_says_what_is_wrong(place, server, words, text):
    ran = connect(place, server, "cp", *words)
    assert ran.returncode == 125 and text in ran.stderr, ran.stderr
    assert os.listdir(place.ws) == []


# --- servers

def test_a_token_comes_from_a_file(place):
    file = place.base / "token"
    file.write_text("  s3cret\n")
    with Server(place, "--ws-auth", "capability-token", "--ws-token-file", file) as server:
        def ps(*options, **env):
            return place.cordon("--connect", server.url, *options, "ps", env=env)

        for ran in (ps("--auth-token-file", file), ps(CORDON_TOKEN_FILE=str(file))):
            assert ran.returncode == 0, ran.stderr
        refused = ps()
        assert refused.returncode == 125 and "--auth-token-file FILE" in refused.stderr
        (place.base / "wrong").write_text("guess")
        assert ps("--auth-token-file", place.base / "wrong").returncode == 125
        (place.base / "bad").write_text("s3cret\r\nX-Header: 1")
        ran = ps("--auth-token-file", place.base / "bad")
        assert ran.returncode == 0  # what follows white space is no token and is not sent


def test_the_variable_counts_behind_connect_only(place, server):
    env = {"CORDON_CONNECT": server.url}
    assert place.cordon("connect", "ps", env=env).returncode == 0
    assert place.run("--", "sh", "-c", "echo $PPID", env=env).returncode == 0
    assert place.cordon("ps", env=env).returncode == 125
    ran = place.cordon("connect", "ps")
    assert ran.returncode == 125 and "which server?" in ran.stderr


def test_a_socket_at_the_usual_place_needs_no_name(place):
    env = {"XDG_RUNTIME_DIR": str(place.base)}
    with Server(place, listen=f"unix:{place.base}/cordon.sock"):
        assert place.cordon("connect", "run", "--", "echo", "hi", env=env).stdout == "hi\n"
        assert place.cordon("connect", "ps", env={**env, "CORDON_CONNECT": "unix:/nowhere/s"}).returncode == 125
    assert "which server?" in place.cordon("connect", "ps", env={"XDG_RUNTIME_DIR": "/nowhere"}).stderr


@pytest.mark.parametrize("url, text", [
    ("ws://127.0.0.1:1", "is the server running? This would start one: cordon serve --listen ws:"),
    ("unix:/no/such", "is the server running? This would start one: cordon serve --listen unix:"),
    ("ws://localhost:80", "should be ws://IP:PORT"),
    ("http://127.0.0.1", "should be ws://IP:PORT"),
    ("stdio", "nothing to connect to"),
])
def test_who_cannot_connect_is_told_what_to_do(place, url, text):
    ran = place.cordon("--connect", url, "ps")
    assert ran.returncode == 125 and text in ran.stderr, ran.stderr


def accept_of(head):
    key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
    digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    return base64.b64encode(digest)


def upgraded(head, after=b"", accept=None):
    return (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Accept: " + (accept or accept_of(head)) + b"\r\n\r\n" + after)


def frame(text, first=0x81):
    data = text if isinstance(text, bytes) else json.dumps(text).encode()
    assert len(data) < 126
    return bytes([first, len(data)]) + data


@pytest.mark.parametrize("reply, text", [
    (b"", "ended the connection in the handshake"),
    (b"SSH-2.0-x\r\n\r\n", "this is no exec server"),
    (b"HTTP/1.1 404 Not Found\r\n\r\n", "answers with HTTP status 404"),
    (b"HTTP/1.1 503 Busy\r\n\r\n", "too many connections"),
    (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 4000, "HTTP head is too long"),
    (lambda head: upgraded(head, accept=b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "handshake is wrong"),
    (upgraded, "ended the connection"),
    (lambda head: upgraded(head, frame(b"[1,2]")), "ended the connection"),
    (lambda head: upgraded(head, frame({"id": 1, "result": {}})), "gives no sessionId"),
    (lambda head: upgraded(head, frame({"id": 1, "result": 7})), "gives no sessionId"),
    (lambda head: upgraded(head, frame({"id": 77, "result": {}})), "ended the connection"),
    (lambda head: upgraded(head, frame(b"\xff\xfe")), "ended the connection"),
    (lambda head: upgraded(head, frame(b"x", 0xf1)), "ended the connection"),
    (lambda head: upgraded(head, frame({"id": 1, "error": {"code": -32600, "message": "no"}})),
     ": no"),
])
def test_a_server_that_is_none_is_told(place, reply, text):
    server = FakeServer(place, reply)
    ran = connect(place, server, "ps")
    assert ran.returncode == 125 and text in ran.stderr, ran.stderr
    assert server.heads[0].startswith(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:")


# --- a server without our extensions

def test_plain_run(place, local):
    plain = PlainServer(place, local, swaps=True)
    ran = shell(place, plain, "for i in 1 2 3 4 5; do echo $i; sleep 0.01; done; exit 6",
                "--stdin", "null")
    assert (ran.returncode, ran.stdout) == (6, "1\n2\n3\n4\n5\n")
    assert plain.asked[-1]["method"] == "process/start"


def test_plain_run_tells_that_input_cannot_end(place, plain):
    process = place.start("--connect", plain.url, "run", "--", "sh", "-c",
                          "read x; echo $x; exec sleep 1000")
    process.stdin.write(b"line\n")
    process.stdin.close()
    read_until(process.stdout, b"line\n")
    read_until(process.stderr, b"this server cannot end a command's input")


def test_plain_ps_and_attach_say_what_is_missing(place, plain):
    ran = connect(place, plain, "ps")
    assert ran.returncode == 125 and "this server has no process/list" in ran.stderr
    ran = connect(place, plain, "attach", "42")
    assert ran.returncode == 125 and "needs the whole id of its session" in ran.stderr


def test_plain_logs_kill_and_attach_by_session(place, plain):
    ran = shell(place, plain, "echo one; echo two >&2; sleep 1000", "--detach", "--stdin", "null")
    assert "keeps the command for about 80 s only" in ran.stderr
    ident = ran.stdout.strip()
    while "client-closed" not in plain.server.logged():
        pass  # it has to be seen before somebody else can have the session
    follow = place.start("--connect", plain.url, "logs", "-f", ident)
    assert read_until(follow.stdout, b"one\n") == b"one\n"
    busy = connect(place, plain, "kill", ident)
    assert busy.returncode == 125 and "belongs to another connection now" in busy.stderr
    place.stop(follow)
    with_terminal = until_free(lambda: connect(place, plain, "attach", ident))
    assert "there is no terminal to its processes" in with_terminal.stderr
    ran = until_free(lambda: connect(place, plain, "kill", ident))
    assert ran.returncode == 0 and "killed at once" in ran.stderr
    ran = until_free(lambda: connect(place, plain, "logs", "-f", ident))
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "one\n", "two\n")


def until_free(call):
    """Again, while the server has not yet seen that the last connection is gone."""
    while "belongs to another connection now" in (ran := call()).stderr:
        pass
    return ran


def test_plain_cp(place, plain):
    raw(place, plain, "cp", "-", "remote:file", data=BYTES)
    assert raw(place, plain, "cp", "remote:file", "-") == BYTES


# --- the command line

@pytest.mark.parametrize("words, text", [
    ([], "a server has the commands run, ps, attach, logs, kill, publish and cp ("),
    (["pss"], 'but no "pss"'),
    (["run"], "it lacks an argument"),
    (["cp", "a"], "it lacks an argument"),
    (["ps", "x"], "there is one too many"),
    (["attach", "--detach-key", "ctrl-", "x"], "is no key"),
    (["logs", "--from", "x", "y"], "--from: "),
    (["run", "--watch", "mine", "--", "true"], '"mine" is not one of facts'),
    (["logs", "--tty", "x"], "there is no option --tty"),
])
def test_wrong_calls_say_what_is_right(place, words, text):
    ran = place.cordon("--connect", "unix:/no/such", *words)
    assert ran.returncode == 125 and text in ran.stderr, ran.stderr


def test_every_command_explains_itself(place):
    for word in ("run", "ps", "attach", "logs", "kill", "cp"):
        ran = place.cordon("--connect", "unix:/no/such", word, "--help")
        assert place.cordon("help", "connect", word).stdout.startswith(ran.stdout.split("\n\n")[0])
        assert ran.returncode == 0 and ran.stdout.startswith(f"Usage: cordon connect {word} ")
    assert place.cordon("connect", "--help").returncode == 0


def test_cordon_itself_does_not_link_the_client():
    symbols = subprocess.run(["nm", CORDON], capture_output=True, text=True, check=True).stdout
    assert "rpc_hub_connect" not in symbols and "options_parse" in symbols
