"""`cordon connect run` has the options of `cordon run`: each works at a server, or is refused with a remedy."""
import json

import pytest

from harness import WAIT, finish
from person import Person
from served import Server

RULE = 'prefix_rule(["touch"], decision="prompt")\n'


@pytest.fixture
def server(place):
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        yield server


@pytest.fixture
def ruled(place):
    place.config(RULE, "home/.config/cordon/rules/default.rules")
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        yield server


def run(place, server, *words, **kwargs):
    return place.cordon("--connect", server.url, "run", *words, **kwargs)


@pytest.mark.parametrize("words, code", [
    (["--", "./nothing"], 127),
    (["--", "/etc/hostname"], 126),
    (["--timeout", "5s", "--", "./nothing"], 127),
    (["--timeout", "5s", "--", "/etc/hostname"], 126),
    (["--timeout", "100ms", "--", "sleep", "1000"], 124),
    (["--timeout", "5s", "--", "sh", "-c", "kill -9 $$"], 137),
    (["--timeout", "never", "--", "true"], 125),
])
def test_the_status_is_that_of_run(place, server, words, code):
    here = place.cordon("run", *words)
    there = run(place, server, *words)
    assert (here.returncode, there.returncode) == (code, code), there.stderr


def test_the_document_is_that_of_run(place, server):
    words = ["--json", "--report", "--trace=files", "--", "sh", "-c",
             f"echo out; echo err >&2; touch Makefile; touch {place.outside}/x; exit 3"]
    here, there = place.cordon("run", *words), run(place, server, *words)
    assert here.returncode == there.returncode == 3 and there.stderr == here.stderr
    here, there = json.loads(here.stdout), json.loads(there.stdout)
    assert here.keys() == there.keys()
    for key in ("end", "exit_code", "stdout", "stderr", "warnings", "approval", "runs_later"):
        assert here[key] == there[key], key
    assert here["sandbox"].keys() == there["sandbox"].keys()
    assert len(there["runs_later"]) == 1 and len(there["events"]) == len(here["events"])


@pytest.mark.parametrize("options", [["--trace=files"], ["--report"], ["--timeout", "9s"], ["-q", "--timeout", "9s"]])
def test_what_is_said_is_what_run_says(place, server, options):
    words = [*options, "--", "sh", "-c", f"touch package.json; touch {place.outside}/x"]

    def lines(ran):
        return [line for line in ran.stderr.splitlines()
                if "touch[" not in line]  # with times and pids

    assert lines(run(place, server, *words)) == lines(place.cordon("run", *words))


def test_a_trace_goes_to_a_file(place, server):
    file = place.base / "trace"
    ran = run(place, server, "--trace=files", "--trace-to", str(file), "--", "touch", "new")
    assert ran.returncode == 0 and "trace" not in ran.stderr
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [event["path"] for event in events] == [f"{place.ws}/new"]


def test_input_and_output_are_whole(place, server):
    data = b"0123456789abcdef" * 200_000
    process = place.start("--connect", server.url, "run", "--timeout", "1h", "--", "sh", "-c", "cat; cat >&2")
    out, err = process.communicate(data, timeout=WAIT)
    assert (out == data, err, process.returncode) == (True, b"", 0)


def test_a_reader_that_leaves_ends_the_command(place, server):
    process = place.start("--connect", server.url, "run", "--timeout", "1h", "--", "yes")
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(WAIT) == 141


@pytest.mark.parametrize("options", [[], ["--timeout", "1h"]])
def test_limits_and_profile_are_kept(place, server, options):
    assert run(place, server, *options, "--protect", "none", "--", "touch", ".vscode").returncode == 0
    assert run(place, server, *options, "--protect", "./own", "--", "touch", "own").returncode == 1
    assert run(place, server, *options, "--sandbox", "disabled", "--", "touch",
               f"{place.outside}/x").returncode == 0
    ran = run(place, server, *options, "--env-inherit", "none", "-e", "A=1", "--", "env")
    assert "A=1\n" in ran.stdout and "HOME=" not in ran.stdout
    assert run(place, server, "--max-file-size", "1k", "--", "sh", "-c", "seq 9999 >f").returncode != 0


@pytest.mark.parametrize("words, why", [
    (["--config", "x"], "own configuration"),
    (["--no-audit"], "leave the option out"),
    (["--detach", "--timeout", "1s"], "leave --detach out"),
    (["--trace-to", "x"], "needs --trace"),
    (["-e", "NOT_SET_HERE"], "give it a value"),
])
def test_what_a_server_cannot_do_is_said(place, server, words, why):
    ran = run(place, server, *words, "--", "true")
    assert ran.returncode == 125 and why in ran.stderr


@pytest.mark.parametrize("tty", [[], ["--tty"]])
@pytest.mark.parametrize("key, code", [("y", 0), ("n", 126)])
def test_a_question_comes_to_this_terminal(place, ruled, key, code, tty):
    person = Person(place)
    process = place.start("--connect", ruled.url, "run", *tty, "-a", "on-request", "--", "touch", "new",
                          preexec_fn=person.take_terminal, **(stdio(person) if tty else {}))
    shown = person.until("\n> ")
    assert "run this command?" in shown and "runs:    touch = " in shown
    person.say(f"{key}\n")
    assert process.wait(WAIT) == code and (place.ws / "new").exists() == (code == 0)
    assert person.is_restored()


def stdio(person):
    return {"stdin": person.side, "stdout": person.side, "stderr": person.side}


def test_a_terminal_is_lent_to_a_question_and_back(place, server):
    person = Person(place)
    process = place.start("--connect", server.url, "run", "--tty", "--watch", "ask", "--", "sh", "-c",
                          f"stty -echo; touch {place.outside}/new; echo now; read x; echo got $x",
                          preexec_fn=person.take_terminal, **stdio(person))
    person.until("allow this, while the command waits?")
    person.until("\n> ")
    assert person.is_restored()
    person.say("y\n")
    person.until("now")
    assert not person.is_restored()
    person.say("this\r")
    person.until("got this")
    assert process.wait(WAIT) == 0 and (place.outside / "new").exists() and person.is_restored()


def test_nobody_is_asked_without_a_policy(place, ruled):
    ran = run(place, ruled, "--timeout", "1h", "--", "touch", "new")
    assert ran.returncode == place.cordon("run", "--timeout", "1h", "--", "touch", "new").returncode == 0


def test_a_hook_of_ours_is_asked(place, ruled):
    hook = place.config("#!/bin/sh\ncat >>$0.asked\necho '{\"decision\": \"approved\"}'\n", "hook")
    hook.chmod(0o755)
    ran = run(place, ruled, "-a", "on-request", "--approval-hook", str(hook), "--", "touch", "new",
              start_new_session=True)
    assert ran.returncode == 0 and (place.ws / "new").exists(), ran.stderr
    assert json.loads(hook.with_name("hook.asked").read_text())["argv"] == ["touch", "new"]


def test_no_answer_in_time_is_a_no(place, ruled):
    person = Person(place)
    process = place.start("--connect", ruled.url, "run", "-a", "on-request", "--approval-timeout", "100ms",
                          "--", "touch", "new", preexec_fn=person.take_terminal)
    person.until("\n> ")
    finish(process, 126)


def test_a_question_that_is_answered_elsewhere_leaves_the_screen(place, ruled):
    person = Person(place)
    process = place.start("--connect", ruled.url, "run", "-a", "on-request", "--", "touch", "new",
                          preexec_fn=person.take_terminal)
    person.until("\n> ")
    with ruled.client() as other:
        asked = other.call("approval/list")["questions"]
        other.call("approval/resolve", {"approvalId": asked[0]["approvalId"], "decision": "approved"})
    finish(process, 0)
    person.until("the question is no longer open")
    assert (place.ws / "new").exists() and person.is_restored()


def test_a_question_of_a_command_that_ends_leaves_the_screen(place, server):
    person = Person(place)
    process = place.start("--connect", server.url, "run", "--watch", "ask", "--", "sh", "-c",
                          f"touch {place.outside}/new & until [ -e go ]; do sleep .05; done; kill $!; wait",
                          preexec_fn=person.take_terminal)
    person.until("\n> ")
    (place.ws / "go").touch()
    person.until("the question is no longer open")
    assert process.wait(WAIT) == 0 and not (place.outside / "new").exists()


def test_a_second_attempt_gets_what_input_is_left(place, server):
    person = Person(place)
    process = place.start("--connect", server.url, "run", "-a", "on-request", "--", "sh", "-c",
                          f"touch {place.outside}/new || exit 1; cat", preexec_fn=person.take_terminal)
    person.until("run this once more?")
    person.until("\n> ")
    person.say("y\n")
    out, err = process.communicate(b"rest", timeout=WAIT)
    assert (out, process.returncode) == (b"rest", 0), err
    assert b"once more, with" in err


@pytest.mark.parametrize("options", [[], ["--timeout", "1h"]])
def test_every_exec_is_judged_there(place, ruled, options):
    place.config('prefix_rule(["mkdir"], decision="forbidden")\n', "home/.config/cordon/rules/default.rules")
    (place.ws / "script").write_text("mkdir new || exit 5\n")
    words = [*options, "--judge", "every-exec", "--", "sh", "./script"]
    assert run(place, ruled, *words).returncode == 5 and not (place.ws / "new").exists()
