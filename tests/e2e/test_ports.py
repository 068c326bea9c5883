"""Ports: a command's own localhost, one port of the host's (--host-port), and one of the command's for the host (--publish,
cordon publish)."""
import contextlib
import json
import os
import pathlib
import resource
import signal
import socket
import sys
import time

import pytest

from harness import WAIT, family
from served import READ_ONLY, Server
from tools import where

PYTHON = [sys.executable, "-B", "-c"]

# Answers each connection with what it was sent; says when it listens.
SERVER = """
import socket, sys
family, address, port = sys.argv[1:]
listener = socket.create_server((address, int(port)), family=getattr(socket, family))
print("up", flush=True)
while True:
    client, peer = listener.accept()
    with client:
        client.sendall(b"got " + client.recv(100) + b" from " + peer[0].encode())
"""

# Connects to each HOST PORT and says what came of it.
CLIENT = """
import socket, sys
for host, port in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        with socket.create_connection((host, int(port)), 10) as server:
            server.sendall(b"hello\\n")
            print(server.recv(100).decode() or "end", flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
"""


def free_port(family=socket.AF_INET):
    with socket.create_server(("127.0.0.1" if family == socket.AF_INET else "::1", 0), family=family) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def serving(place, *options, family="AF_INET", address="127.0.0.1", port=3000):
    process = place.start("run", *options, "--", *PYTHON, SERVER, family, address, str(port))
    try:
        assert process.stdout.readline() == b"up\n", process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=WAIT)


def talk(port, host="127.0.0.1"):
    with socket.create_connection((host, port), WAIT) as server:
        server.sendall(b"hi")
        return server.recv(100)


def wait_until_closed(port):
    with contextlib.suppress(OSError):
        while True:
            socket.create_connection(("127.0.0.1", port), WAIT).close()


def refuses(place, *words):
    ran = place.cordon("run", *words, "--", "true")
    assert ran.returncode == 125, ran
    return ran.stderr


# --- publish

@pytest.mark.parametrize("network", ["restricted", "proxied"])
@pytest.mark.parametrize("family,address", [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1"), ("AF_INET", "0.0.0.0")])
def test_a_port_is_opened_to_the_host(place, network, family, address):
    port, other = free_port(), free_port()
    options = ["--network", network, "--publish", f"{port}:3000", "--publish", f"{other}:3001"]
    with serving(place, *options, family=family, address=address) as process:
        peer = b"::1" if family == "AF_INET6" else b"127.0.0.1"
        assert [talk(port) for _ in range(3)] == [b"got hi from " + peer] * 3
        with pytest.raises(OSError):  # nobody listens there inside
            assert talk(other)
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT)
        wait_until_closed(port)


ECHO = """
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
async def client(reader, writer):
    writer.write(await reader.read())
    writer.close()
async def main():
    server = await asyncio.start_server(client, "127.0.0.1", 3000, backlog=4096)
    print("up", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def test_many_at_once_and_many_bytes(place):
    port = free_port()
    process = place.start("run", "--publish", f"{port}:3000", "--", *PYTHON, ECHO)
    assert process.stdout.readline() == b"up\n"
    data = os.urandom(200_000)
    clients = [socket.create_connection(("127.0.0.1", port), WAIT) for _ in range(200)]
    for client in clients[:20]:
        client.sendall(data)
    for client in clients:
        client.shutdown(socket.SHUT_WR)
    got = []
    for client in clients:
        with client, client.makefile("rb") as file:
            got.append(file.read())
    assert got == [data] * 20 + [b""] * 180
    process.kill()
    process.communicate(timeout=WAIT)


def test_as_many_as_the_ceiling_wait_for_a_slow_init_and_the_next_are_told(place):
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    port = free_port()
    process = place.start("run", "--publish", f"{port}:3000", "--", *PYTHON, ECHO)
    assert process.stdout.readline() == b"up\n"
    init, = [pid for pid in family(process.pid) if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"cordon-init\0")]
    resource.setrlimit(resource.RLIMIT_NOFILE, (old[1], old[1]))
    with contextlib.ExitStack() as clients:
        clients.callback(resource.setrlimit, resource.RLIMIT_NOFILE, old)
        os.kill(init, signal.SIGSTOP)
        visitors = [clients.enter_context(socket.create_connection(("127.0.0.1", port), WAIT)) for _ in range(1024)]
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                talk(port)
        os.kill(init, signal.SIGCONT)
        for visitor in visitors:
            visitor.sendall(b"x")
            visitor.shutdown(socket.SHUT_WR)
        assert {visitor.recv(2) for visitor in visitors} == {b"x"}
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT)
    assert b"1024 connections from outside are open at this published port, which is the limit" in err, err


def test_any_port_is_said(place):
    process = place.start("run", "--publish", "0:3000", "--", *PYTHON, SERVER, "AF_INET", "127.0.0.1", "3000")
    line = process.stderr.readline().decode()
    assert "leads to port 3000 of the command" in line
    assert process.stdout.readline() == b"up\n"
    assert talk(int(line.split("127.0.0.1:")[1].split()[0])).startswith(b"got")
    process.kill()
    process.communicate(timeout=WAIT)


def test_the_result_has_it(place):
    (published,) = place.json("run", "--quiet", "--json", "--publish", "0:3000", "--", "true")["published"]
    assert published.startswith("127.0.0.1:") and published.endswith(":3000") and ":0:" not in published
    assert "published" not in place.json("run", "--json", "--", "true")


def test_it_is_not_for_others_than_the_machine_unless_that_is_said(place):
    port = free_port()
    with serving(place, "--publish", f"{port}:3000"):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.connect(("127.0.0.2", port))
            pytest.fail("127.0.0.2 reaches it")
    port = free_port()
    with serving(place, "--publish", f"0.0.0.0:{port}:3000"):
        assert talk(port, "127.0.0.2").startswith(b"got")
    port = free_port(socket.AF_INET6)
    with serving(place, "--publish", f"[::1]:{port}:3000"):
        assert talk(port, "::1").startswith(b"got")


def test_what_cannot_be_published_is_refused(place):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = refuses(place, "--publish", f"{port}:3000")
        assert f"127.0.0.1:{port} is in use, by" in said and f"(pid {os.getpid()})" in said
    assert "8080:3000" in refuses(place, "--publish", "3000")
    assert "is no address" in refuses(place, "--publish", "somewhere:1:3000")
    assert "below 1024" in refuses(place, "--publish", "8080:80")
    assert "shares this machine's network" in refuses(place, "--network", "enabled", "--publish", "0:3000")
    assert "shares this machine's network" in refuses(place, "--sandbox", "disabled", "--publish", "0:3000")
    assert "leads out here already" in refuses(place, "--host-port", "3000", "--publish", "0:3000")
    port = free_port()
    with serving(place, "--publish", f"{port}:3000"):
        assert "is in use" in refuses(place, "--publish", f"{port}:3000")


def test_another_sandbox_does_not_reach_it(place):
    port = free_port()
    with serving(place, "--publish", f"{port}:3000"):
        for options in (["--allow-host", "*"], ["--allow-host", "*", "--allow-local-binding"], ["--network", "restricted"],
                        ["--host-port", str(free_port())]):
            hosts = ["127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1", "127.1.2.3", "::1", "::"]
            words = [word for host in hosts for word in (host, str(port))]
            ran = place.cordon("run", *options, "--", *PYTHON, CLIENT, *words)
            assert len(ran.stdout.splitlines()) == len(hosts) and "got" not in ran.stdout, (options, ran)


def test_the_command_cannot_have_the_way_in(place):
    """What the launcher has for it is none of the command's: not to be opened, and no descriptor of it."""
    script = """
import ctypes, os, signal
def tried(call):
    try:
        return call()
    except OSError as error:
        return type(error).__name__
print(sorted(os.listdir("/proc/self/fd"))[:3])
init = os.pidfd_open(1)
print({ctypes.CDLL(None).syscall(438, init, fd, 0) for fd in range(10)})  # pidfd_getfd
print({tried(lambda: os.readlink(f"/proc/1/fd/{fd}")) for fd in range(10)} - {"FileNotFoundError"})
"""
    ran = place.cordon("run", "--publish", "0:3000", "--", *PYTHON, script)
    assert ran.stdout.splitlines() == ["['0', '1', '2']", "{-1}", "{'PermissionError'}"], ran


# --- of a session that runs

def test_a_session_publishes(place):
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        def connect(*words):
            return place.cordon("connect", "--connect", server.url, *words)

        with server.client() as client:
            client.start("p1", f"exec {sys.executable} -B -c '{SERVER}' AF_INET 127.0.0.1 3000", sandbox=READ_ONLY)
            got = connect("publish", "p1", "0:3000")
            assert got.returncode == 0, got
            address = got.stderr.split("published: ")[1].strip()
            port = int(address.split(":")[1])
            assert address == f"127.0.0.1:{port}:3000"
            listed = json.loads(connect("ps", "--json").stdout)
            assert [process["published"] for process in listed] == [[address]]
            while True:  # until it listens
                with contextlib.suppress(OSError):
                    if talk(port).startswith(b"got"):
                        break
            again = connect("publish", "p1", f"{port}:3000")
            assert again.returncode != 0 and "in use" in again.stderr
            assert "HOSTPORT" in connect("publish", "p1", "here").stderr
            client.call("process/terminate", {"processId": "p1"})
            wait_until_closed(port)
            client.follow("p1")
            assert json.loads(connect("ps", "--json").stdout)[0]["published"] == []
            assert connect("publish", "p1", "0:3000").returncode != 0


def test_a_profile_publishes(place):
    port = free_port()
    config = place.base / "ports.toml"
    config.write_text(f'default_permissions = "web"\n[permissions.web]\nextends = ":workspace"\n'
                      f'[permissions.web.network]\npublish = ["{port}:3000"]\n')
    with serving(place, "--config", config):
        assert talk(port).startswith(b"got")
    shown = json.loads(place.cordon("explain", "--config", config, "--json").stdout)
    assert shown["network"]["access"] == "restricted"
    assert shown["network"]["publish"] == [f"127.0.0.1:{port}:3000"]


# --- a port of the host

def test_one_port_of_the_host(place):
    with socket.create_server(("127.0.0.1", 0)) as wanted, socket.create_server(("127.0.0.1", 0)) as other:
        wanted.settimeout(WAIT)
        port, no = wanted.getsockname()[1], other.getsockname()[1]
        hosts = ["127.0.0.1", "localhost", "::1"]
        denied = [("127.0.0.1", no), ("::1", no), ("10.0.2.2", port), ("0.0.0.0", no), ("::ffff:127.0.0.1", no), ("::", no)]
        words = [str(word) for pair in [*((host, port) for host in hosts), *denied] for word in pair]
        process = place.start("run", "--host-port", str(port), "--", *PYTHON, CLIENT, *words)
        for _ in hosts:
            client, _ = wanted.accept()
            with client:
                assert client.recv(100) == b"hello\n"
                client.sendall(b"host")
        out, _ = process.communicate(timeout=WAIT)
        lines = out.decode().splitlines()
        assert lines[:3] == ["host"] * 3
        assert len(lines) == 9 and not {"host", "end"} & set(lines[3:]), lines
        for listener in (wanted, other):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()


def test_http2_without_tls_at_a_port_of_the_host(place):
    """As gRPC has it, whose clients speak first."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT)
        port, preface = server.getsockname()[1], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        process = place.start("run", "--host-port", str(port), "--", *PYTHON, CLIENT.replace("hello\\n", preface.encode("unicode_escape").decode()),
                              "localhost", str(port))
        client, _ = server.accept()
        with client, client.makefile("rb") as lines:
            assert lines.read(len(preface)) == preface.encode()
            client.sendall(b"settings")
        assert process.communicate(timeout=WAIT)[0] == b"settings\n"


@pytest.mark.parametrize("network", ["restricted", "proxied"])
def test_a_refused_localhost_says_what_would_help(place, network):
    """Where this machine has a server at that port; else nothing is said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, no = listener.getsockname()[1], free_port()
        script = CLIENT + "sys.exit(1)"
        ran = place.cordon("run", "--json", "--network", network, "--", *PYTHON, script, "localhost", str(port), "127.0.0.1", str(no))
        denials = json.loads(ran.stdout)["denials"]
        assert [(denial["host"], denial["port"]) for denial in denials] == [("127.0.0.1", port)], denials
        assert f"--host-port {port}" in denials[0]["remedy"]


def test_learn_says_which_port_was_wanted(place):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert f"cordon learn --host-port {port}" in place.cordon("learn", "--", *PYTHON, CLIENT, "localhost", str(port)).stdout


@pytest.mark.parametrize("network", ["restricted", "proxied"])
def test_a_refused_localhost_says_that_another_command_has_it(place, network):
    """What is said helps: with both options it is reached."""
    port = free_port()
    client = ["--network", network, "--", *PYTHON, CLIENT + "sys.exit(1)", "localhost", str(port)]
    with serving(place, port=port):
        # The guard looks for 0.1 s, in which it comes past some ten commands: more may live beside this.
        denials, deadline = [], time.monotonic() + WAIT
        while not denials and time.monotonic() < deadline:
            denials = json.loads(place.cordon("run", "--json", *client).stdout)["denials"]
        assert [(denial["host"], denial["port"]) for denial in denials] == [("localhost", port)], denials
        assert f"--publish {port}:{port}" in denials[0]["remedy"] and f"--host-port {port}" in denials[0]["remedy"]
    with serving(place, "--publish", f"{port}:{port}", port=port):
        ran = place.cordon("run", "--host-port", str(port), "--", *PYTHON, CLIENT, "localhost", str(port))
        assert ran.stdout.startswith("got hello"), ran


# --- servers inside

@pytest.mark.parametrize("network", ["restricted", "proxied"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_server_inside(place, network, host):
    script = SERVER.replace('print("up", flush=True)', """
import threading
def client():
    with socket.create_connection((sys.argv[4], int(port))) as server:
        server.sendall(b"hi")
        print(server.recv(100).decode(), flush=True)
    import os
    os._exit(0)
threading.Thread(target=client).start()
""").replace("= sys.argv[1:]", "= sys.argv[1:4]")
    family, address = ("AF_INET6", "::1") if host == "::1" else ("AF_INET", "127.0.0.1")
    ran = place.cordon("run", "--network", network, "--", *PYTHON, script, family, address, "8000", host)
    assert ran.stdout == f"got hi from {address}\n", ran


@where("redis-server", "redis-cli")
@pytest.mark.parametrize("network", ["restricted", "proxied"])
def test_redis_inside(place, network):
    script = """
redis-server --port 6399 --save '' --daemonize no >redis.log & trap "kill $!" EXIT
until redis-cli -p 6399 ping 2>/dev/null; do :; done"""
    ran = place.cordon("run", "--network", network, "--", "sh", "-c", script)
    assert ran.stdout == "PONG\n", ran
