"""Unix sockets in a restricted network: those that commands make are theirs, one of the host has to be
named. And connecting and binding, which the guard does for the command, ends as it does outside."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from tools import PYTHON, need, passes, where

CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    print(s.recv(100).decode())
except OSError as error:
    print(error.errno, error.strerror)
"""


@pytest.fixture
def greeter(place):
    """Makes a socket of the host that says hello; short, because a name has room for 107 bytes."""
    folder = tempfile.mkdtemp(prefix="e2e-", dir=os.environ["CORDON_TESTS"])
    servers = []

    def make(path=None):
        path = str(path or os.path.join(folder, "greeter"))
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(16)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client = server.accept()[0]
                    client.sendall(b"hello")
                    client.close()
        thread = threading.Thread(target=serve)
        thread.start()
        servers.append((server, thread))
        return path
    yield make
    for server, thread in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
    shutil.rmtree(folder)


def connect(place, path, *options, **kwargs):
    return passes(place.run(*options, "--", PYTHON, "-c", CONNECT, path, **kwargs)).strip()


# --- sockets of the host ---

def test_a_socket_of_the_host_has_to_be_named(place, greeter):
    path = greeter()
    assert connect(place, path) == "13 Permission denied"
    assert connect(place, path, "--socket", path) == "hello"
    assert connect(place, path, "--network", "enabled") == "13 Permission denied"
    assert connect(place, path, "--network", "enabled", "--socket", path) == "hello"
    assert connect(place, path, "--network", "host") == "hello"


def test_own_ones_with_the_network_enabled(place):
    """Only the host's are closed then; and of abstract ones, which are the host's too, all are."""
    script = """if True:
        import socket
        for name in "own.sock", "\\0cordon-e2e":
            server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
            server.bind(name)
            server.listen()
            try:
                client.connect(name)
                print("connected")
            except OSError as error:
                print(error.errno)"""
    result = place.json("run", "--json", "--network", "enabled", "--", PYTHON, "-c", script)
    assert result["stdout"].split() == ["connected", "13"]
    assert [denial["path"] for denial in result["denials"]] == ["@cordon-e2e"]


def test_a_connect_that_waits_is_interrupted(place):
    """The guard connects in the program's place: a handler of the program's runs all the same."""
    script = """if True:
        import signal, socket
        def late(*_):
            raise TimeoutError
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        full = [socket.socket() for _ in range(8)]
        for one in full:
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            socket.socket().connect(server.getsockname())
        except TimeoutError:
            print("interrupted")"""
    assert passes(place.run("--", PYTHON, "-c", script)).strip() == "interrupted"


def test_one_in_tmp_is_the_hosts_too(place, greeter):
    """Where ssh-agent, tmux and X11 of the host have theirs, and the command may write."""
    path = greeter(place.tmp / "greeter")
    assert connect(place, path) == "2 No such file or directory"
    assert connect(place, path, "--tmp", "host") == "13 Permission denied"
    for options in ([], ["--tmp", "host"]):
        assert connect(place, path, "--socket", path, *options) == "hello"


def test_one_that_nobody_is_behind(place):
    """What a tmux that was killed leaves is no reason for the next one not to start."""
    path = place.tmp / "left"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
    result = place.json("run", "--json", "--tmp", "host", "--", PYTHON, "-c", CONNECT, path)
    assert result["stdout"].strip() == "111 Connection refused"
    assert result["denials"] == []


def test_one_that_is_not_there_is_said(place):
    ran = place.run("--socket", "later", "--", "true")
    assert ran.returncode == 0 and f"--socket: nothing is at {place.ws}/later yet" in ran.stderr


def test_another_name_of_a_socket_is_no_way_to_it(place, greeter):
    path = greeter(place.tmp / "greeter")
    other = greeter(place.tmp / "named")
    script = """
        ln "$1" "$TMPDIR/hard"; ln -s "$1" "$TMPDIR/soft"; mv "$1" "$TMPDIR/moved"; cd "$TMPDIR"
        for path in hard soft ./moved "$TMPDIR/../tmp/moved" /proc/self/cwd/moved /proc/self/root/$TMPDIR/moved; do
            "$2" -c "$3" "$path"
        done"""
    ran = place.run("--socket", other, "--tmp", "host", "--", "sh", "-c", script, "sh", path, PYTHON, CONNECT)
    lines = passes(ran).splitlines()
    assert len(lines) == 6
    assert "hello" not in lines


def test_what_is_denied_is_shown_by_its_name(place, greeter):
    path = greeter(place.outside / "greeter")
    assert connect(place, path, "--deny", str(place.outside)) == "13 Permission denied"
    assert connect(place, path, "--deny", str(place.outside), "--socket", path) == "hello"
    assert connect(place, path, "--deny", path, "--socket", path) == "13 Permission denied"


def test_by_the_profile(place, greeter):
    path = greeter()
    place.config(f"""
[permissions.dev]
extends = ":workspace"
[permissions.dev.network.unix_sockets]
"{path}" = "allow"
""")
    assert connect(place, path, "--profile", "dev") == "hello"
    assert connect(place, path) == "13 Permission denied"


@pytest.mark.parametrize("value, said", [("", "absolute path"), ("/run/*", "not the path of a socket"),
                                         (":root", "not the path of a socket"),
                                         ("/var/tmp", "is a directory")])
def test_what_is_no_socket(place, value, said):
    ran = place.run("--socket", value, "--", "true")
    assert ran.returncode == 125
    assert said in ran.stderr


def test_a_refused_socket_is_a_fact(place, greeter):
    path = greeter()
    result = place.json("run", "--json", "--", PYTHON, "-c", CONNECT, path)
    denial = result["denials"][0]
    assert (denial["operation"], denial["path"], denial["evidence"]) == ("connect", path, "fact")
    assert f"--socket {path}" in denial["remedy"]


def test_a_machine_that_is_not_reached_is_a_fact(place):
    code = "import socket; socket.socket().connect_ex(('192.0.2.1', 443))"
    result = place.json("run", "--json", "--", PYTHON, "-c", code)
    assert [(d["operation"], d["host"], d["port"]) for d in result["denials"]] == [("connect", "192.0.2.1", 443)]


def test_datagrams_are_refused(place):
    code = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
    ran = place.run("--", PYTHON, "-c", code)
    assert ran.returncode == 1
    assert "PermissionError" in ran.stderr


# --- own sockets: the same inside and outside ---

SAME = r"""
import errno, os, socket, sys
def tell(name, function):
    try:
        print(name, function())
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def server(path, kind=socket.SOCK_STREAM, backlog=5):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    s.listen(backlog)
    return s
def connect(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as c:
        c.connect(path)
        return c.getpeername()
os.mkdir("d")
kept = [server("a"), server("./d/b"), server(os.getcwd() + "/c"), server("seq", socket.SOCK_SEQPACKET)]
print([s.getsockname().replace(os.getcwd(), "") for s in kept])
for path in ("a", "./a", "d/b", "d/../c", os.getcwd() + "/d/b", "/proc/self/cwd/a"):
    tell(path.replace(os.getcwd(), ""), lambda: connect(path).replace(os.getcwd(), ""))
os.symlink("a", "link"); os.symlink("link", "link2"); os.symlink("loop", "loop"); os.symlink("none", "dangling")
open("file", "w").close()
for path in ("link2", "loop", "dangling", "none", "none/x", "file", "file/x", "d", ".", "/", "a/", "seq", "x" * 107):
    tell(path, lambda: connect(path))
for path in ("a", "link", "dangling", "file", "d", ".", "none/x", "file/x", "y" * 107):
    tell("bind " + path, lambda: socket.socket(socket.AF_UNIX).bind(path))
tell("seq", lambda: connect("seq", socket.SOCK_SEQPACKET))
twice = socket.socket(socket.AF_UNIX)
tell("first", lambda: twice.bind("first")); tell("second", lambda: twice.bind("second"))
closed = server("closed"); closed.close()
tell("closed", lambda: connect("closed"))
peer = socket.socket(socket.AF_UNIX); peer.connect("a")
tell("again", lambda: peer.connect("a"))
os.umask(0o027)
kept.append(server("masked")); print(oct(os.stat("masked").st_mode))
full = server("full", backlog=0)
first = socket.socket(socket.AF_UNIX); first.connect("full")
second = socket.socket(socket.AF_UNIX); second.setblocking(False)
tell("full", lambda: second.connect("full"))
name = "\0cordon-%d" % os.getpid()
kept.append(server(name)); tell("abstract", lambda: connect(name) == name.encode())
auto = socket.socket(socket.AF_UNIX); auto.bind(""); print("auto", len(auto.getsockname()))
tell("tcp", lambda: socket.socket().connect(("127.0.0.1", 1)))
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
tell("tcp", lambda: socket.create_connection(listener.getsockname()).getpeername() == listener.getsockname())
c = socket.socket(); c.setblocking(False); print("tcp", errno.errorcode[c.connect_ex(listener.getsockname())])
tell("no socket", lambda: socket.socket(fileno=os.open("file", os.O_RDONLY)))
"""


@pytest.mark.parametrize("in_tmp", [False, True])
def test_the_same_as_outside(place, in_tmp):
    program = place.ws / "same.py"
    program.write_text(SAME)
    inside, outside = (place.tmp if in_tmp else place.ws) / "i", place.outside / "o"
    place.make_inside_tmp()
    (place.inside_tmp / "i" if in_tmp else inside).mkdir()
    outside.mkdir()
    wanted = subprocess.run([PYTHON, program], cwd=outside, stdout=subprocess.PIPE, text=True, check=True)
    ran = place.run("--", "sh", "-c", f"cd {inside} && exec {PYTHON} {program}")
    assert passes(ran) == wanted.stdout


def test_a_full_backlog_is_waited_for(place):
    code = """
import os, socket, threading, time
s = socket.socket(socket.AF_UNIX); s.bind("full"); s.listen(0)
clients = [socket.socket(socket.AF_UNIX) for _ in range(8)]
threads = [threading.Thread(target=c.connect, args=("full",)) for c in clients]
for t in threads: t.start()
# the guard serves others meanwhile
os.mkdir("made"); os.rmdir("made")
peers = [s.accept()[0] for _ in clients]
for t in threads: t.join()
for c, n in zip(peers, range(8)): c.send(b"x")
print(b"".join(c.recv(1) for c in clients))
late = socket.socket(socket.AF_UNIX); late.connect("full")
late = socket.socket(socket.AF_UNIX)
late.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, b"\\x01" + 15 * b"\\0")
start = time.monotonic()
try: late.connect("full")
except BlockingIOError: print("again", 0.9 < time.monotonic() - start)
"""
    assert passes(place.run("--", PYTHON, "-c", code)) == "b'xxxxxxxx'\nagain True\n"


def test_a_command_that_is_killed_while_it_waits(place):
    code = ("import socket; s = socket.socket(socket.AF_UNIX); s.bind('full'); s.listen(0)\n"
            "[socket.socket(socket.AF_UNIX).connect('full') for _ in range(9)]")
    start = time.monotonic()
    place.run("--timeout", "2", "--", PYTHON, "-c", code)
    assert time.monotonic() - start < 60


def test_names_that_are_held_are_no_sockets(place):
    code = ("import socket\n"
            "for n in '.git', '.codex', 'sub/../.git', 'objects':\n"
            "    try: socket.socket(socket.AF_UNIX).bind(n); print(n)\n"
            "    except PermissionError: pass")
    (place.ws / "sub").mkdir()
    assert passes(place.run("--", PYTHON, "-c", code)) == ""
    assert sorted(os.listdir(place.ws)) == ["sub"]


# --- programs ---

def test_the_hosts_ssh_agent(place):
    need("ssh-agent", "ssh-add")
    agent = place.tmp / "agent"
    process = place.start("-D", "-a", agent, program="/usr/bin/ssh-agent")
    while not agent.exists():
        assert process.poll() is None
        time.sleep(0.01)
    env = {"SSH_AUTH_SOCK": str(agent)}
    assert place.run("--", "ssh-add", "-l", env=env).returncode == 2
    ran = place.run("--socket", agent, "--", "ssh-add", "-l", env=env)
    assert (ran.returncode, ran.stdout) == (1, "The agent has no identities.\n")


@where("gpg", "gpg-agent")
def test_gpg_agent(place):
    script = "export GNUPGHOME=$TMPDIR/g; mkdir -m 700 $GNUPGHOME; " \
             "gpg -q --batch --passphrase '' --quick-gen-key me@example.org && " \
             "echo text | gpg -q --batch --clearsign && gpgconf --kill all"
    assert "BEGIN PGP SIGNATURE" in passes(place.shell(script))


@where("tmux")
def test_tmux(place):
    script = "export TMUX_TMPDIR=$TMPDIR; tmux -f /dev/null new-session -d -s one 'sleep 60' && tmux ls && tmux kill-server"
    assert passes(place.shell(script)).startswith("one: 1 windows")


def test_multiprocessing(place):
    code = ("from multiprocessing import Manager, get_context\n"
            "with Manager() as m: d = m.dict(); d[1] = 2; print(dict(d))\n"
            "c = get_context('forkserver')\n"
            "p = c.Process(target=print, args=('there',)); p.start(); p.join()\n")
    program = place.ws / "m.py"
    program.write_text("if __name__ == '__main__':\n" + "".join(f"    {x}\n" for x in code.splitlines()))
    assert passes(place.run("--", PYTHON, program)) == "{1: 2}\nthere\n"


@where("redis-server", "redis-cli")
def test_redis(place):
    script = "redis-server --port 0 --unixsocket $TMPDIR/r --save '' >log & " \
             "until redis-cli -s $TMPDIR/r ping 2>/dev/null | grep PONG; do sleep 0.05; done; " \
             "redis-cli -s $TMPDIR/r shutdown nosave; wait"
    assert passes(place.shell(script)) == "PONG\n"


def test_node(place, greeter):
    need("node")
    code = """
        const net = require('net');
        const s = net.createServer(c => c.end('own')).listen('own.sock', () => {
            net.connect('own.sock').on('data', d => { console.log('' + d); s.close() });
        });
        net.connect(process.argv[1]).on('error', e => console.log(e.code));
    """
    ran = place.run("--", "node", "-e", code, greeter())
    assert sorted(passes(ran).split()) == ["EACCES", "own"]




BY_PROC = """
import os, socket
fd = os.open("folder", os.O_PATH)
os.symlink("folder", "link")
for path in "/proc/self/cwd/a", f"/proc/self/fd/{fd}/b", f"/dev/fd/{fd}/c", "/proc/thread-self/cwd/link/d":
    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
    socket.socket(socket.AF_UNIX).connect(path); server.accept()
    print(os.path.exists(path))
for path in "/proc/self/cwd/a", "/proc/self/cwd/.git", "/proc/self/cwd/missing/x", f"/proc/self/fd/{fd}/../.codex":
    try:
        socket.socket(socket.AF_UNIX).bind(path)
        print("bound")
    except OSError as error:
        print(error.errno)
print(sorted(os.listdir()), sorted(os.listdir("folder")))
"""


def test_a_bind_by_the_links_of_proc(place):
    """As who has a directory open does it when the path is too long."""
    (place.ws / "folder").mkdir()
    ran = place.run("--", "/usr/bin/python3", "-c", BY_PROC)
    assert ran.stdout == "True\n" * 4 + "98\n13\n2\n13\n['a', 'folder', 'link'] ['b', 'c', 'd']\n", ran
