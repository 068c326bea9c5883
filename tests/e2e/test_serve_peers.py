"""Who may be a client of a server that asks for no token: no command of Cordon's, with the network
enabled or without a sandbox, because it could have the next one started outside of its sandbox;
and no other user. Each attack works where the server lets in anybody (--ws-auth anybody)."""
import os
import select
import subprocess

import pytest

from harness import BUILD, CORDON, WAIT
from served import Server, workspace_write
from tools import where
from ws_client import Client, dial, http, read_all, upgrade_head

# A client that has a file made where its sandbox does not let it write, by a command without one.
ATTACK = r"""
import array, base64, json, os, socket, struct, sys
how, url, victim = sys.argv[1:]
host, port = url[len("ws://"):].split(":")

def frame(value):
    text = json.dumps(value).encode().ljust(126)  # a length in two bytes
    return bytes([0x81, 0xfe]) + struct.pack(">H", len(text)) + b"\0\0\0\0" + text

argv = ["/bin/sh", "-c", "echo changed > " + victim]
calls = [{"id": 1, "method": "initialize", "params": {"clientName": "x"}},
         {"method": "initialized", "params": {}},
         {"id": 2, "method": "process/start", "params": {
             "processId": "escape", "argv": argv, "cwd": "file:///", "env": {}, "tty": False}}]
head = ("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + "A" * 22 + "==\r\n\r\n")
sock = socket.create_connection((host, int(port)))
request = head.encode() + b"".join(map(frame, calls))
if how == "hidden":  # the descriptor is in nobody's table while the server looks for it
    here, there = socket.socketpair()
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))])
    sock.sendall(request)
    sock.close()
    for _ in range(4):  # each answered behind a look of its own, or that of the one before
        with socket.create_connection((host, int(port))) as other:
            other.sendall(head.encode())
            other.recv(100)
    sock = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
else:
    sock.sendall(request)
seen = b""
while b"process/exited" not in seen and (more := sock.recv(65536)):
    seen += more
print("sent", seen[:12])
"""


def nonblocking(path, flags):
    return os.open(path, flags | os.O_NONBLOCK)


def enabled(place):
    sandbox = workspace_write(place.ws)
    sandbox["permissions"]["network"] = "enabled"
    return sandbox


def is_changed(server, victim):
    """Whether the attack worked: a call behind it is answered behind it."""
    with server.client() as client:
        client.run("after", "true")
    return victim.exists()


def words(how, server, victim):
    return ["python3", "attack.py", how, server.url, str(victim)]


@pytest.fixture
def victim(place):
    (place.ws / "attack.py").write_text(ATTACK)
    return place.outside / "victim"


@pytest.mark.parametrize("anybody", [True, False], ids=["anybody", "by-default"])
@pytest.mark.parametrize("how", ["plain", "hidden"])
def test_a_command_with_the_network_cannot_be_a_client(place, victim, how, anybody):
    options = ["--ws-auth", "anybody"] if anybody else []
    os.mkfifo(victim)  # so that it can be waited for
    with Server(place, *options) as server, server.client() as client, \
            open(victim, "rb", opener=nonblocking) as fifo:
        ended = client.run("a", words(how, server, victim), sandbox=enabled(place))
        assert ended.output.startswith(b"sent"), ended.output
        if anybody:
            assert select.select([fifo], [], [], WAIT)[0] and fifo.read() == b"changed\n", ended.output
        else:
            client.run("after", "true")  # is answered behind what the attack asked for
            assert "peer-refused" in server.logged()
            assert not select.select([fifo], [], [], 0)[0]


def test_nor_can_one_without_a_sandbox(place, victim):
    with Server(place) as server, server.client() as client:
        assert b"HTTP/1.1 403" in client.run("a", words("plain", server, victim)).output
        assert not is_changed(server, victim)


@pytest.mark.parametrize("listen", ["ws://127.0.0.1:0", "unix:"])
def test_nor_can_one_of_another_cordon(place, victim, listen):
    place.config('[permissions.net]\nextends = ":workspace"\n[permissions.net.network]\nenabled = true\n')
    listen = f"unix:{place.ws}/socket" if listen == "unix:" else listen
    with Server(place, listen=listen) as server:
        ask = [CORDON, "--connect", server.url, "run", "--profile", "danger-full-access", "--", "sh", "-c",
               f"echo changed > {victim}"]
        bare = subprocess.run(list(map(str, ask)), env=place.env, timeout=WAIT, check=False)
        assert bare.returncode == 0 and victim.exists()
        victim.unlink()
        ran = place.run("--profile", "net", "--", *ask)
        assert ran.returncode != 0 and not is_changed(server, victim), ran


def test_nor_can_one_whose_guard_connects(place, victim):
    """With a restricted network a socket in the workspace is connected to by the guard, which is in no sandbox."""
    with Server(place, listen=f"unix:{place.ws}/socket") as server:
        ran = place.run("--", CORDON, "--connect", server.url, "run", "--profile", "danger-full-access", "--", "sh", "-c",
                        f"echo changed > {victim}")
        assert ran.returncode != 0 and not is_changed(server, victim), ran


def test_nor_can_another_user(place):
    if os.geteuid() != 0:  # nobody else to be
        return
    connect = (f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
               "import encodings.idna, os\nfrom ws_client import Client, Refused\n"
               "os.setgroups([]); os.setresgid(64999, 64999, 64999); "
               "os.setresuid(64999, 64999, 64999)\n"
               "try:\n    Client.connect(sys.argv[1]).close(); print('in')\n"
               "except Refused as refused:\n    print(refused.status)\n")
    for options, says in ((["--ws-auth", "anybody"], "in"), ([], "403")):
        with Server(place, *options) as server:
            ran = subprocess.run(["/usr/bin/python3", "-c", connect, server.url], capture_output=True,
                                 text=True, timeout=WAIT, check=False)
            assert ran.stdout.strip() == says, ran


COMES = """
import base64, os, socket, sys
host, _, port = sys.argv[1][5:].rpartition(":")
sock = socket.create_connection((host, int(port)))
sock.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
             b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: " + base64.b64encode(os.urandom(16)) + b"\\r\\n\\r\\n")
print(sock.recv(12)[9:].decode())
"""


def test_nor_can_root_at_another_users_server(place):
    """Whose descriptors that server cannot see: a command in root's sandbox would be let in with it."""
    if os.geteuid() != 0:
        return
    program = os.open(BUILD / "tests/unit/rpc/rpc_echo", os.O_PATH)  # that user may not come to the build
    server = subprocess.Popen([f"/proc/self/fd/{program}", "ws://127.0.0.1:0"], stdout=subprocess.PIPE,
                              pass_fds=[program], user=64999, group=64999, extra_groups=[])
    place.cleanup.callback(server.wait)
    place.cleanup.callback(server.kill)
    url = server.stdout.readline().decode().strip()
    for who, says in ((0, "403"), (64999, "101")):
        ran = subprocess.run(["/usr/bin/python3", "-c", COMES, url], capture_output=True, text=True, timeout=WAIT,
                             check=False, user=who, group=who, extra_groups=[], cwd="/")
        assert ran.stdout.strip() == says, ran


# A process connects and ends; when the server looks, its number is that of an innocent one.
USED_AGAIN = r"""
import os, signal, socket, subprocess, sys, time
cordon, path = sys.argv[1:]
server = subprocess.Popen([cordon, "serve", "--listen", "unix:" + path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
server.stdout.readline()
hello = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}\n'
for again in (False, True):
    os.kill(server.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, server.pid, os.WSTOPPED | os.WNOWAIT)
    sock = socket.socket(socket.AF_UNIX)
    go, stay = os.pipe()
    child = os.fork()
    if child == 0:
        sock.connect(path)
        if again:
            os._exit(0)
        os.close(stay)
        os.read(go, 1)
        os._exit(0)
    os.close(go)
    if again:
        os.waitpid(child, 0)
        with open("/proc/sys/kernel/ns_last_pid", "w") as last:
            last.write(str(child - 1))
        innocent = subprocess.Popen(["sleep", "60"])
        assert innocent.pid == child
    else:
        while True:
            try:
                sock.getpeername()
                break
            except OSError:
                os.sched_yield()
    os.kill(server.pid, signal.SIGCONT)
    try:
        sock.sendall(hello)
        print(bool(sock.recv(100)), flush=True)
    except OSError:
        print(False, flush=True)
    if not again:
        os.close(stay)
        os.waitpid(child, 0)
server.kill()
"""


@where("unshare")
def test_nor_can_one_by_a_number_that_was_used_before(place):
    if os.geteuid() != 0 or not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK):
        return  # numbers cannot be chosen
    ran = subprocess.run(["unshare", "-pf", "--mount-proc", "--kill-child", "python3", "-c", USED_AGAIN,
                          str(CORDON), f"{place.base}/s"], env=place.env, capture_output=True, text=True,
                         timeout=WAIT, check=False)
    assert ran.stdout.split() == ["True", "False"], ran


def test_foreign_names_and_the_figures_stay_outside(place, victim):
    """A page whose name was made to lead here brings it along; the figures are for who may connect."""
    with Server(place) as server, server.client() as client:
        for host, status in (("evil.example", 403), ("evil.example:80", 403), ("127.0.0.1.evil.example", 403),
                             ("localhost.evil", 403), ("[::1", 403), ("", 403), ("localhost", 200), ("LOCALHOST:1", 200),
                             ("127.0.0.1:99", 200), ("[::1]:99", 200), ("10.0.0.1", 200)):
            for path in ("/metrics", "/healthz"):
                request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
                assert http(server.url, request.encode()).status == status, host
        assert b"403" in read_refusal(server, upgrade_head(host="evil.example"))
        ended = client.run("a", ["python3", "-c", FIGURES, server.url], sandbox=enabled(place))
        assert ended.output.startswith(b"HTTP/1.1 403"), ended.output


FIGURES = """
import socket, sys
host, _, port = sys.argv[1][5:].rpartition(":")
sock = socket.create_connection((host, int(port)))
sock.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
print(sock.makefile().read())
"""


def read_refusal(server, head):
    with dial(server.url) as sock:
        sock.sendall(head)
        return read_all(sock)


def test_the_users_own_processes_can(place):
    with Server(place) as server:
        Client.connect(server.url).close()
        nested = ["sh", "-c", 'setsid "$@"; exit', "sh", str(CORDON), "--connect", server.url, "ps"]
        assert subprocess.run(nested, env=place.env, timeout=WAIT, check=False).returncode == 0


def test_anybody_is_not_for_other_hosts(place):
    ran = place.cordon("serve", "--listen", "ws://0.0.0.0:0", "--ws-auth", "anybody")
    assert ran.returncode == 1 and "token" in ran.stderr


def test_a_refusal_says_why(place, victim):
    with Server(place) as server, server.client() as client:
        script = ("import sys; sys.path.insert(0, sys.argv[2])\nfrom ws_client import *\n"
                  "try:\n    Client.connect(sys.argv[1])\nexcept Refused as refused:\n"
                  "    print(refused.status, refused.reply.body.decode())\n")
        ended = client.run("a", ["python3", "-c", script, server.url, os.path.dirname(__file__)])
        assert ended.output.startswith(b"403 ") and b"--ws-auth" in ended.output
        assert "peer-refused" in server.logged()


# --- many at once: one look at /proc serves all who wait ---

CROWD = 60

CROWD_COMMAND = """
import sys
sys.path.insert(0, sys.argv[2])
from ws_client import dial, upgrade_head
socks = [dial(sys.argv[1]) for _ in range(int(sys.argv[3]))]
print("ready", flush=True)
for sock in socks:
    sock.sendall(upgrade_head())
print([sock.recv(12)[9:].decode() for sock in socks])
"""


def knock(server):
    """Connections whose heads are sent; nothing of the answers is read yet."""
    socks = [dial(server.url) for _ in range(CROWD)]
    for sock in socks:
        sock.sendall(upgrade_head())
    return socks


def statuses(socks):
    answers = [sock.recv(12)[9:].decode() for sock in socks]
    for sock in socks:
        sock.close()
    return answers


def test_everybody_in_a_crowd_is_judged_by_themselves(place):
    with Server(place) as server, server.client() as client:
        client.start("a", ["python3", "-c", CROWD_COMMAND, server.url, os.path.dirname(__file__),
                           str(CROWD)])
        client.output_until("a", b"ready")
        assert statuses(knock(server)) == ["101"] * CROWD
        assert client.follow("a").output.strip().decode() == str(["403"] * CROWD)


def test_who_leaves_the_crowd_takes_nobody_along(place):
    with Server(place) as server:
        socks = knock(server)
        for sock in socks[::2]:
            sock.close()
        assert statuses(socks[1::2]) == ["101"] * (CROWD // 2)
        server.client().close()


def test_a_server_can_be_stopped_while_a_crowd_waits(place):
    server = Server(place)
    socks = knock(server)
    assert server.stop() == 0
    for sock in socks:
        assert read_all(sock)[9:12] in (b"", b"101")
        sock.close()
