"""Whom `cordon serve` asks about what a client runs: a person at its terminal, a hook program, the
client itself. The same conversation with each of them."""
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from harness import CORDON, WAIT, read_until
from person import Person
from served import ServedClient, Server, exec_result as result, exec_run, uri

ASKED = 'prefix_rule(pattern=["echo"], decision="prompt", justification="it is loud")\n'
FORBIDDEN = 'prefix_rule(pattern=["echo"], decision="forbidden", justification="too loud")\n'
KEYS = {"approved": "y", "approved_for_session": "s", "approved_execpolicy_amendment": "a",
        "approved_without_sandbox": "u", "denied": "n", "abort": "q"}


# --- who answers

class Terminal(Person):
    name, options = "terminal", ("--approval-terminal",)

    def question(self, client):
        """The next question: its text."""
        self.until("cordon: run ")
        return self.until("\n> ")

    def answer(self, decision):
        self.say(KEYS[decision] + "\n")

    def is_asked(self, client):
        while self.is_shown_more():  # what was typed is on the screen, too
            pass
        return "cordon: run " in self.seen


class Hook:
    """A program that hands each question on to the test and waits for the answer."""
    name = "hook"

    def __init__(self, place):
        self.program = place.base / "bin/hook"
        self.program.parent.mkdir()
        self.pipes = {}
        for name in ("questions", "answers"):
            path = place.base / name
            os.mkfifo(path)
            self.pipes[name] = os.open(path, os.O_RDWR)  # so that it has no end
            place.cleanup.callback(os.close, self.pipes[name])
        self.program.write_text(f"#!/bin/sh\ncat > {place.base}/questions\n"
                                f"read -r answer < {place.base}/answers\necho \"$answer\"\n")
        self.program.chmod(0o755)
        self.options = ("--approval-hook", self.program)

    def question(self, client):
        assert select.select([self.pipes["questions"]], [], [], WAIT)[0], "the hook is not asked"
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(self.pipes["questions"], 65536)
        return as_text(json.loads(text))

    def answer(self, decision):
        os.write(self.pipes["answers"], json.dumps({"decision": decision}).encode() + b"\n")

    def is_asked(self, client):
        return bool(select.select([self.pipes["questions"]], [], [], 0)[0])


class Itself:
    """The client that owns the call."""
    name, options = "client", ()

    def __init__(self, place):
        self.asked = None

    def question(self, client):
        self.asked = client, client.event("approval/request")
        return as_text(self.asked[1]["params"]["question"])

    def answer(self, decision):
        client, message = self.asked
        client.send({"id": message["id"], "result": {"decision": decision}})

    def is_asked(self, client):
        """Everything that the server sent before this answer is here then."""
        assert client.call("approval/list") == {"questions": []}
        return any(message.get("method") == "approval/request" for message in client.events)


def as_text(question):
    """As the terminal shows it, as far as the tests look."""
    head = "once more?" if question["kind"] == "retry" else "this command?"
    return (f"{head}\n    {' '.join(question['argv'])}\n  in:      {question['cwd']}\n"
            f"  because: {question['reason']}\n  a yes covers: {question['covers']}\n" +
            "".join(f"  [{KEYS[word]}]\n" for word in question["available_decisions"]))


@pytest.fixture(params=[Terminal, Hook, Itself], ids=lambda kind: kind.name)
def asker(place, request):
    return request.param(place)


def serve(place, asker, *options, rules=ASKED, **kwargs):
    place.config(rules, "home/.config/cordon/rules/test.rules")
    if isinstance(asker, Person):
        kwargs.setdefault("preexec_fn", asker.take_terminal)
    return Server(place, *(asker.options if asker else ()), *options, **kwargs)


def at_terminal(place, *options, **kwargs):
    person = Terminal(place)
    return person, serve(place, person, *options, **kwargs)


def run(client, name, *argv, **params):
    return exec_run(client, name, list(argv), **params)


def by(got):
    """Who answered which question how."""
    return [(asked["answer"]["by"], asked["answer"]["decision"]) for asked in got["questions"]]


# --- the conversation, with each of them

def test_ask_yes_no(place, asker):
    with serve(place, asker) as server, server.client() as client:
        number = run(client, "yes", "echo", "hello")
        question = asker.question(client)
        assert "this command?\n    echo hello\n" in question and f"in:      {place.ws}" in question
        assert "it is loud" in question and "test.rules:1" in question
        assert "[y]" in question and "[s]" in question and "[u]" not in question
        asker.answer("approved")
        got = result(client, number)
        assert got["outcome"] == "ran" and by(got) == [(asker.name, "approved")]
        assert got["attempts"][0]["result"]["stdout"] == "hello\n"
        for name, word in (("no", "denied"), ("stop", "abort")):  # the yes was for once
            number = run(client, name, "echo", "hello")
            asker.question(client)
            asker.answer(word)
            got = result(client, number)
            assert (got["outcome"], got["attempts"], got["decision"]) == ("rejected", [], word)
            assert by(got) == [(asker.name, word)]
            assert f"the answer was no (by {asker.name})" in got["reason"]


def test_a_yes_for_the_session_is_asked_for_once(place, asker):
    with serve(place, asker) as server, server.client() as client, server.client() as other:
        number = run(client, "a", "echo", "hello")
        asker.question(client)
        asker.answer("approved_for_session")
        assert by(result(client, number)) == [(asker.name, "approved_for_session")]
        got = result(client, run(client, "b", "echo", "hello"))
        assert got["outcome"] == "ran" and by(got) in ([], [("session", "approved_for_session")])
        assert got["attempts"][0]["result"]["stdout"] == "hello\n"
        assert not asker.is_asked(client)
        for who, text in ((client, "hullo"), (other, "hello")):  # the yes covers neither
            number = run(who, "c", "echo", text)
            assert f"echo {text}\n" in asker.question(who)
            asker.answer("denied")
            assert result(who, number)["outcome"] == "rejected"


def test_always_for_a_prefix(place, asker):
    with serve(place, asker, rules="") as server, server.client() as client, \
            server.client() as other:
        number = run(client, "a", "touch", "x", approvalPolicy="untrusted")
        assert "[a]" in asker.question(client)
        asker.answer("approved_execpolicy_amendment")
        got = result(client, number)
        assert by(got) == [(asker.name, "approved_execpolicy_amendment")]
        assert (place.ws / "x").exists()
        assert (place.home / ".config/cordon/rules/default.rules").read_text() == \
            'prefix_rule(pattern=["touch", "x"], decision="allow", sandbox="keep")\n'
        got = result(other, run(other, "a", "touch", "x", "y", approvalPolicy="untrusted"))
        assert (got["outcome"], got["questions"]) == ("ran", []) and (place.ws / "y").exists()
        assert not asker.is_asked(other)
        number = run(other, "b", "touch", "z", approvalPolicy="untrusted")
        asker.question(other)
        asker.answer("denied")
        assert result(other, number)["outcome"] == "rejected" and not (place.ws / "z").exists()


def test_once_more_with_the_smallest_grant(place, asker):
    file = place.outside / "file"
    file.write_text("old\n")
    command = ["sh", "-c", f"echo before; echo new > {file} && echo after"]
    with serve(place, asker, rules="") as server, server.client() as client:
        number = run(client, "a", *command)
        question = asker.question(client)
        assert "once more?" in question and f"the sandbox refused writing {file}" in question
        assert f"and beyond that writing {file}\n" in question and "[u]" not in question
        asker.answer("denied")
        got = result(client, number)
        assert len(got["attempts"]) == 1 and file.read_text() == "old\n"
        number = run(client, "b", *command)
        asker.question(client)
        asker.answer("approved")
        got = result(client, number)
        first, second = got["attempts"]
        assert first["result"]["end"] == "denied" and first["result"]["stdout"] == "before\n"
        assert (second["place"], second["widened"]) == ("widened", f"writing {file}")
        assert second["result"]["stdout"] == "before\nafter\n" and file.read_text() == "new\n"
        assert by(got) == [(asker.name, "approved")]


def test_what_is_forbidden_is_never_asked(place, asker):
    with serve(place, asker, rules=FORBIDDEN) as server, server.client() as client:
        got = result(client, run(client, "a", "echo", "hello"))
        assert (got["outcome"], got["questions"], got["attempts"]) == ("forbidden", [], [])
        assert "too loud" in got["reason"] and not asker.is_asked(client)


# --- the terminal

def open_ids(client):
    return [question["approvalId"] for question in client.call("approval/list")["questions"]]


def asked(client, name):
    """The id of the question of a run."""
    return client.event("exec/event", lambda params: params["runId"] == name and
                        params["event"] == "asked")["params"]["approvalId"]


def wait_until_closed(reviewer, question):
    """The server hears of the end of a connection by another socket."""
    deadline = time.monotonic() + WAIT
    while question in open_ids(reviewer):
        assert time.monotonic() < deadline


def test_questions_of_two_clients_come_one_after_the_other(place):
    person, served = at_terminal(place)
    with served as server, server.client() as one, server.client() as two:
        first = run(one, "r", "echo", "one")
        asked(one, "r")
        shown = person.question(one)
        assert f"for:     session {one.session}\n" in shown and "echo one\n" in shown
        second = run(two, "r", "echo", "two")
        third = run(two, "s", "echo", "three")
        ids = [asked(two, "r"), asked(two, "s")]
        assert set(open_ids(one)) >= set(ids) and not person.is_shown_more()
        for client, number, text, word in ((one, first, "one", "approved"),
                                           (two, second, "two", "denied"),
                                           (two, third, "three", "approved")):
            assert f"echo {text}\n" in shown and f"session {client.session}\n" in shown
            person.answer(word)
            assert by(result(client, number)) == [("terminal", word)]
            if text != "three":
                shown = person.question(client)
        assert not any(message.get("method") == "approval/request"
                       for client in (one, two) for message in client.events)


def test_a_question_goes_with_its_client_and_what_is_typed_for_it_counts_for_no_other(place):
    person, served = at_terminal(place)
    with served as server, server.client() as stays:
        goes, waits = server.client(), server.client()
        run(goes, "r", "echo", "one")
        person.question(goes)
        run(waits, "r", "echo", "two")
        gone = asked(goes, "r"), asked(waits, "r")
        number = run(stays, "r", "echo", "three")
        asked(stays, "r")
        waits.close()  # it was never shown, and never is
        wait_until_closed(stays, gone[1])
        assert not person.is_shown_more()
        goes.close()
        assert "the question is no longer open" in person.until("press Enter to see it\n")
        person.say("y\n")  # comes too late for the first
        assert "echo three\n" in person.question(stays)
        person.answer("denied")
        assert result(stays, number)["outcome"] == "rejected"


def test_whoever_answers_first_counts(place):
    person, served = at_terminal(place)
    with served as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        person.question(client)
        client.call("approval/resolve", {"approvalId": asked(client, "a"), "decision": "approved"})
        assert by(result(client, number)) == [("reviewer", "approved")]
        person.until("the question is no longer open\n")
        number = run(client, "b", "echo", "hello")
        person.until("another question waits; press Enter to see it\n")
        person.say("\n")
        assert "echo hello\n" in person.question(client)
        person.answer("approved")
        assert by(result(client, number)) == [("terminal", "approved")]


def test_only_a_key_on_offer_is_an_answer(place):
    person, served = at_terminal(place)
    person.say("y\n")  # before anything was asked
    with served as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        person.question(client)
        for text in ("\n", "x\n", "u\n", "a\n", "yikes\n", "y n\n", "y" * 300 + "\n"):
            person.say(text)
            person.until("\n> ")
        person.say("\x04")  # the end of the input
        assert by(result(client, number)) == [("terminal", "denied")]


def test_a_stopped_terminal_stops_nobody_else(place):
    """Ctrl-S: a question that is longer than what the terminal takes waits, and no yes counts."""
    person, served = at_terminal(place)
    with served as server, server.client() as client, server.client() as other:
        person.say("\x13")
        number = run(client, "a", "echo", "x" * 100000)
        question = asked(client, "a")
        person.say("y\n")
        assert other.run("p", "echo alive").output == b"alive\n"
        assert open_ids(other) == [question]
        person.say("\x11")
        person.question(client)
        person.answer("denied")
        assert by(result(client, number)) == [("terminal", "denied")]


@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM"])
def test_the_end_of_the_server_is_a_no_and_leaves_the_terminal_as_it_was(place, end):
    person, served = at_terminal(place)
    with served as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        person.question(client)
        if end == "Ctrl-C":
            person.say("\x03")
        else:
            os.kill(server.process.pid, signal.SIGTERM)
        got = result(client, number)
        assert (got["outcome"], got["attempts"]) == ("rejected", [])
        assert server.process.wait(WAIT) == 0
        person.until("the question is no longer open\n")
        assert person.is_restored()


def test_nobody_says_yes_at_a_terminal_that_was_closed(place):
    person, served = at_terminal(place)
    with served as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        person.question(client)
        person.leave()
        assert result(client, number)["outcome"] == "rejected"
        got = result(client, run(client, "b", "echo", "hello"))
        assert got["outcome"] == "rejected" and "nobody to ask" in got["reason"]
        assert server.stop() == 0


LEADER = """
import os, subprocess, sys, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
server = subprocess.Popen(sys.argv[1:], process_group=0)
terminal = os.open("/dev/tty", os.O_RDWR)
line = os.read(terminal, 100)
os.tcsetpgrp(terminal, server.pid)
os.write(terminal, b"got " + line)
sys.exit(server.wait())
"""


def test_in_the_background_the_terminal_belongs_to_others(place):
    """What is typed goes to another program, until that brings the server to the foreground."""
    person = Terminal(place)
    place.config(ASKED, "home/.config/cordon/rules/test.rules")
    leader = place.start("-c", LEADER, CORDON, "serve", "--listen", "ws://127.0.0.1:0",
                         "--ws-auth", "own-processes", "--approval-terminal", program=sys.executable,
                         preexec_fn=person.take_terminal)
    url = read_until(leader.stdout, b"\n").decode().strip()
    with ServedClient.connect(url).initialize() as client:
        client.cwd = place.ws
        number = run(client, "a", "echo", "hello")
        person.question(client)
        person.say("y\n")
        person.until("got y\n")
        person.answer("denied")
        assert by(result(client, number)) == [("terminal", "denied")]
        person.say("\x03")
        assert leader.wait(WAIT) == 0


def test_without_a_controlling_terminal_it_does_not_start(place):
    done = place.cordon("serve", "--approval-terminal", start_new_session=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--approval-terminal: there is no controlling terminal to ask at" in done.stderr


def test_a_command_cannot_answer_its_own_question(place):
    """It is in a session without a terminal, and finds that of the server nowhere."""
    person, served = at_terminal(place, rules="")
    name = os.ttyname(person.side)
    with served as server, server.client() as client:
        got = result(client, run(client, "a", "sh", "-c",
                                 f"for tty in /dev/tty {name}; do (: <> $tty) && echo open; done; true",
                                 approvalPolicy="never"))
        assert got["attempts"][0]["result"]["stdout"] == ""


# --- a hook that leaves it to others

@pytest.mark.parametrize("kind", [Terminal, Itself], ids=lambda kind: kind.name)
def test_a_hook_may_leave_it_to_the_next(place, kind):
    hook, asker = Hook(place), kind(place)
    with serve(place, asker, *hook.options) as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        hook.question(client)
        assert open_ids(client) == [asked(client, "a")]
        hook.answer("ask")
        assert "echo hello\n" in asker.question(client)
        asker.answer("approved")
        assert by(result(client, number)) == [(asker.name, "approved")]


def test_a_reviewer_can_be_faster_than_a_hook(place):
    hook = Hook(place)
    with serve(place, hook) as server, server.client() as client:
        number = run(client, "a", "echo", "hello")
        hook.question(client)
        client.call("approval/resolve", {"approvalId": asked(client, "a"), "decision": "denied"})
        assert by(result(client, number)) == [("reviewer", "denied")]


def test_a_hook_by_a_relative_path(place):
    """It is meant from where the server was started, and a command cannot change it."""
    hook = Hook(place)
    hook.program = hook.program.rename(place.ws / "hook")
    before = hook.program.read_text()
    hook.options = ("--approval-hook", "../ws/hook")
    with serve(place, hook, cwd=place.base / "bin") as server, server.client() as client:
        number = run(client, "a", "echo", "hello", cwd=uri(place.tmp))
        assert f"in:      {place.tmp}" in hook.question(client)
        hook.answer("approved")
        assert by(result(client, number)) == [("hook", "approved")]
        result(client, run(client, "b", "sh", "-c", "(: > hook); mv hook x; rm -f hook; true",
                           approvalPolicy="never"))
        assert hook.program.read_text() == before


@pytest.mark.parametrize("program, message", [("exit 3", "it ended with 3"),
                                              ("echo '{\"decision\": \"maybe\"}'", "not one of")])
def test_a_hook_that_fails_is_a_no(place, program, message):
    file = place.base / "hook"
    file.write_text(f"#!/bin/sh\n{program}\n")
    file.chmod(0o755)
    with serve(place, None, "--approval-hook", file) as server, server.client() as client:
        got = result(client, run(client, "a", "echo", "hello"))
        assert by(got) == [("hook", "denied")] and message in got["reason"]
    for missing in ("/missing/hook", "missing-hook"):
        done = place.cordon("serve", "--approval-hook", missing, stdout=subprocess.PIPE)
        assert done.returncode and missing in done.stderr
    done = place.cordon("serve", "--approval-hook", "", stdout=subprocess.PIPE)
    assert done.returncode == 125 and "has to be a program" in done.stderr
