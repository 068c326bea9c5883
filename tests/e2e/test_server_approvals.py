"""Questions of `exec/run` over time: joined, late, taken back, left behind; and who can tell which
one is meant."""
import contextlib
import json
import os
import time

import pytest
from harness import WAIT
from served import Server, exec_result as result, exec_run as run
from ws_client import RpcError, frame

PROMPT = 'prefix_rule(pattern=["echo"], decision="prompt", justification="it is loud")\n'


@pytest.fixture
def server(place):
    rules(place, PROMPT)
    with Server(place) as server:
        yield server


def rules(place, text):
    place.config(text, "home/.config/cordon/rules/test.rules")


def asked(client, name):
    """What exec/event says of the question of a run."""
    return client.event("exec/event", lambda params: params["runId"] == name and
                        params["event"] == "asked")["params"]


def answer(client, question, decision, **more):
    client.send({"id": question["id"], "result": {"decision": decision, **more}})


def test_runs_that_ask_the_same_are_joined_on_one_question(server):
    with server.client() as client, server.client() as reviewer:
        numbers = [run(client, name, ["echo", "hello"]) for name in ("a", "b")]
        other = run(client, "c", ["echo", "something else"])
        questions = [client.event("approval/request") for _ in range(2)]
        ids = {question["params"]["approvalId"] for question in questions}
        told = {name: asked(client, name) for name in ("a", "b", "c")}
        assert told["a"]["approvalId"] == told["b"]["approvalId"] != told["c"]["approvalId"]
        assert {told["a"]["approvalId"], told["c"]["approvalId"]} == ids
        assert told["a"]["question"]["argv"] == ["echo", "hello"]
        listed = reviewer.call("approval/list")["questions"]
        assert {question["approvalId"] for question in listed} == ids
        reviewer.call("approval/resolve", {"approvalId": told["a"]["approvalId"],
                                           "decision": "approved"})
        for number in numbers:
            got = result(client, number)
            assert got["outcome"] == "ran"
            assert got["attempts"][0]["result"]["stdout"] == "hello\n"
            assert got["questions"][0]["answer"]["by"] == "reviewer"
        assert [question["approvalId"] for question in
                reviewer.call("approval/list")["questions"]] == [told["c"]["approvalId"]]
        answer(client, next(question for question in questions if
                            question["params"]["approvalId"] == told["c"]["approvalId"]), "denied")
        assert result(client, other)["outcome"] == "rejected"


def test_who_is_joined_can_leave_without_taking_the_question_along(server):
    with server.client() as client:
        first = run(client, "a", ["echo", "hello"])
        second = run(client, "b", ["echo", "hello"])
        question = client.event("approval/request")
        assert asked(client, "b")["approvalId"] == question["params"]["approvalId"]
        client.call("exec/cancel", {"runId": "a"})
        assert result(client, first)["outcome"] == "rejected"
        answer(client, question, "approved")
        assert result(client, second)["outcome"] == "ran"


@pytest.mark.parametrize("error, outcome", [
    ({"code": 1, "message": "no"}, "rejected"), (None, "ran")])
def test_an_answer_with_an_error_is_a_no_whatever_else_it_says(server, error, outcome):
    with server.client() as client:
        number = run(client, "a", ["echo", "hello"])
        question = client.event("approval/request")
        client.send({"id": question["id"], "result": {"decision": "approved"}, "error": error})
        assert result(client, number)["outcome"] == outcome


def test_nobody_in_time_is_a_no(place):
    rules(place, PROMPT)
    with Server(place, "--approval-timeout", "1ms") as server, server.client() as client:
        got = result(client, run(client, "r", ["echo", "hello"]))
        assert (got["outcome"], got["decision"]) == ("rejected", "timed_out")
        assert "nobody answered in time" in got["reason"] and got["attempts"] == []
        answer(client, client.event("approval/request"), "approved")  # too late
        assert client.call("approval/list") == {"questions": []}
        done = place.cordon("serve", "--approval-timeout", "0s")
        assert done.returncode == 125 and "longer than 0" in done.stderr


def test_a_prompt_pauses_the_clock_of_the_command(server):
    """The question is open for longer than the command may run, which another command with the same
    limit shows; then it still runs to its end."""
    limit = 3000
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"], timeoutMs=limit)
        question = client.event("approval/request")
        timed = result(client, run(client, "t", ["sleep", "1000"], timeoutMs=limit))
        assert timed["attempts"][0]["result"]["end"] == "timed-out"
        answer(client, question, "approved")
        got = result(client, number)["attempts"][0]["result"]
        assert (got["end"], got["exit_code"], got["stdout"]) == ("exited", 0, "hello\n")


def processes_of(mark):
    """Pids whose command line has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0"):  # noqa: SIM115
                found.append(pid)
    return found


@pytest.mark.parametrize("yes_first", [True, False])
def test_a_cancel_right_behind_the_yes_leaves_no_process(place, yes_first):
    rules(place, 'prefix_rule(pattern=["sleep"], decision="prompt")\n')
    mark = f"86400.{os.getpid()}{int(yes_first)}"
    with Server(place) as server, server.client() as client:
        for turn in range(10):
            number = run(client, f"r{turn}", ["sleep", mark])
            question = client.event("approval/request")
            words = [{"id": question["id"], "result": {"decision": "approved"}},
                     {"id": 1000 + turn, "method": "exec/cancel", "params": {"runId": f"r{turn}"}}]
            if not yes_first:
                words.reverse()
            client.send_bytes(b"".join(frame(json.dumps(word).encode()) for word in words))
            got = result(client, number)
            if yes_first:
                assert [attempt["result"]["end"] for attempt in got["attempts"]] in (
                    ["cancelled"], [])
            else:
                assert (got["outcome"], got["attempts"]) == ("rejected", [])
            assert client.answer(1000 + turn)["result"]["running"]
            assert processes_of(mark.encode()) == []


def test_a_question_ends_with_the_connection_that_owns_it(server):
    """Documented so: whoever waits for the answer is gone, so a reviewer's yes comes to nothing."""
    client = server.client()
    run(client, "r", ["echo", "hello"])
    question = client.event("approval/request")["params"]
    with server.client() as reviewer:
        assert reviewer.call("approval/list")["questions"] == [question]
        client.close()
        deadline = time.monotonic() + WAIT
        while reviewer.call("approval/list")["questions"]:  # the server hears it by another socket
            assert time.monotonic() < deadline
        with pytest.raises(RpcError, match="no open question"):
            reviewer.call("approval/resolve", {"approvalId": question["approvalId"],
                                               "decision": "approved"})


# --- rules about hosts ---

def test_rules_about_hosts(place, server):
    with server.client() as client:
        added = {"host": "Example.COM.", "decision": "forbidden", "justification": "not ours"}
        got = client.call("rules/add", added)
        assert got["added"] and "network_rule" in got["rule"] and "example.com" in got["rule"]
        assert not client.call("rules/add", added)["added"]
        client.call("rules/add", {"host": "mirror.example.com", "protocol": "http"})
        got = client.call("rules/check", {"host": "example.com"})
        assert got["decision"] == "forbidden"
        match, = got["matchedRules"]
        assert match["networkRuleMatch"]["host"] == "example.com"
        assert match["networkRuleMatch"]["protocol"] == "https"
        assert match["networkRuleMatch"]["file"].endswith("default.rules")
        assert "decision" not in client.call("rules/check", {"host": "example.com",
                                                             "protocol": "http"})
        got = client.call("rules/check", {"host": "mirror.example.com", "protocol": "http"})
        assert got["decision"] == "allow"
        done = place.json("rules", "check", "--json", "--host", "example.com")
        assert done == client.call("rules/check", {"host": "example.com"})
        for method, params in (("rules/check", {}), ("rules/check", {"argv": ["a"], "host": "b"}),
                               ("rules/check", {"argv": ["a"], "protocol": "http"}),
                               ("rules/check", {"host": "*.example.com"}),
                               ("rules/add", {"host": "a", "pattern": ["b"]}),
                               ("rules/add", {"host": "a", "protocol": "gopher"}),
                               ("rules/add", {"host": "a", "sandbox": "bypass"})):
            with pytest.raises(RpcError) as error:
                client.call(method, params)
            assert error.value.code == -32602, (method, params)
