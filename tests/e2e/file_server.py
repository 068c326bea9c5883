"""A running exec server for the tests of its file methods and of the client libraries."""
import base64
import pathlib

from harness import BUILD, read_until
from processes import descendants, name_of
from served import auth_of
from ws_client import Client

SERVER = BUILD / "src/cli/cordon-server"


class Server:
    """`url` is where it listens; the place ends it."""

    def __init__(self, place, listen="ws://127.0.0.1:0", env=None, prefix=()):
        self.place = place
        program, *words = [*prefix, str(SERVER), "--listen", listen, *auth_of(listen, ())]
        self.process = place.start(*words, program=program, env=env)
        self.url = read_until(self.process.stdout, b"\n").decode().strip()

    def client(self):
        client = Client.connect(self.url)
        client.sock.settimeout(60)
        client.call("initialize", {"clientName": "test"})
        client.notify("initialized", {})
        return client

    def helpers(self):
        """Host pids of its helpers for files, below it at any depth."""
        return [pid for pid in descendants(self.process.pid) if name_of(pid) == "cordon-files"]


def uri(path):
    return pathlib.Path(path).as_uri()


def b64(data):
    return base64.b64encode(data).decode()


def entry(path, access):
    """`path`: a special kind (":root") or a folder."""
    text = str(path)
    where = ({"type": "special", "value": {"kind": text[1:]}} if text.startswith(":") else
             {"type": "path", "path": uri(path)})
    return {"path": where, "access": access}


def sandbox(place, *entries):
    """Everything may be read and the workspace written, and `entries` besides."""
    return narrow(place, entry(":root", "read"), entry(":project_roots", "write"), *entries)


def narrow(place, *entries):
    return {"permissions": {"type": "managed", "network": "restricted",
                            "file_system": {"type": "restricted", "entries": list(entries)}},
            "windowsSandboxLevel": "disabled", "cwd": uri(place.ws),
            "workspaceRoots": [uri(place.ws)]}
