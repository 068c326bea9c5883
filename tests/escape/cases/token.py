"""The token by which a server knows its user: read by a command, replaced, lured out of those who know
it, or used. (What serves and connects without a token: tests/e2e/test_serve_peers.py.)"""

import os
import socket
import subprocess

from catalogue import attack
from stage import CORDON, WAIT

TOKEN = "0123456789abcdef" * 4
NAME = ".config/cordon/private/ws-token"


def token_file(stage, home="home"):
    stage.env["HOME"] = str(stage.base / home)
    file = stage.file(f"{home}/{NAME}", TOKEN + "\n", 0o600)
    file.parent.chmod(0o700)
    return file


def has_token(stage, ran):
    """In what it printed, or in a file that it made."""
    copies = [path for top in (stage.ws, stage.tmp) for path in top.rglob("*")
              if path.is_file() and not path.is_symlink() and not str(path).endswith(NAME)
              and os.access(path, os.R_OK) and TOKEN in path.read_text(errors="replace")]
    return TOKEN in ran.out or copies


@attack()
def read_it(stage):
    return has_token(stage, stage.attack("read", token_file(stage)))


@attack()
def read_it_by_proc(stage):
    return has_token(stage, stage.attack("read", f"/proc/self/root{token_file(stage)}"))


@attack()
def read_it_where_the_profile_opens_it(stage):
    file = token_file(stage)
    return has_token(stage, stage.attack("read", file, cordon=["--readable", file, "--readable", file.parent]))


@attack()
def read_it_where_all_of_home_is_the_workspace(stage):
    file = token_file(stage, "ws")
    return has_token(stage, stage.shell('cat "$1"; cp "$1" stolen; ln "$1" linked; mv "${1%/*}" moved; '
                                        'mv .config other; cat moved/* other/*/*/*', file))


@attack()
def read_it_where_its_directory_is_made_writable(stage):
    file = token_file(stage)
    return has_token(stage, stage.shell('cat "$1" || { chmod -R 777 "${1%/*}"; cat "$1"; }', file,
                                        cordon=["-w", file.parent, "-w", file]))


@attack()
def read_it_with_another_home(stage):
    """The command says which home it has; Cordon knows the user's."""
    file = token_file(stage)
    return has_token(stage, stage.shell(f'HOME={stage.ws} CORDON_HOME={stage.ws}; cat "$1"', file))


@attack()
def read_it_through_a_link(stage):
    file = token_file(stage)
    (stage.ws / "link").symlink_to(file.parent)
    return has_token(stage, stage.attack("read", stage.ws / "link/ws-token"))


@attack()
def read_it_where_the_configuration_is_a_link(stage):
    """As those have it who keep their dot files together."""
    file = token_file(stage, "dotfiles")
    stage.env["HOME"] = str(stage.home)
    (stage.home / ".config").symlink_to(stage.base / "dotfiles/.config")
    return has_token(stage, stage.shell(f'cat "$1" "$HOME/{NAME}"', file))


@attack()
def replace_it(stage):
    """With one that the command knows: it would be let in by what it made."""
    file = token_file(stage, "ws")
    stage.shell('echo mine > "$1"; rm -f "$1"; rmdir "${1%/*}"; mkdir -p "${1%/*}"; echo mine > "$1"; '
                'mv "${1%/*}" old; mkdir "${1%/*}"; ln -s /dev/null "$1"', file)
    return not file.exists() or file.read_text() != TOKEN + "\n"


@attack()
def make_it_before_the_server_does(stage):
    stage.env["HOME"] = str(stage.ws)
    stage.file("ws/.config/cordon/config.toml", "# mine\n")
    stage.shell(f'umask 077; mkdir -p .config/cordon/private && echo {TOKEN} > {NAME}')
    return (stage.ws / NAME).exists()


# Any client: it prints the status of the answer.
KNOCK = """
import socket, sys
host, _, port = sys.argv[1][5:].rpartition(":")
sock = socket.create_connection((host, int(port)))
sock.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
             b"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n"
             b"Authorization: Bearer " + sys.argv[2].encode() + b"\\r\\n\\r\\n")
print("@start", sock.recv(12)[9:].decode())
"""


@attack()
def use_it(stage):
    """Somebody has told the command: it is a command all the same."""
    token_file(stage)
    server = subprocess.Popen([CORDON, "serve", "--listen", "ws://127.0.0.1:0", "--ws-auth", "user-token"],
                              env=stage.env, cwd=stage.out, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    stage.cleanup.callback(server.wait)
    stage.cleanup.callback(server.kill)
    url = server.stdout.readline().strip()
    return "101" in stage.run("/usr/bin/python3", "-c", KNOCK, url, TOKEN, cordon=["--network", "enabled"]).out


# Takes a port and prints what comes to it.
SQUAT = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("@start", listener.getsockname()[1], flush=True)
sock = listener.accept()[0]
print(sock.recv(65536).decode(), flush=True)
"""


@attack(silent=True)
def have_it_sent_to_a_taken_port(stage):
    """By a client outside, to a command of the same user. Bare, the client is one that sends what it knows."""
    token_file(stage)
    squatter = stage.start("/usr/bin/python3", "-c", SQUAT, cordon=["--network", "enabled"])
    port = squatter.stdout.readline().split()[-1:]
    if not port:
        return stage.finish(squatter).won
    url = f"ws://127.0.0.1:{port[0]}"
    if stage.inside:
        subprocess.run([CORDON, "--connect", url, "ps"], env=stage.env, cwd=stage.out, capture_output=True,
                       timeout=WAIT, check=False, stdin=subprocess.DEVNULL)
    else:
        with socket.create_connection(("127.0.0.1", int(port[0]))) as sock:
            sock.sendall(f"GET / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            sock.shutdown(socket.SHUT_WR)
    return TOKEN in stage.finish(squatter).out
