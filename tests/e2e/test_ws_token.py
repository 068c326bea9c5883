"""The user's token: what a WebSocket listener wants to see by default (cordon-serve(1), --ws-auth),
that Cordon's own clients find it, and that it gets to nobody else: not to a command, not to who has
taken the port, not from a file that others may have made."""
import asyncio
import base64
import hashlib
import hmac
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from harness import CORDON, TOP, WAIT
from served import READ_ONLY, Server, uri, workspace_write
from test_serve_operation import reload
from ws_client import Client, Refused, dial, http, http_get, upgrade_head

sys.path.insert(0, str(TOP / "clients/python"))

import cordon  # noqa: E402

TOKEN_FILE = ".config/cordon/private/ws-token"
NODE = shutil.which("node")


class TokenServer(Server):
    """As a user starts it; `token` is what it made, or found."""

    def __init__(self, place, *options, **kwargs):
        super().__init__(place, "--ws-auth", "user-token", *options, **kwargs)
        self.file = place.home / TOKEN_FILE
        self.token = self.file.read_text().strip()
        self.port = int(self.url.rpartition(":")[2])


def url64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(token, address, expires=30):
    text = ".".join(url64(json.dumps(part).encode()) for part in (
        {"alg": "HS256"}, {"aud": address, "exp": time.time() + expires}))
    return f"{text}.{url64(hmac.new(token.encode(), text.encode(), hashlib.sha256).digest())}"


def status(url, token=None):
    try:
        Client.connect(url, token=token).close()
    except Refused as refused:
        return refused.status
    return 101


# --- who gets in ---

def test_a_server_makes_a_token_and_asks_for_it(place):
    process = place.start("serve", "--listen", "ws://127.0.0.1:0", stderr=subprocess.PIPE)
    url = process.stdout.readline().decode().strip()
    file = place.home / TOKEN_FILE
    token = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    with pytest.raises(Refused) as refused:
        Client.connect(url)
    assert refused.value.status == 401
    assert refused.value.reply.body.endswith(b"--ws-auth own-processes")  # the remedy
    assert status(url, token) == 101  # of a client that knows no better
    process.terminate()
    said = process.communicate(timeout=WAIT)[1].decode()
    assert f"ws-auth mode=user-token file={file}" in said and token not in said


@pytest.mark.no_userns
def test_none_is_made_where_no_sandbox_could_hide_it(place):
    """Commands of the server run there as they did before, by `--profile read-only`."""
    process = place.start("serve", "--listen", "ws://127.0.0.1:0", stderr=subprocess.PIPE)
    url = process.stdout.readline().decode().strip()
    has_namespaces = place.cordon("run", "--deny", "/usr/share", "--", "true").returncode == 0
    assert (place.home / TOKEN_FILE).exists() == has_namespaces
    if not has_namespaces:
        assert status(url) == 101
    process.terminate()
    said = process.communicate(timeout=WAIT)[1].decode()
    assert ("no-user-token" in said) != has_namespaces
    assert f"mode={'user-token' if has_namespaces else 'own-processes'}" in said
    assert place.cordon("run", "-p", "read-only", "--", "true").returncode == 0


def test_it_is_kept(place):
    with TokenServer(place) as first:
        pass
    with TokenServer(place) as second:
        assert first.token == second.token and status(second.url, second.token) == 101


def test_what_does_not_get_in(place):
    with TokenServer(place) as server:
        port = server.port
        for token in (None, "", server.token[:-1], server.token + "x", server.token.upper() + "Z",
                      signed("x" * 64, server.url), signed(server.token, f"ws://127.0.0.1:{port + 1}"),
                      signed(server.token, f"ws://127.0.0.2:{port}"), signed(server.token, f"ws://localhost:{port}"),
                      signed(server.token, server.url, expires=-120), signed(server.token, server.url) + "A"):
            assert status(server.url, token) == 401, token
        assert status(server.url, signed(server.token, server.url)) == 101
        assert http_get(server.url, "/metrics").status == 401
        assert http_get(server.url, "/metrics", fields={"Authorization": f"Bearer {server.token}"}).status == 200
        assert http_get(server.url, "/healthz").status == 200


def connect_by_c(place, url, *options):
    ran = place.cordon("--connect", url, *options, "ps")
    return ran.returncode, ran.stderr


def connect_by_python(place, url, **options):
    async def go():
        async with cordon.connect(url, reconnect_for=0, **options) as client:
            assert client.session_id
    home = os.environ.get("HOME")
    try:
        os.environ["HOME"] = place.env["HOME"]
        asyncio.run(go())
    except cordon.Error as error:
        return 1, str(error)
    finally:
        os.environ.pop("HOME") if home is None else os.environ.update(HOME=home)
    return 0, ""


def connect_by_node(place, url, **options):
    script = ("import { connect } from './src/index.js';\n"
              "try { await (await connect(process.argv[1], { reconnectForMs: 0, ...JSON.parse(process.argv[2]) })).close(); }\n"
              "catch (error) { console.error(error.message); process.exit(1); }\n")
    ran = subprocess.run([NODE, "--input-type=module", "-e", script, url, json.dumps(options)], text=True,
                         cwd=TOP / "clients/typescript", capture_output=True, timeout=WAIT, env=place.env, check=False)
    return ran.returncode, ran.stderr


CLIENTS = [connect_by_c, connect_by_python] + ([connect_by_node] if NODE else [])


@pytest.mark.parametrize("connect", CLIENTS)
def test_own_clients_find_it(place, connect):
    with TokenServer(place) as server:
        assert connect(place, server.url) == (0, "")
        assert "peer-refused" not in server.logged()


@pytest.mark.parametrize("connect", CLIENTS)
def test_a_client_can_be_told_that_there_is_none(place, connect):
    """Where a token is, who listens has to know it; another exec server is one that does not."""
    TokenServer(place).stop()
    with Server(place) as other:
        code, said = connect(place, other.url)
        assert code and "does not know your token" in said
        told = ["--auth-token-file", "none"] if connect is connect_by_c else []
        known = {} if connect is connect_by_c else {"token": ""}
        assert connect(place, other.url, *told, **known) == (0, "")


def test_the_configuration_can_say_that_none_is_needed(place):
    place.config('ws_auth = "own-processes"\n')
    process = place.start("serve", "--listen", "ws://127.0.0.1:0", stderr=subprocess.PIPE)
    assert status(process.stdout.readline().decode().strip()) == 101
    process.terminate()
    assert b"ws-auth mode=own-processes" in process.communicate(timeout=WAIT)[1]
    assert not (place.home / TOKEN_FILE).exists()
    with TokenServer(place) as server:  # what is said with the command counts
        assert status(server.url) == 401
    place.config('ws_auth = "own-process"\n')
    ran = place.cordon("serve", "--listen", "ws://127.0.0.1:0")
    assert ran.returncode == 1 and 'did you mean "own-processes"?' in ran.stderr


def test_a_socket_of_systemds_is_held_to_it(place):
    code = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ['LISTEN_PID'] = str(os.getpid()); "
            "os.execv(sys.argv[2], sys.argv[2:])")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        place.start("-c", code, listener.fileno(), CORDON, "serve", program="/usr/bin/python3",
                    pass_fds=[listener.fileno()], env={"LISTEN_FDS": "1"}, stderr=subprocess.DEVNULL)
        assert status(url) == 401  # behind the start, so there is a token now
        assert status(url, (place.home / TOKEN_FILE).read_text().strip()) == 101


def test_unix_sockets_and_pipes_need_none(place):
    with Server(place, listen=f"unix:{place.base}/s") as server:
        server.client().close()
        assert connect_by_c(place, server.url) == (0, "")
        assert "ws-auth" not in server.logged()
    process = place.start("serve", "--listen", "stdio", stdin=subprocess.DEVNULL)
    assert process.wait(WAIT) == 0
    assert not (place.home / ".config").exists()


def test_a_listener_for_other_hosts_has_to_be_told_its_token(place):
    ran = place.cordon("serve", "--listen", "ws://0.0.0.0:0")
    assert ran.returncode == 1 and "--ws-auth capability-token" in ran.stderr


# --- a new one ---

def test_a_deleted_token_counts_until_the_server_is_told(place):
    with TokenServer(place) as server:
        client = server.connect(token=server.token).initialize()
        server.file.unlink()
        assert status(server.url, server.token) == 101  # it goes on with what it knows
        assert "changed=true" in reload(server, client, f"reloaded what=--ws-auth file={server.file}")
        fresh = server.file.read_text().strip()
        assert fresh != server.token
        assert status(server.url, server.token) == 401 and status(server.url, fresh) == 101
        assert connect_by_c(place, server.url) == (0, "")
        assert client.run("a", "echo still here").output == b"still here\n"


# --- what a command can do ---

LOOK = r"""
cat $1 /proc/self/root$1 2>/dev/null; cd ${1%/*} 2>/dev/null && cat ws-token; ls -R ${1%/*/*} | grep ws-token
ln $1 $2/hard && cat $2/hard; ln -s ${1%/*} $2/soft && cat $2/soft/ws-token; cp -r ${1%/*/*} $2/copy; cat $2/copy/*/*
mv ${1%/*} $2/moved; mv ${1%/*/*} $2/moved; rm -r ${1%/*}; echo mine > $1; chmod 777 ${1%/*}
find / \( -path /usr -o -path /sys \) -prune -o -name ws-token -type f -exec cat {} + 2>/dev/null
"""


@pytest.mark.parametrize("flags", [[], ["--readable", "FILE"], ["--readable", "FOLDER"], ["-w", "FILE"], ["-w", "FOLDER"],
                                   ["-C", "HOME"], ["-C", "HOME", "--network", "enabled"], ["--profile", "read-only"]],
                         ids=" ".join)
def test_no_command_sees_it(place, flags):
    with TokenServer(place) as server:
        words = {"FILE": server.file, "FOLDER": server.file.parent, "HOME": place.home}
        (place.home / "out").mkdir()
        look = ["sh", "-c", LOOK, "sh", server.file, place.tmp]
        ran = place.run(*[str(words.get(flag, flag)) for flag in flags], "--", *look)
        assert server.token not in ran.stdout + ran.stderr, ran
        assert server.file.read_text().strip() == server.token
        assert not any(server.token in path.read_text() for folder in (place.ws, place.tmp, place.outside)
                       for path in folder.rglob("*") if path.is_file())
    bare = subprocess.run(["cat", server.file], capture_output=True, text=True, check=True)
    assert bare.stdout.strip() == server.token


def test_no_command_of_the_server_sees_it_whatever_home_it_is_given(place):
    with TokenServer(place) as server:
        client = server.connect(token=server.token).initialize()
        for i, sandbox in enumerate((READ_ONLY, workspace_write(place.ws), workspace_write(place.home))):
            for home in (place.home, place.ws):
                ended = client.run(f"{i}{home.name}", f"HOME={home}; cat ~/{TOKEN_FILE} {server.file}; true",
                                   sandbox=sandbox, env={"HOME": str(home), "CORDON_HOME": str(place.ws)})
                assert ended.code == 0 and server.token.encode() not in ended.output
        with pytest.raises(Exception, match="-32"):
            client.call("fs/readFile", {"path": uri(server.file), "sandbox": READ_ONLY})


def test_one_that_is_made_later_is_not_seen_either(place):
    """By a server that was there before, on a Unix socket."""
    with Server(place, listen=f"unix:{place.base}/s") as old:
        with old.client() as client:
            assert client.run("a", f"cat ~/{TOKEN_FILE}", sandbox=READ_ONLY, env={"HOME": str(place.home)}).code
        with TokenServer(place) as server, old.client() as client:
            ended = client.run("b", f"cat {server.file}; true", sandbox=READ_ONLY)
            assert server.token.encode() not in ended.output


HERE = os.path.dirname(__file__)
KNOCK = """
import sys
sys.path.insert(0, sys.argv[1])
from ws_client import Client, Refused
for token in sys.argv[3:]:
    try:
        Client.connect(sys.argv[2], token=token or None)
        print("in")
    except Refused as refused:
        print(refused.status)
"""


def test_a_command_that_was_told_it_is_refused_all_the_same(place):
    """The token alone is not enough: whose process it is counts as before."""
    with TokenServer(place) as server:
        knock = ["python3", "-c", KNOCK, HERE, server.url]
        tokens = [server.token, signed(server.token, server.url), ""]
        bare = subprocess.run([*knock, *tokens], capture_output=True, text=True, timeout=WAIT, check=True)
        assert bare.stdout.split() == ["in", "in", "401"]
        ran = place.run("--network", "enabled", "--readable", HERE, "--", *knock, *tokens)
        assert ran.stdout.split() == ["403", "403", "401"], ran
        # nor by Cordon's own client, which finds no token and says why
        ran = place.run("--network", "enabled", "--", CORDON, "--connect", server.url, "run", "--", "true")
        assert ran.returncode and "does without" in ran.stderr, ran
        ran = place.run("--network", "enabled", "--", CORDON, "--connect", server.url, "--auth-token-file", "none", "ps")
        assert ran.returncode and "the right token" in ran.stderr, ran


@pytest.mark.parametrize("flags", [["--profile", "danger-full-access"], ["--sandbox", "disabled"],
                                   ["--network", "enabled", "--readable", HERE]], ids=lambda flags: flags[1])
def test_a_command_that_can_read_it_is_refused_all_the_same(place, flags):
    """It has no sandbox for files, or began before there was a token."""
    script = 'read url; python3 -c "$1" "$2" $url "$(cat $3 || cat $4)"'
    (place.home / ".config/cordon").mkdir(parents=True)
    command = place.start("run", *flags, "--", "sh", "-c", "echo begun; " + script, "sh", KNOCK, HERE,
                          place.home / TOKEN_FILE, "/dev/null")
    assert command.stdout.readline() == b"begun\n"
    with TokenServer(place) as server:
        out, err = command.communicate(f"{server.url}\n".encode(), timeout=WAIT)
        assert out.strip() == b"403", (out, err)


# --- who has taken the port ---

class Squatter:
    """Takes what clients send, and answers what `relay` (a URL) answers to it, or that all is well."""

    def __init__(self, place, relay=None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        place.cleanup.callback(self.listener.close)
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.relay, self.seen, self.answers = relay, [], []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            with sock:
                head = b""
                while b"\r\n\r\n" not in head and (more := sock.recv(65536)):
                    head += more
                self.seen.append(head)
                self.answers.append(self.answer(head))
                sock.sendall(self.answers[-1])

    def answer(self, head):
        if self.relay:
            with dial(self.relay) as server:
                server.sendall(head)
                return server.recv(65536)
        key = head.partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        return (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
                b"Cordon-Proof: " + base64.b64encode(bytes(32)) + b"\r\n"
                b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")


@pytest.mark.parametrize("connect", CLIENTS)
def test_who_has_taken_the_port_learns_nothing(place, connect):
    with TokenServer(place) as server:
        squatter = Squatter(place)
        code, said = connect(place, squatter.url)
        assert code and "does not know your token" in said
        assert len(squatter.seen) == 1 and b"Authorization: Bearer " in squatter.seen[0]
        assert server.token.encode() not in squatter.seen[0]
        proof = squatter.seen[0].partition(b"Authorization: Bearer ")[2].partition(b"\r\n")[0].decode()
        assert status(server.url, proof) == 401  # good for the port that it was meant for


@pytest.mark.parametrize("connect", CLIENTS)
def test_nor_can_it_stand_in_between(place, connect):
    with TokenServer(place) as server:
        squatter = Squatter(place, relay=server.url)
        code, said = connect(place, squatter.url)
        assert code and said and squatter.answers[0].startswith(b"HTTP/1.1 401 ")


def test_other_hosts_get_nothing_unless_told(place):
    """An address that is not loopback: neither token nor proof is sent by itself."""
    with TokenServer(place):
        outward = socket.create_server(("0.0.0.0", 0))
        place.cleanup.callback(outward.close)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
                host = probe.getsockname()[0]
            except OSError:
                return  # a machine without a network has no such address
        seen = []

        def take():
            with outward.accept()[0] as sock:
                seen.append(sock.recv(65536))

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        connect_by_c(place, f"ws://{host}:{outward.getsockname()[1]}")
        taker.join(WAIT)
        assert seen and b"Authorization" not in seen[0]


# --- what is not believed ---

def make_link(file):
    shutil.move(file, file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def make_fifo(file):
    file.unlink()
    os.mkfifo(file, 0o600)


def make_folder_link(file):
    shutil.move(file.parent, file.parent.parent / "elsewhere")
    file.parent.symlink_to(file.parent.parent / "elsewhere")


def make_empty(file):
    file.write_text(" \n")


@pytest.mark.parametrize("spoil", [make_link, make_fifo, make_folder_link, make_empty, lambda file: file.chmod(0o644),
                                   lambda file: file.parent.chmod(0o755)],
                         ids=["link", "fifo", "folder-link", "empty", "mode", "folder-mode"])
def test_a_token_that_others_may_know_or_have_made_is_refused(place, spoil):
    with TokenServer(place) as server:
        spoil(server.file)
        for connect in CLIENTS:
            code, said = connect(place, server.url)
            assert code and "private" in said and "remove it, and the next server makes a new one" in said, said
        ran = place.cordon("serve", "--listen", "ws://127.0.0.1:0")
        assert ran.returncode == 1 and "--ws-auth" in ran.stderr and "remove it" in ran.stderr
        assert server.token not in ran.stderr


def test_without_a_home_there_is_another_way(place):
    nowhere = {"HOME": str(place.base / "nowhere")}
    ran = place.cordon("serve", "--listen", "ws://127.0.0.1:0", env=nowhere)
    assert ran.returncode == 1 and "home directory" in ran.stderr and "--ws-auth own-processes" in ran.stderr, ran
    with Server(place, "--ws-auth", "own-processes", env=nowhere) as server:
        Client.connect(server.url).close()
    assert not (place.base / "nowhere").exists()


def test_it_lies_where_the_configuration_does(place):
    home = place.base / "settings"
    with Server(place, "--ws-auth", "user-token", env={"CORDON_HOME": str(home)}) as server:
        token = (home / "private/ws-token").read_text().strip()
        assert status(server.url, token) == 101
        ran = place.cordon("--connect", server.url, "ps", env={"CORDON_HOME": str(home)})
        assert ran.returncode == 0, ran
        assert token not in place.run("--", "cat", home / "private/ws-token", env={"CORDON_HOME": str(home)}).stdout


def test_an_unmodified_client_gets_in_where_the_user_says_so(place):
    """What Codex sends by CODEX_EXEC_SERVER_URL has no Authorization; what environments.toml names as
    auth_bearer_token is the token as it is."""
    with Server(place, "--ws-auth", "own-processes") as server:
        reply = http(server.url, upgrade_head(host=server.url[len("ws://"):], fields={"Content-Length": "1"}))
        assert reply.status == 400  # past the door
        assert server.client().run("a", "echo hi").output == b"hi\n"
        ran = place.run("--network", "enabled", "--readable", HERE, "--", "python3", "-c", KNOCK, HERE, server.url, "")
        assert ran.stdout.split() == ["403"], ran
    with TokenServer(place) as server:
        client = server.connect(token=server.token)
        assert "cordon-proof" in client.reply.fields
        assert client.initialize().run("a", "echo hi").output == b"hi\n"
