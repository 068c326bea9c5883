"""10,000 messages that are almost right: the recorded ones (tests/cases/wire) with something in them
changed. The server answers each, or closes the connection that it came by; it lives, and others
notice nothing."""
import json
import random

import pytest
from harness import TOP
from served import Server, uri
from ws_client import Closed

COUNT = 10000
AT_A_TIME = 50
STRANGE = [None, True, -1, 0, 1.5, 2**63 - 1, 2**63, 2**200, "", "x", "\u0000", "\ud800", "é" * 300, [], {},
           [None], {"a": {}}, "file:///%00", "file://x/y", "AAA", "!!", [[[[[[[[]]]]]]]]]
# What a mutation must not keep a client from doing again, or would do to this machine.
LEFT_OUT = {"initialize", "initialized", "fs/remove", "fs/copy", "fs/createDirectory", "fs/writeFile",
            "fs/open", "fs/writeBlock", "http/request", "bogus/thing"}


def seeds():
    for path in sorted((TOP / "tests/cases/wire").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            line = json.loads(line)
            if line.get("dir") == "c2s" and "msg" in line and line["msg"]["method"] not in LEFT_OUT:
                yield line["msg"]
    yield {"id": 1, "method": "process/attach", "params": {"sessionId": "x", "processId": "p"}}
    yield {"id": 1, "method": "session/write", "params": {"sessionId": 1000, "chars": "x"}}
    yield {"id": 1, "method": "process/wait", "params": {"processId": "p", "timeoutMs": 1}}


def spots(value, found=None):
    """Every place in the value, as (container, key)."""
    found = [] if found is None else found
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            found.append((value, key))
            spots(value[key], found)
    return found


def mutate(message, chance):
    message = json.loads(json.dumps(message))
    container, key = chance.choice(spots(message.get("params")) or [(message, "params")])
    how = chance.randrange(4)
    if how == 0 and isinstance(container, dict):
        container.pop(key, None)
    elif how == 1 and isinstance(container, dict):
        container[chance.choice(["extra", "", "é"])] = chance.choice(STRANGE)
    else:
        container[key] = chance.choice(STRANGE)
    return message


def text_of(message, chance):
    text = json.dumps(message).encode()
    if chance.randrange(10):
        return text
    at = chance.randrange(len(text))
    if chance.randrange(2):
        return text[:at]
    return text[:at] + bytes([chance.randrange(256)]) + text[at + 1:]


def harmless(message):
    """Nothing that runs for long or leaves something behind when it happens to be right."""
    params = message.get("params")
    if message["method"] == "process/start" and isinstance(params, dict) and "argv" in params:
        params["argv"] = ["/bin/true"]
    if isinstance(params, dict) and "waitMs" in params:
        params["waitMs"] = 0
    return message


@pytest.mark.parametrize("seed", [1, 2])
def test_almost_right_messages(place, seed):
    chance = random.Random(seed)
    known = [harmless(message) for message in seeds()]
    with Server(place, "--log-level", "error") as server, server.client() as other:
        client, sent, number = None, 0, 0
        while sent < COUNT // 2:
            if client is None:
                client = server.client()
                client.next_id = 10**12  # no mutation has an id like this
            texts = []
            for _ in range(AT_A_TIME):
                number += 1
                message = mutate(chance.choice(known), chance)
                texts.append(text_of({**message, "id": number}, chance))
            sent += AT_A_TIME
            try:
                for text in texts:
                    client.send_text(text)
                client.call("environment/status")
            except (Closed, OSError, KeyError, TypeError):
                client.sock.close()
                client = None
                continue
            client.events.clear()
            client.answers.clear()
        assert other.run("last", "echo alive").output == b"alive\n"
        assert other.call("process/start", {
            "processId": "q", "argv": ["/bin/true"], "cwd": uri(place.ws), "env": {},
            "tty": False})["sandboxType"] == "none"
        assert server.stop() == 0
