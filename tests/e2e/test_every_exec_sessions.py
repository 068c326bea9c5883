"""Each program that a command of a session executes is judged, too (judge = "every-exec"): processes and sessions
of a server's clients, scripts, and hosts of the library."""
import json
import os
import pathlib
import re
import time

import pytest

import host
from events import wait_in
from harness import WAIT
from served import Server, uri, workspace_write

RULES = """
prefix_rule(pattern=["uname"], decision="forbidden", justification="it tells too much")
prefix_rule(pattern=["readlink"], decision="allow")
prefix_rule(pattern=["sleep"], decision="allow")
prefix_rule(pattern=["id"], decision="prompt")
"""


def namespace():
    return re.search(r"\d+", os.readlink("/proc/self/ns/mnt")).group()


@pytest.fixture
def ruled(place):
    rules = place.home / ".config/cordon/rules"
    rules.mkdir(parents=True)
    (rules / "default.rules").write_text(RULES)
    return place


@pytest.fixture
def client(ruled):
    with Server(ruled) as server, server.client() as client:
        yield client


def judging(place):
    sandbox = workspace_write(place.ws)
    sandbox["permissions"]["judge"] = "every-exec"
    return sandbox


def script(place, text):
    """In a file, so that the command itself shows none of it; with one place to look for programs in, since a shell
    that is refused one tries the next."""
    (place.ws / "script").write_text(f"PATH=/usr/bin; {text}\n")
    return ["/bin/sh", "script"]


def exec_in_session(client, place, text):
    script(place, text)
    return client.request("session/exec", {
        "cmd": "sh script", "cwd": uri(place.ws), "shell": "/bin/sh", "login": False,
        "until": {"text": "never, so its end"}, "yieldTimeMs": 30000, "sandbox": judging(place)})


def reply(client, question, decision):
    client.send({"id": question["id"], "result": {"decision": decision}})


def test_a_process(ruled, client):
    client.start("p", script(ruled, "true; uname; echo $?; readlink /proc/self/ns/mnt; exit 3"),
                 sandbox=judging(ruled))
    ended = client.follow("p")
    lines = ended.streams["stdout"].decode().split()
    assert lines[0] == "126" and namespace() in lines[1] and ended.code == 3
    assert any(denial["path"].endswith("/uname") for denial in ended.exited["denials"]), ended.exited


def test_a_session(ruled, client):
    number = exec_in_session(client, ruled, "uname; echo $?; readlink /proc/self/ns/mnt")
    result = client.answer(number)["result"]
    assert "126" in result["text"] and namespace() in result["text"]
    assert [denial["path"].rsplit("/")[-1] for denial in result["denials"]] == ["uname"]


@pytest.mark.parametrize("decision", ["approved", "denied"])
def test_a_process_that_is_asked_about(ruled, client, decision):
    client.start("p", script(ruled, "id -u; echo $?"), sandbox=judging(ruled))
    question = client.event("approval/request")
    assert question["params"]["question"]["argv"] == ["id", "-u"]
    reply(client, question, decision)
    assert client.follow("p").streams["stdout"].decode().split() == ([str(os.getuid()), "0"] if decision == "approved" else ["126"])


def test_a_session_that_is_asked_about(ruled, client):
    number = exec_in_session(client, ruled, "id -u; id -g")
    question = client.event("approval/request")
    reply(client, question, "approved")
    question = client.event("approval/request")
    assert question["params"]["question"]["argv"] == ["id", "-g"]
    reply(client, question, "denied")
    text = client.answer(number)["result"]["text"]
    assert str(os.getuid()) in text and "Permission denied" in text


def test_a_client_that_goes_while_it_is_asked(ruled):
    """The process goes on, with a no."""
    with Server(ruled) as server, server.client() as watcher:
        with server.client() as client:
            client.start("p", script(ruled, "id -u; echo $? >code; mv code answer"), sandbox=judging(ruled))
            client.event("approval/request")
            client.sock.close()
        wait_in(ruled.ws, (ruled.ws / "answer").exists, WAIT)
        assert (ruled.ws / "answer").read_text() == "126\n"
        assert watcher.call("approval/list")["questions"] == []


def test_nobody_can_be_asked(ruled):
    ruled.config('approval_policy = "never"\n')
    with Server(ruled) as server, server.client() as client:
        client.start("p", script(ruled, "id -u; echo $?"), sandbox=judging(ruled))
        assert client.follow("p").streams["stdout"] == b"126\n"


def running(marker):
    """Those that execute it themselves."""
    found = []
    for pid in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (pid / "cmdline").read_bytes() == f"sleep\0{marker}\0".encode():
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("way", ["terminate", "session/terminate", "server"])
def test_what_runs_outside_ends_with_its_command(ruled, way):
    marker = f"61.{os.getpid()}{len(way)}"
    with Server(ruled) as server, server.client() as client:
        if way == "session/terminate":
            number = exec_in_session(client, ruled, f"touch up; sleep {marker}; echo over")
        else:
            client.start("p", script(ruled, f"touch up; sleep {marker}; echo over"), sandbox=judging(ruled))
        wait_in(ruled.ws, (ruled.ws / "up").exists, WAIT)
        deadline = time.monotonic() + WAIT
        while not running(marker) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running(marker)
        if way == "terminate":
            client.call("process/terminate", {"processId": "p"})
            assert b"over" not in client.follow("p").output
        elif way == "session/terminate":
            (listed,) = client.call("session/list")["sessions"]
            client.call("session/terminate", {"sessionId": listed["sessionId"]})
            client.answer(number)
        else:
            server.stop()
        assert not running(marker)


def test_a_script(ruled):
    """Nobody is asked: without a policy what is forbidden is held, with one what has to be asked about, too."""
    script(ruled, "uname; echo $?; id -u")
    (ruled.ws / "calls.jsonl").write_text('{"exec_command": {"cmd": "sh script", "shell": "/bin/sh", "login": false}}\n')
    done = ruled.cordon("script", "--judge", "every-exec", "calls.jsonl")
    text = json.loads(done.stdout)["text"]
    assert "126" in text and str(os.getuid()) in text.split(), done.stdout + done.stderr
    ruled.config('approval_policy = "on-request"\n')
    done = ruled.cordon("script", "--judge", "every-exec", "calls.jsonl")
    assert json.loads(done.stdout)["text"].count("Permission denied") == 2, done.stdout


def test_hosts_of_the_library(ruled):
    config = ruled.config('default_permissions = "mine"\n[permissions.mine]\nextends = ":workspace"\n'
                          'judge = "every-exec"\n')
    script(ruled, "{ uname; echo $?; id -u; echo $?; } 2>/dev/null; readlink /proc/self/ns/mnt")
    ran = ruled.cordon(config, ruled.home / ".config/cordon", program=host.build(ruled, "judged"),
                       env=host.ENV)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    wanted = ["126", "126", f"mnt:[{namespace()}]"]
    shown = [line for line in ran.stdout.splitlines()
             if re.fullmatch(r"126|run: .*|session:|call:|execute:|mnt:.*", line)]
    assert shown == ["run: refused", "session:", *wanted, "call:", *wanted, "execute:", *wanted]
