"""clients/typescript against the real server: its own tests (node:test), over both transports."""
import shutil
import subprocess

import pytest

from file_server import SERVER, Server
from harness import TOP, WAIT

CLIENT = TOP / "clients/typescript"

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")


def node(*words, **env):
    return subprocess.run(["node", *map(str, words)], cwd=CLIENT, capture_output=True, text=True,
                          timeout=2 * WAIT, env=env)


def test_its_own_tests(place):
    server = Server(place)
    ran = node("--test", "test/", **place.env, CORDON_URL=server.url, CORDON_SERVER=str(SERVER),
               CORDON_PLACE=str(place.base))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_over_a_unix_socket(place):
    Server(place, f"unix:{place.base}/s")
    script = """
import { connect } from './src/index.js';
const client = await connect(process.argv[1]);
const command = await client.start(['cat'], '/', { stdin: true });
console.log((await command.communicate('hello')).stdout.toString());
await client.close();
"""
    ran = node("--input-type=module", "-e", script, f"unix:{place.base}/s", **place.env)
    assert (ran.returncode, ran.stdout) == (0, "hello\n"), ran.stderr


def test_the_example(place):
    server = Server(place)
    ran = node("example.js", server.url, place.ws, "/bin/sh", "-c",
               f"echo out; echo err >&2; touch {place.outside}/x; exit 9", **place.env)
    assert (ran.returncode, ran.stdout) == (9, "out\n")
    assert ran.stderr.startswith("err\n") and "refused:" in ran.stderr
