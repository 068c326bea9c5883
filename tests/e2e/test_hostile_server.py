"""What a server may send that means harm: to `cordon --connect` and to the client libraries. Nothing
of it reaches the terminal as a control sequence or ends the program that uses a library."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import threading

import pytest

from harness import TOP, WAIT
from remote import Terminal

ESCAPE = "\x1b]0;gotcha\x07"
C1 = "\x9b31m"
HIDDEN = "\u202egpj"
SESSION = "01234567-0123-0123-0123-0123456789ab"


class Hostile:
    """Speaks lines on a Unix socket; `answers`: what to send for a method, as text or a value."""

    def __init__(self, place, answers, session=SESSION):
        self.answers = {"initialize": {"sessionId": session,
                                       "environmentInfo": {"cwd": f"file://{place.ws}"}},
                        "process/start": {"processId": "run"}, **answers}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(place.base / "hostile"))
        self.listener.listen()
        self.url = f"unix:{place.base}/hostile"
        place.cleanup.callback(self.listener.close)
        place.cleanup.callback(self.listener.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, client.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "id" not in message:
                    continue
                answer = self.answers.get(message["method"])
                if isinstance(answer, bytes):
                    client.sendall(answer)
                elif answer is None:
                    client.sendall(reply(message, error={"code": -32601, "message": ESCAPE + C1}))
                else:
                    client.sendall(reply(message, result=answer))


def reply(message, **more):
    return json.dumps({"id": message["id"], **more}, ensure_ascii=False).encode() + b"\n"


def is_clean(text):
    return not any(mark in text for mark in ("\x1b", "\x9b", "\x07", "\u202e"))


PROCESS = {"processId": f"p{ESCAPE}", "sessionId": f"{SESSION}{C1}", "argv": [f"a{ESCAPE}", HIDDEN],
           "cwd": "file:///", "tty": False, "pid": 1, "startedAtMs": 0, "exited": False}


@pytest.mark.parametrize("words", [
    ["ps"], ["ps", "--json"], ["logs", "p"], ["attach", "p"], ["kill", "p"], ["run", "--", "true"],
    ["run", "--detach", "--", "true"], ["cp", "remote:/x", "x"], ["cp", "x", "remote:/x"],
], ids=" ".join)
@pytest.mark.parametrize("session", [SESSION, f"0123{ESCAPE}", f"0123{C1}", f"01\n23", ""],
                         ids=["plain", "escape", "c1", "lines", "empty"])
def test_nothing_of_a_server_is_a_control_sequence(place, words, session):
    (place.ws / "x").write_text("x")
    server = Hostile(place, {"process/list": {"processes": [PROCESS]}, "process/start": None},
                     session)
    terminal = Terminal(place, "--connect", server.url, *words)
    code = terminal.end()
    shown = terminal.seen.decode()
    assert is_clean(shown), shown
    assert (code == 0) == (session == SESSION and words[0] == "ps"), shown


# What comes in place of an answer.
NONSENSE = {
    "no-json": b"nonsense\n", "array": b"[1]\n", "number": b"1\n", "null": b"null\n",
    "id-object": b'{"id": {}, "result": 1}\n', "id-array": b'{"id": [], "result": 1}\n',
    "deep": b"[" * 200000 + b"\n", "no-utf8": b'{"method": "\xff"}\n',
    "error-null": b'{"id": 2, "error": null}\n', "error-text": b'{"id": 2, "error": "x"}\n',
    "no-result": b'{"id": 2}\n', "null-result": b'{"id": 2, "result": null}\n', "text-result": b'{"id": 2, "result": "x"}\n',
    "params": b'{"method": "process/output", "params": [1]}\n',
    "method": b'{"method": {"a": 1}, "params": {}}\n',
}


@pytest.mark.parametrize("what", NONSENSE)
def test_python_survives(place, what):
    server = Hostile(place, {"fs/readFile": NONSENSE[what] + b"nonsense\n"})
    script = ("import asyncio, cordon, sys\n"
              "async def main():\n"
              "    client = await cordon.connect(sys.argv[1], reconnect_for=0)\n"
              "    try:\n"
              "        await asyncio.wait_for(client.files.read('/x'), 20)\n"
              "    except cordon.Error as e:\n"
              "        print('survived', type(e).__name__)\n"
              "    await client.close()\n"
              "asyncio.run(main())\n")
    ran = subprocess.run([sys.executable, "-c", script, server.url], capture_output=True, text=True,
                         timeout=WAIT, cwd=TOP / "clients/python", check=False)
    assert ran.stdout.startswith("survived") and "never retrieved" not in ran.stderr, ran


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.parametrize("what", NONSENSE)
def test_typescript_survives(place, what):
    server = Hostile(place, {"fs/readFile": NONSENSE[what] + b"nonsense\n"})
    script = """
import { CordonError, connect } from 'cordon';
const client = await connect(process.argv[1], { reconnectForMs: 0 });
try {
  await client.files.read('/x');
} catch (error) {
  console.log(error instanceof CordonError ? 'survived' : 'not one of ours:', error.name);
}
await client.close();
"""
    ran = subprocess.run(["node", "--input-type=module", "-e", script, server.url],
                         capture_output=True, text=True, timeout=WAIT, check=False,
                         cwd=pathlib.Path(TOP / "clients/typescript"))
    assert ran.returncode == 0 and ran.stdout.startswith("survived"), ran
