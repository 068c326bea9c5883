"""`cordon mcp` over standard input and output: lines, versions, and the end."""
import concurrent.futures
import json

import pytest

from talking_mcp import Mcp

PING = {"jsonrpc": "2.0", "id": "p", "method": "ping"}


@pytest.mark.parametrize("asked, agreed", [
    ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"),
    ("2024-11-05", "2025-11-25"), ("2099-01-01", "2025-11-25")])
def test_version_is_agreed_on(place, asked, agreed):
    mcp = Mcp(place, version=asked)
    assert mcp.initialized["protocolVersion"] == agreed
    assert mcp.initialized["serverInfo"]["name"] == "cordon"
    assert "sandbox" in mcp.initialized["instructions"]
    # what clients of other versions ask first
    assert mcp.fail("server/discover")["code"] == -32602
    assert mcp.fail("initialize", protocolVersion=asked, capabilities={})["code"] == -32600
    assert mcp.close() == ("", "")


def test_only_ping_comes_before_initialize(place):
    mcp = Mcp(place, version=None)
    assert mcp.call("ping") == {}
    assert mcp.fail("logging/setLevel", level="debug")["code"] == -32600
    assert mcp.fail("initialize", protocolVersion=7)["code"] == -32602


def test_batches_are_of_one_version_alone(place):
    batch = json.dumps([PING, {"jsonrpc": "2.0", "method": "x"}, 7, PING | {"id": 2, "method": "x"}])
    mcp = Mcp(place, version="2025-03-26")
    mcp.send(batch)
    assert [(one["id"], one.get("error", {}).get("code")) for one in mcp.read()] == [
        ("p", None), (None, -32600), (2, -32601)]
    mcp = Mcp(place, version="2025-06-18")
    mcp.send(batch, PING)
    assert mcp.read()["error"]["code"] == -32600
    assert mcp.read() == {"jsonrpc": "2.0", "id": "p", "result": {}}


def test_what_is_no_message_is_answered_and_passed_over(place):
    mcp = Mcp(place)
    mcp.send("garbage", '{"jsonrpc":"2.0","id":4,"method":"ping\\u0000"}', "   ", "\r", "x" * (17 << 20), PING)
    assert [mcp.read().get("id") for _ in range(4)] == [None, 4, None, "p"]


def test_what_was_asked_before_the_end_is_answered(place):
    """Also a last line without its end, and to a file."""
    text = "\n".join(json.dumps(one) for one in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}, PING))
    result = place.cordon("mcp", text=text)
    assert result.returncode == 0, result.stderr
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [1, "p"]


def test_client_that_reads_late_loses_nothing(place):
    """Answers wait for it, and so do its own requests."""
    mcp = Mcp(place)
    names = [f"{number}{'x' * 1000}" for number in range(8000)]  # 8 MB: more than is queued
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = pool.submit(mcp.send, *(PING | {"id": name} for name in names))
        assert [mcp.read()["id"] for _ in names] == names
        sent.result()
