"""The other half of every attack: what the sandbox must let through. A sandbox in which nothing
works would pass all the rest."""

import pytest

import identity
from stage import CORDON, Stage

ASYNCIO = """
import asyncio, socket
async def main():
    process = await asyncio.create_subprocess_exec("echo", "from-a-child", stdout=-1)
    print((await process.communicate())[0].decode())
asyncio.run(main())
a, b = socket.socketpair()
a.send(b"over-a-pair")
print(b.recv(64).decode())
"""

LOCALHOST = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
client.sendall(b"by-loopback")
print(listener.accept()[0].recv(64).decode())
"""

SOCKETS = """
import socket, struct
listener = socket.create_server(("127.0.0.1", 0))
diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
diag.send(struct.pack("=IHHII", 72, 20, 0x301, 0, 0) + struct.pack("=BBBxI", 2, 6, 0, 1 << 10) + bytes(48))
head = diag.recv(65536)
print("mine" if struct.unpack_from(">H", head, 20) == (listener.getsockname()[1],) else head)
"""

QUEUE = """
import ctypes, os
librt = ctypes.CDLL("librt.so.1", use_errno=True)
queue = librt.mq_open(b"/queue", os.O_RDWR | os.O_CREAT, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
text = ctypes.create_string_buffer(8192)
librt.mq_send(queue, b"by-queue", 8, 0)
librt.mq_receive(queue, text, 8192, None)
print(text.value.decode())
print(*os.listdir("/dev/mqueue"))
"""

WORKS = {
    "write in the workspace": ("echo x > file && mkdir d && mv file d && cat d/file", "x"),
    "write in $TMPDIR": ('file=$(mktemp) && case $file in "$TMPDIR"/*) echo kept;; esac', "kept"),
    "write in /tmp": ("echo x > /tmp/escape-$$ && rm /tmp/escape-$$ && echo done", "done"),
    "write in /dev/shm": ("echo x > /dev/shm/x && cat /dev/shm/x", "x"),
    "write to /dev/null": ("echo x > /dev/null && echo done", "done"),
    "read outside": ("cat ../outside/victim", "original"),
    "asyncio and socketpairs": (f"python3 -c '{ASYNCIO}'", "from-a-child\n\nover-a-pair"),
    "a server on localhost": (f"python3 -c '{LOCALHOST}'", "by-loopback"),
    "listing its own sockets": (f"python3 -c '{SOCKETS}'", "mine"),
    "a message queue": (f"python3 -c '{QUEUE}'", "by-queue\nqueue"),
    "signals to its own": ("sleep 60 & kill $! && wait $!; echo $?", "143"),
    "tracing its own": ("strace -o trace /bin/true && grep -q execve trace && echo traced",
                        "traced"),
    "reading stdin again": ("cat /proc/self/fd/0", "by-stdin"),
    "a repository below": ("git init -q --bare sub && git -C sub config a.b c && git -C sub config a.b", "c"),
    "a lock in the workspace": ("flock lock echo locked", "locked"),
}


def second_run_in_the_home_folder(name, tools):
    """Two runs at once where Cordon's configuration is missing below the workspace."""
    def scene():
        with Stage(name, True, tools) as stage:
            stage.env["HOME"] = str(stage.ws)
            first = stage.start("/bin/sh", "-c", "echo up; read line", stdin=-1)
            first.stdout.readline()
            second = stage.run("/bin/sh", "-c", "echo ran")
            stage.finish(first, "\n")
            return second
    return identity.play(name, scene)


@pytest.mark.parametrize("name", [name for name in identity.here() if identity.is_whole(name)])
def test_two_runs_in_the_home_folder(name, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    ran = second_run_in_the_home_folder(name, tools)
    assert (ran.code, ran.out) == (0, "ran\n"), ran


@pytest.mark.parametrize("name", [name for name in identity.here()
                                  if identity.has_namespaces(name)])
@pytest.mark.parametrize("what", WORKS)
def test_still_works(name, what, tools, lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")
    script, expected = WORKS[what]

    def scene():
        with Stage(name, True, tools) as stage:
            stage.victim_file()
            stdin = stage.open(stage.file("outside/stdin", "by-stdin\n"))
            return stage.run("/bin/sh", "-c", script, stdin=stdin)
    ran = identity.play(name, scene)
    assert ran.code == 0 and ran.out.strip() == expected, ran
