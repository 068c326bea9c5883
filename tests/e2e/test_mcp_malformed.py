"""10,000 messages to `cordon mcp` that are almost right: good ones with something in them changed. Each is answered, or
passed over; the server lives, and neither its memory nor its descriptors become more."""
import copy
import json
import os
import pathlib
import random

import pytest
from harness import BUILD
from served import SANITIZERS
from talking_mcp import Mcp
from test_serve_malformed import STRANGE, spots

SERVER = BUILD / "src/cli/cordon-server"
COUNT = 10000
AT_A_TIME = 100
# What was sent so often that nothing new is allocated for it.
WARM = 3000
URI = "cordon://session/1000/output"
METHODS = {
    "ping": {},
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "x", "version": "1"}},
    "logging/setLevel": {"level": "debug"},
    "tools/list": {"cursor": None},
    "tools/call": {"name": "list_sessions", "arguments": {}, "_meta": {"progressToken": 1}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": URI},
    "resources/subscribe": {"uri": URI},
    "resources/unsubscribe": {"uri": URI},
    "completion/complete": {"ref": {"type": "ref/resource", "uri": "cordon://session/{id}/output"},
                            "argument": {"name": "id", "value": "1"}, "context": {"arguments": {}}},
}
# Of these any value may come; exec_command is among them only with what cannot start.
TOOLS = {
    "exec_command": {"cmd": "true", "workdir": "/no/such/folder", "env": {"A": "b"}, "until": {"text": "x"}, "tty": True},
    "write_stdin": {"session_id": 1000, "chars": "x", "close": True, "yield_time_ms": 250},
    "wait_for": {"session_id": 1000, "text": "x", "quiet_ms": 1, "bytes": 1},
    "read_screen": {"session_id": 1000, "scrollback": 0},
    "terminate_session": {"session_id": 1000, "grace_ms": 0},
    "apply_patch": {"patch": "*** Begin Patch\n*** End Patch", "workdir": "/no/such/folder", "dry_run": True},
    "explain_permissions": {"path": "/etc", "command": "git push", "host": "example.org"},
}
NOTIFICATIONS = {
    "notifications/initialized": {},
    "notifications/cancelled": {"requestId": 1, "reason": "x"},
    "notifications/roots/list_changed": {},
    "notifications/progress": {"progressToken": 1, "progress": 1},
}


def good_messages():
    for number, (method, params) in enumerate(METHODS.items()):
        yield {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    for name, arguments in TOOLS.items():
        yield {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    for method, params in NOTIFICATIONS.items():
        yield {"jsonrpc": "2.0", "method": method, "params": params}
    yield {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"decision": "approved"}}}
    yield {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no", "data": {}}}


def almost_right(message, chance):
    message = json.loads(json.dumps(message))
    for _ in range(chance.randrange(1, 3)):
        container, key = chance.choice(spots(message))
        if "workdir" in (key, *(container if isinstance(container, dict) else ())) and chance.randrange(8):
            continue  # a command that starts takes its time
        how = chance.randrange(4)
        if how == 0 and isinstance(container, dict):
            container.pop(key, None)
        elif how == 1 and isinstance(container, dict):
            container[chance.choice(["extra", "", "é"])] = copy.deepcopy(chance.choice(STRANGE))
        else:
            container[key] = copy.deepcopy(chance.choice(STRANGE))
    text = json.dumps(message if chance.randrange(20) else [message]).encode()
    at = chance.randrange(len(text))
    how = chance.randrange(20)
    if how == 0:
        return text[:at]
    if how == 1:
        return text[:at] + bytes([chance.randrange(256)]) + text[at + 1:]
    return text


def state_of(pid):
    """Bytes in memory, and open descriptors."""
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE"), len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize("version", ["2025-11-25", "2025-03-26"])
def test_almost_right_messages(place, version):
    chance = random.Random(version)
    known = list(good_messages())
    mcp = Mcp(place, version=version)
    mcp.last = 10 ** 6  # ids that none of them has
    warm = None
    for sent in range(0, COUNT // 2, AT_A_TIME):
        if sent == WARM:
            warm = state_of(mcp.process.pid)
        lines = [almost_right(chance.choice(known), chance) for _ in range(AT_A_TIME)]
        mcp.process.stdin.buffer.write(b"\n".join(lines) + b"\n")
        mcp.answer(mcp.ask("ping"))
    bytes_now, descriptors_now = state_of(mcp.process.pid)
    assert descriptors_now <= warm[1] + 64  # some commands run just now, with five each
    assert bytes_now - warm[0] < 4 << 20 or b"__asan_init" in SERVER.read_bytes()  # keeps what was freed
    assert all(isinstance(other, list) or other["jsonrpc"] == "2.0" for other in mcp.others)
    out, err = mcp.close()
    assert not SANITIZERS.search(err), err
