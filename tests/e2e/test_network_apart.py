"""Commands of one server whose networks are proxied by one program: each has its own policy, names and connections, whatever the
others do; and what is left when any of the programs around them is killed."""
import contextlib
import json
import os
import select
import signal
from pathlib import Path

import pytest

from harness import WAIT, family, finish
from world import World

PYTHON = "/usr/bin/python3"
GET = [PYTHON, "-c", "import urllib.request as u; u.urlopen('http://good.test/').read()"]
# Asks for what is its own, and for all that may be others': names, addresses of the pool, the proxy itself. Every command
# waits until all are there.
ASKS = """
import os, socket, sys, time
own, names = sys.argv[1], sys.argv[2:]
def ask(address, name, head=b""):
    try:
        sock = socket.create_connection((address, 80 if not head else 1008), 20)
        sock.sendall(head + f"GET /by-{own} HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        got = b""
        while more := sock.recv(65536):
            got += more
        return b"by-" + own.encode() in got
    except OSError:
        return False
assert ask(own, own)
os.close(os.open("is-here-" + own, os.O_CREAT))
while not all(os.path.exists("is-here-" + name) for name in names):
    time.sleep(0.01)
for name in names:
    assert ask(name, name) == (name == own), name
    assert ask("127.0.0.1", name, f"CONNECT {name}:80 HTTP/1.1\\r\\nHost: {name}:80\\r\\n\\r\\n".encode()) == (name == own), name
    for last in range(1, len(names) + 2):
        assert not ask(f"198.18.0.{last}", name) or name == own, (last, name)
assert ask(own, own)
"""
HOLDS = """
import socket, sys
def say(sock):
    try:
        sock.sendall(b"x")
        return sock.recv(1)
    except OSError:
        return b""
sock = socket.create_connection(("good.test", 7))
assert say(sock) == b"x"
print("there", flush=True)
sys.stdin.read(1)
print(say(sock), flush=True)
for where in (("good.test", 7), ("11.0.0.1", 7), ("11.0.0.2", 7), ("evil.test", 7)):
    try:
        print(say(socket.create_connection(where)), flush=True)
    except OSError:
        print(b"", flush=True)
sys.exit(1)
"""
SPILLS = """
import socket, struct
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect(("127.0.0.1", 53))
sock.settimeout(20)
for number in range(800):
    label = f"{number:060}".encode()
    sock.send(struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + label + b"\\5spill\\4test\\0\\0\\1\\0\\1")
    sock.recv(512)
raise SystemExit(1)
"""


def server(world, place, *options, **kwargs):
    serving = world.start("serve", "--listen", f"unix:{place.base}/serve.sock", *options, **kwargs)
    serving.stdout.readline()
    return serving, f"unix:{place.base}/serve.sock"


FLOODS = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept = []
address = socket.gethostbyname("good.test")
for _ in range(1100):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex((address, 80))
    kept.append(sock)
for sock in kept[-70:]:  # which are ended at once, whatever the others wait for
    sock.setblocking(True)
    try:
        assert sock.recv(1) == b""
    except OSError:
        pass
print("there", flush=True)
sys.stdin.read(1)
sys.exit(1)
"""
STREAMS = """
import socket
open_ones = [socket.create_connection(("8.8.8.8", 53)) for _ in range(33)]
open_ones[-1].recv(1)
raise SystemExit(1)
"""


def test_commands_of_one_server_are_kept_apart(place):
    (place.ws / "asks.py").write_text(ASKS)
    with World(place) as world:
        names = [f"n{number}.test" for number in range(6)]
        world.names |= {name: ["11.0.0.1"] for name in names}
        world.tell_names()
        _, url = server(world, place)
        running = [place.start("--connect", url, "run", "--allow-host", name, "--", PYTHON, "asks.py", name, *names) for name in names]
        for process in running:
            finish(process, 0)
        by = [(event["path"], event["host"]) for event in world.arrived("http")]
        assert {host for _, host in by} == set(names) and all(path == f"/by-{host}" for path, host in by), by


HELD = """
default_permissions = "held"
[permissions.held]
extends = ":workspace"
[permissions.held.network]
mode = "full"
publish = ["0:3000"]
[permissions.held.network.domains]
"good.test" = "allow"
[permissions.held.network.credentials]
TOKEN = ["good.test"]
"""


def files(folder):
    return set(folder.rglob("*"))


def control_groups(pids):
    """Of Cordon's, by their ends."""
    lines = {line for pid in pids for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()}
    return {path for path in (line.split(":", 2)[2] for line in lines) if "cordon" in path}


@pytest.mark.parametrize("how", ["run", "serve"])
@pytest.mark.parametrize("who", ["cordon-proxy", "cordon-tls", "cordon-linux-sa", "cordon-guard", "top", "all"])
def test_what_is_killed_leaves_nothing(place, how, who):
    (place.ws / "holds.py").write_text(HOLDS)
    config = place.base / "held.toml"
    config.write_text(HELD)
    token = {"TOKEN": "tok-4711-0123456789"}
    with World(place) as world:
        assert world.run("--config", config, "--", *GET, env=token).returncode == 0
        before = files(place.base)
        if how == "run":
            top = process = world.start("run", "--config", config, "--", PYTHON, "holds.py", env=token)
        else:
            top, url = server(world, place, "--config", config, env=token)
            process = place.start("--connect", url, "run", "--", PYTHON, "holds.py")
        assert process.stdout.readline() == b"there\n", process.stderr.read()
        around = family(top.pid)
        assert {"cordon-proxy", "cordon-tls", "cordon-guard", "cordon-linux-sa"} <= set(around.values()), around
        inside = next(pid for pid, name in around.items() if name == "python3")
        network = os.open(f"/proc/{inside}/ns/net", os.O_RDONLY)  # kept, or another could have its number
        ends, groups = [os.pidfd_open(pid) for pid in around], control_groups(around)
        arrived = len(world.arrived())
        for pid, name in around.items():
            if who in ("all", name) or (who == "top" and pid == top.pid):
                with contextlib.suppress(ProcessLookupError):  # it went with another
                    os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(b"x", timeout=WAIT)
        assert process.returncode
        if who == "cordon-proxy":
            assert out == b"b''\n" * 5 and b"the program that leads to the network has died" in err, (out, err)
        # Before the kernel has ended it, it may say what it may say: on the connection that it had, and on one more.
        arrived = world.arrived()[arrived:]
        assert len(arrived) <= (0 if who == "cordon-proxy" else 3) and {event["server"] for event in arrived} <= {"echo"}, arrived
        if top.poll() is None:
            top.terminate()
            top.communicate(timeout=WAIT)
        for end in ends:
            assert select.select([end], [], [], WAIT)[0]
            os.close(end)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                assert os.stat(f"/proc/{pid}/ns/net").st_ino != os.fstat(network).st_ino, pid
            except OSError:
                pass
        os.close(network)
        # What a kill leaves is gone with the next: the certificate, the server's socket, control groups.
        if how == "serve":
            again, _ = server(world, place, "--config", config, env=token)
            again.terminate()
            again.communicate(timeout=WAIT)
        assert world.run("--config", config, "--", *GET, env=token).returncode == 0
        assert not list((place.home / ".cache/cordon/ca").iterdir())
        of_commands = ("world", "tmp")  # the test's internet; the command's own /tmp and /var/tmp
        left = {path for path in files(place.base) - before if not set(of_commands) & set(path.relative_to(place.base).parts)}
        left |= {path for path, _, _ in os.walk("/sys/fs/cgroup") if path.endswith(tuple(groups))}
        assert not left


def test_a_server_has_another_proxy_when_one_dies(place):
    (place.ws / "holds.py").write_text(HOLDS)
    with World(place) as world:
        serving, url = server(world, place)
        run = ["--connect", url, "run", "--allow-host", "good.test", "--"]
        process = place.start(*run, PYTHON, "holds.py")
        assert process.stdout.readline() == b"there\n"
        proxy, = [pid for pid, name in family(serving.pid).items() if name == "cordon-proxy"]
        os.kill(proxy, signal.SIGKILL)
        ran = place.cordon(*run, *GET)  # while the other one is still there
        assert ran.returncode == 0, ran
        out, err = process.communicate(b"x", timeout=WAIT)
        assert out == b"b''\n" * 5 and b"has died" in err, (out, err)


def test_what_names_can_tell_is_bounded(place):
    """All below a name is allowed, and its owner sees what is asked: some of it, and the user is told."""
    (place.ws / "spills.py").write_text(SPILLS)
    with World(place) as world:
        ran = world.run("--json", "--allow-host", "**.spill.test", "--", PYTHON, "spills.py")
        told = json.dumps(json.loads(ran.stdout)["denials"])
        assert "more than 32 different names a second, which is the limit" in told, told
        seen = {event["name"] for event in world.arrived("dns")}
        assert 512 <= len(seen) < 800, len(seen)


def test_connections_to_the_resolver_have_a_ceiling(place):
    (place.ws / "streams.py").write_text(STREAMS)
    with World(place) as world:
        ran = world.run("--allow-host", "good.test", "--", PYTHON, "streams.py")
        assert "32 connections of the command to the resolver are open, which is the limit" in ran.stderr, ran


def test_a_flood_is_its_own_commands(place):
    (place.ws / "floods.py").write_text(FLOODS)
    with World(place) as world:
        _, url = server(world, place)
        run = ["--connect", url, "run", "--allow-host", "good.test", "--", PYTHON]
        process = place.start(*run, "floods.py")
        assert process.stdout.readline() == b"there\n"
        ran = place.cordon(*run[:-1], *GET)
        assert ran.returncode == 0, ran
        _, err = process.communicate(b"x", timeout=WAIT)
        assert b"1024 connections" in err, err
