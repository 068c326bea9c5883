"""Hosts that are asked about: a connection is held meanwhile, and the program notices nothing but the time."""
import json

import pytest

from harness import finish
from person import Person
from test_carry_on import Hook
from tools import passes
from world import World

PROXIED = ["--network", "proxied"]


@pytest.fixture
def world(place):
    with World(place) as world:
        yield world


def names(world):
    return {event["name"] for event in world.arrived("dns")}


def test_a_yes_and_it_carries_on(place, world):
    """Each host, port and protocol is a question, asked once; nothing is looked up before a yes."""
    hook = Hook(place)
    hook.path.write_text(f"#!/bin/sh\ncat >> {hook.log}\ncat {world.base}/arrived >> {place.base}/before 2>/dev/null\n"
                         "echo '{\"decision\": \"approved\"}'\n")
    passes(world.run(*PROXIED, *hook.words, "--", "curl", "-sSf", "http://evil.test/x", "http://evil.test/y"))
    passes(world.run(*PROXIED, *hook.words, "--", "curl", "-ksSf", "https://good.test/"))
    assert [question["network"] for question in hook.asked] == [
        {"host": "evil.test", "port": 80, "protocol": "http"},
        {"host": "good.test", "port": 443, "protocol": "https"}]
    first = hook.asked[0]
    assert first["kind"] == "held" and first["reason"].startswith("curl (pid ")
    assert "wants to connect to evil.test:80 (http), which no rule of the profile workspace-write allows" in first["reason"]
    assert first["covers"] == "connecting to evil.test:80 (http) until the command ends"
    assert first["available_decisions"] == ["approved", "approved_execpolicy_amendment", "denied", "abort",
                                            "denied_execpolicy_amendment"]
    assert "evil.test" not in (place.base / "before").read_text().splitlines()[:1]
    assert [event["path"] for event in world.arrived("http")] == ["/x", "/y"]


def test_several_that_wait_are_one_question(place, world):
    hook = Hook(place, thinks="0.3")
    passes(world.run(*PROXIED, *hook.words, "--", "sh", "-c",
                     "for i in 1 2 3 4 5; do curl -sSf http://evil.test/$i >o$i & done; wait; cat o?"))
    assert len(hook.asked) == 1 and len(world.arrived("http")) == 5


def test_the_time_of_the_command_stands_still(place, world):
    hook = Hook(place, thinks="1")
    result = world.json("run", "--json", "--timeout", "900ms", *PROXIED, *hook.words, "--",
                        "curl", "-sSf", "http://evil.test/")
    (question,) = result["approval"]["questions"]
    assert result["end"] == "exited" and question["held_ms"] >= 900 and question["done"]


@pytest.mark.parametrize("answer", ["denied", "abort"])
def test_no(place, world, answer):
    """Nothing leaves: not a packet, not a look-up. The denial names host, port, program, and the remedy."""
    hook = Hook(place, answer)
    ran = world.run("--json", *PROXIED, *hook.words, "--", "sh", "-c", "curl -sS http://evil.test:8080/; exec sleep 0")
    result = json.loads(ran.stdout)
    assert world.arrived() == [] and len(hook.asked) == 1
    (question,) = result["approval"]["questions"]
    assert question["answer"]["decision"] == answer and not question["done"]
    assert result["end"] == ("exited" if answer == "denied" else "cancelled")
    if answer == "denied":
        (denial,) = result["denials"]
        assert (denial["host"], denial["port"], denial["reason"]) == ("evil.test", 8080, "policy_denied")
        assert denial["program"] == "curl" and "--allow-host evil.test:8080" in denial["remedy"]


def test_time_is_up(place, world):
    hook = Hook(place, thinks="100")
    ran = world.run(*PROXIED, "--approval-timeout", "50ms", *hook.words, "--", "curl", "-sS", "http://evil.test/")
    assert ran.returncode == 56 and world.arrived() == [], ran


def test_where_nobody_is_asked_names_are_refused(place, world):
    for words in (["-a", "never"], ["--watch", "facts", "-a", "on-request"]):
        ran = world.run(*PROXIED, "--watch", "ask", *words, "--", "curl", "-sS", "http://evil.test/", start_new_session=True)
        assert "Could not resolve" in ran.stderr and world.arrived() == []


def test_what_is_never_opened(place, world):
    """By a rule, or because it is not of the internet: a literal is not asked about, and a name is refused after the yes."""
    hook = Hook(place)
    for url in ["good.test", "10.0.0.1", "169.254.169.254", "0x0a000001", "[::ffff:10.0.0.1]", "localhost.",
                "inside.test"]:
        ran = world.run(*PROXIED, "--deny-host", "good.test", *hook.words, "--", "curl", "-sS", f"http://{url}/")
        assert ran.returncode != 0 and world.arrived("http") == []
        assert [question["network"]["host"] for question in hook.asked] == (["inside.test"] if url == "inside.test" else [])


def test_always(place, world):
    """The rule is about the protocol, at every port; the next command is not asked again."""
    hook = Hook(place, "approved_execpolicy_amendment")
    rules = place.home / ".config/cordon/rules/default.rules"
    passes(world.run(*PROXIED, *hook.words, "--", "curl", "-sSf", "http://evil.test/a"))
    assert rules.read_text() == 'network_rule(host="evil.test", protocol="http", decision="allow")\n'
    passes(world.run(*PROXIED, *hook.words, "--", "curl", "-sSf", "http://evil.test/b"))
    assert len(hook.asked) == 1 and [event["path"] for event in world.arrived("http")] == ["/a", "/b"]

    hook = Hook(place, "denied_execpolicy_amendment")
    for _ in range(2):
        assert world.run(*PROXIED, *hook.words, "--", "curl", "-ksSf", "https://good.test/").returncode
    assert rules.read_text().splitlines()[1:] == ['network_rule(host="good.test", protocol="https", decision="forbidden")']
    assert len(hook.asked) == 2 and world.arrived("tls") == []


def test_a_rule_that_asks(place, world):
    """It needs no watch: who is asked about commands is asked about the host."""
    place.config("")
    rules = place.home / ".config/cordon/rules/default.rules"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text('network_rule(host="evil.test", protocol="http", decision="prompt")\n')
    hook = Hook(place)
    words = ["-a", "on-request", "--approval-hook", str(hook.path)]
    passes(world.run(*PROXIED, *words, "--", "curl", "-sSf", "http://evil.test/"))
    assert len(hook.asked) == 1
    ran = world.run(*PROXIED, *words, "--", "sh", "-c", f"curl -sSf http://good.test/ || touch {place.outside}/x || echo refused")
    assert ran.stdout == "refused\n" and len(hook.asked) == 1


def test_the_audit_log_has_it(place, world):
    hook = Hook(place)
    passes(world.run(*PROXIED, *hook.words, "--", "curl", "-sSf", "http://evil.test/"))
    records = [json.loads(line) for line in passes(place.cordon("log", "--json")).splitlines()]
    (held,) = [record["body"] for record in records if record["event"] == "held"]
    assert held["decision"] == "approved" and held["done"] is True
    assert held["covers"] == "connecting to evil.test:80 (http) until the command ends"


def test_at_a_terminal(place, world):
    """What `a` would write is shown, and written."""
    person = Person(place)
    process = world.start("run", *PROXIED, "--watch", "ask", "-a", "on-request", "--", "curl", "-sSf", "http://evil.test/",
                          preexec_fn=person.take_terminal)
    shown = person.until("\n> ")
    assert "wants to connect to evil.test:80 (http)" in shown
    assert "[a] yes, and always: http to evil.test, at every port" in shown
    assert "[d] no, and never: http to evil.test, at every port" in shown
    person.say("a\n")
    finish(process, 0)
    assert "evil.test" in (place.home / ".config/cordon/rules/default.rules").read_text()
