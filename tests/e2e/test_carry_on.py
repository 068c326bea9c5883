"""Grant and carry on: what the sandbox refuses is held while somebody is asked, and the program notices
nothing but the time.

The corpus (tests/cases/held/carry_on.toml) are real programs with a hook that says yes; what comes of a no,
of time that is up, of several that wait, and of commands that end meanwhile is here."""
import json
import shutil
import signal
import subprocess
import time
import tomllib
import warnings

import pytest

from events import wait_in
from harness import TOP, WAIT, finish
from person import Person
from served import Server, exec_result, exec_run, workspace_write
from tools import Sides, passes

CASES = TOP / "tests/cases/held/carry_on.toml"
GIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org", "GIT_TERMINAL_PROMPT": "0",
       "GIT_AUTHOR_DATE": "2001-02-03T04:05:06Z", "GIT_COMMITTER_DATE": "2001-02-03T04:05:06Z"}


def cases():
    """The cases that this machine has the programs for; of the others a warning is left."""
    table = tomllib.loads(CASES.read_text(encoding="utf-8"))
    absent = sorted({program for case in table.values() for program in case.get("needs", [])
                     if shutil.which(program) is None})
    if absent:
        warnings.warn(f"carry_on.toml: no cases with {', '.join(absent)}, which this machine lacks")
    return [pytest.param(case, id=title) for title, case in table.items()
            if not set(case.get("needs", [])) & set(absent)]


# --- who answers


class Hook:
    """A program that is asked; what it says, and after how long, is in files."""

    def __init__(self, place, answer="approved", thinks="0"):
        self.path, self.log = place.base / "hook", place.base / "asked"
        self.path.write_text(f"#!/bin/sh\ncat >> {self.log}\nsleep {thinks}\n"
                             f"echo '{{\"decision\": \"{answer}\"}}'\n")
        self.path.chmod(0o755)

    @property
    def words(self):
        return ["--watch", "ask", "-a", "on-request", "--approval-hook", str(self.path)]

    @property
    def asked(self):
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def fill(place):
    for name in ("old", "note"):
        (place.outside / name).write_text("a\n")
    tree = place.outside / "tree"
    tree.mkdir()
    for name in ("a", "b"):
        (tree / name).write_text(name)


@pytest.fixture
def out(place):
    fill(place)
    place.env["OUTSIDE"] = str(place.outside)
    return place.outside


# --- the corpus


def play(place, case, **kwargs):
    place.env.update({name: value.replace("$OUTSIDE", str(place.outside))
                      for name, value in {**GIT, **case.get("env", {})}.items()})
    subprocess.run(["bash", "-c", case.get("setup", "true")], cwd=place.ws,
                   env={**place.env, "WS": str(place.ws)}, check=True, timeout=WAIT)
    hook = Hook(place, **kwargs)
    sides = Sides(place, loose=[("pid [0-9]+", "pid"), *case.get("loose", [])], unlike=case.get("unlike", []),
                  untold=case.get("untold", []))
    sides.folders = (*sides.folders, place.outside)
    sides.is_alike(case["run"], *hook.words, code=case.get("code", 0))
    assert hook.asked and all(question["kind"] == "held" for question in hook.asked)


@pytest.mark.parametrize("case", cases())
def test_a_yes_and_it_carries_on(place, out, case):
    play(place, case)


@pytest.mark.parametrize("case", cases())
def test_also_with_time_to_think(place, out, case):
    play(place, case, thinks="0.1")


# --- other answers


@pytest.mark.parametrize("answer, code, decision", [("denied", 1, "denied"), ("abort", 143, "abort")])
def test_no(place, out, answer, code, decision):
    """A no is the error that it would have been; an abort ends the command as well. There is no retry."""
    hook = Hook(place, answer)
    result = place.json("run", "--json", *hook.words, "--", "sh", "-c", "touch $OUTSIDE/new; exec sleep 0",
                        code=0 if answer == "denied" else code)
    assert not (out / "new").exists() and len(hook.asked) == 1
    (question,) = result["approval"]["questions"]
    assert question["kind"] == "held" and question["answer"]["decision"] == decision
    assert not question["done"]
    if answer == "denied":
        assert result["end"] == "exited" and "Read-only" in result["stderr"]
        assert [denial["path"] for denial in result["denials"]] == [str(out / "new")]
    else:
        assert result["end"] == "cancelled"


def test_after_a_no_nothing_is_run_once_more(place, out):
    hook = Hook(place, "denied")
    ran = place.run(*hook.words, "--", "touch", f"{out}/new")
    assert ran.returncode == 1 and len(hook.asked) == 1
    assert "once more" not in ran.stderr


def test_a_question_says_who_wants_what(place, out):
    hook = Hook(place)
    passes(place.run(*hook.words, "--", "sh", "-c", f"echo a > {out}/old; echo b > {out}/new"))
    old, new = hook.asked
    assert f"wants to write {out}/old, which the profile workspace-write does not allow" in old["reason"]
    assert old["reason"].startswith("sh (pid ")
    assert old["covers"] == f"writing {out}/old until the command ends"
    assert new["covers"] == f"writing everything in {out} until the command ends"
    assert old["available_decisions"] == ["approved", "denied", "abort"]


def test_time_is_up(place, out, person):
    """Nobody answers: a no, and the command goes on."""
    process = person.start("--approval-timeout", "50ms", "--watch", "ask", "-a", "on-request", "--",
                           "sh", "-c", f"touch {out}/new || echo refused")
    stdout, _ = finish(process, 0)
    assert stdout == b"refused\n" and not (out / "new").exists()


@pytest.mark.parametrize("words", [["-a", "never"], [], ["--watch", "facts", "-a", "on-request"]])
def test_where_nobody_is_asked_nothing_is_held(place, out, words):
    ran = place.run("--watch", "ask", *words, "--", "sh", "-c", f"touch {out}/new || echo refused",
                    start_new_session=True)
    assert ran.stdout == "refused\n" and not (out / "new").exists()


def test_the_time_of_the_command_stands_still(place, out):
    hook = Hook(place, thinks="1")
    result = place.json("run", "--json", "--timeout", "900ms", *hook.words, "--", "touch", f"{out}/new")
    assert result["end"] == "exited" and result["wall_time_ns"] > 900_000_000
    assert result["approval"]["questions"][0]["held_ms"] >= 900


def test_a_call_that_is_given_up_takes_its_question_along(place, out):
    """The command kills what waits; what is asked is taken back, and the hook ended."""
    hook = Hook(place, thinks=f"0; : > {place.ws}/go; sleep 100")
    result = place.json("run", "--json", *hook.words, "--", "sh", "-c",
                        f"touch {out}/new & until [ -e go ]; do sleep 0.05; done; kill -KILL $!; wait $!", code=137)
    (question,) = result["approval"]["questions"]
    assert question.get("answer") is None and not question["done"] and question["held_ms"] > 0
    assert not (out / "new").exists()


def test_what_is_asked_ends_with_its_command(place, out):
    hook = Hook(place, thinks="100")
    process = place.start("run", *hook.words, "--", "touch", f"{out}/new")
    wait_in(place.base, hook.log.exists, WAIT)
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    assert not (out / "new").exists()


def test_calls_that_one_yes_covers_are_one_question(place, out):
    hook = Hook(place, thinks="0.5")
    passes(place.run(*hook.words, "--", "sh", "-c",
                     "for i in 1 2 3 4 5 6 7 8 9; do touch $OUTSIDE/n$i & done; wait; ls $OUTSIDE/n?"))
    assert len(hook.asked) == 1 and len(list(out.glob("n?"))) == 9


def test_other_processes_go_on_meanwhile(place, out):
    """The one that waits is let go by what the other has done."""
    gate = place.ws / "gate"
    hook = Hook(place)
    hook.path.write_text(f"#!/bin/sh\ncat >> {hook.log}\nuntil [ -e {gate} ]; do sleep 0.01; done\n"
                         "echo '{\"decision\": \"approved\"}'\n")
    passes(place.run(*hook.words, "--", "sh", "-c", f"touch {out}/new & sleep 0.2; echo x > gate; wait"))
    assert (out / "new").exists()


def test_the_audit_log_has_it(place, out):
    hook = Hook(place)
    passes(place.run(*hook.words, "--", "touch", f"{out}/new"))
    records = [json.loads(line) for line in passes(place.cordon("log", "--json")).splitlines()]
    (held,) = [record["body"] for record in records if record["event"] == "held"]
    assert held["decision"] == "approved" and held["by"] == "hook" and held["done"] is True
    assert held["covers"] == f"writing everything in {out} until the command ends"
    assert "approved, by hook after" in passes(place.cordon("log"))


def test_a_place_that_may_be_read_when_asked(place, out):
    """Where this host has no watchpoints it is refused without a question."""
    (place.ws / "secret").mkdir()
    (place.ws / "secret/file").write_text("it\n")
    place.config(f'default_permissions = "dev"\n[permissions.dev]\nextends = ":workspace"\n'
                 f'[permissions.dev.filesystem]\n"{place.ws}/secret" = "ask"\n')
    hook = Hook(place)
    ran = place.run(*hook.words, "--", "cat", "secret/file")
    if json.loads(place.cordon("doctor", "--json").stdout)["watchpoints"]["available"]:
        assert passes(ran) == "it\n"
        assert hook.asked[0]["covers"] == f"reading {place.ws}/secret until the command ends"
    else:
        assert ran.returncode == 1 and hook.asked == []


def test_what_belongs_to_cordon_is_not_asked_about(place, out):
    place.config("")
    hook = Hook(place)
    ran = place.run(*hook.words, "--", "touch", f"{place.home}/.config/cordon/config.toml")
    assert ran.returncode == 1 and hook.asked == []


BELIEVED = [".git/hooks/h", ".git/config", ".git/info/x", ".git/modules/x", ".vscode/x", "deep/.git/hooks/h",
            "deep/.git/config", "deep/.claude/x", ".mcp.json", "bare/.gemini"]


@pytest.mark.parametrize("name", BELIEVED)
def test_a_yes_to_a_folder_opens_nothing_that_programs_believe(place, out, name):
    """It was there before; or it would be right in the folder, as in a workspace."""
    subprocess.run(["sh", "-c", "git init -q . && git init -q deep && mkdir deep/.claude .vscode bare && touch bare/.gemini"],
                   cwd=out, env=place.env, check=True)
    hook = Hook(place)
    ran = place.run(*hook.words, "--", "sh", "-c", f"cd {out}; touch new || exit 9; mkdir -p {name}; echo x >>{name}")
    assert ran.returncode not in (0, 9) and [question["covers"] for question in hook.asked] == [
        f"writing everything in {out} until the command ends"]


def test_a_yes_to_a_folder_is_enough_for_git(place, out):
    subprocess.run(["sh", "-c", "git init -q ."], cwd=out, env=place.env, check=True)
    place.env.update(GIT)
    hook = Hook(place)
    ran = place.run(*hook.words, "--", "sh", "-c", f"cd {out}; touch new && git add new && git commit -qm a && "
                    "git init -q sub && cd sub && touch new && git add . && git commit -qm b")
    assert ran.returncode == 0 and len(hook.asked) == 1, ran.stderr


def test_a_git_directory_does_not_go_with_its_folder(place, out):
    """It would make room for another."""
    subprocess.run(["git", "init", "-q", "."], cwd=out, env=place.env, check=True)
    hook = Hook(place)
    assert place.run(*hook.words, "--", "sh", "-c", f"cd {out}; touch new; mv .git x").returncode == 0
    assert len(hook.asked) == 2 and f"writing {out}/.git" in hook.asked[1]["covers"]


# --- a person at the terminal


class Runner(Person):
    def __init__(self, place):
        super().__init__(place)
        self.place = place

    def start(self, *words, **kwargs):
        return self.place.start("run", *words, preexec_fn=self.take_terminal, **kwargs)


@pytest.fixture
def person(place):
    return Runner(place)


ASK = ["--watch", "ask", "-a", "on-request"]
HELD = "allow this, while the command waits?"


@pytest.mark.parametrize("key, exists", [("y", True), ("n", False)])
def test_at_the_terminal_with_pipes(place, out, person, key, exists):
    process = person.start(*ASK, "--", "sh", "-c", f"echo before; touch {out}/new; echo behind; cat")
    person.until(HELD)
    assert f"writing everything in {out} until the command ends" in person.until("\n> ")
    person.say(f"{key}\n")
    stdout, stderr = process.communicate(b"input\n", timeout=WAIT)
    assert stdout == b"before\nbehind\ninput\n" and (b"Read-only" in stderr) != exists
    assert (out / "new").exists() == exists and person.is_restored()


def test_at_the_terminal_of_the_command(place, out, person):
    """The command has a terminal of its own, which is the person's but for the question."""
    script = (f"stty -echo; echo ready; read a; touch {out}/new; echo answered; (while read b && [ $b != end ]; "
              "do echo got $b; done)")
    process = person.start(*ASK, "--", "sh", "-c", script, stdin=person.side, stdout=person.side,
                           stderr=person.side)
    person.until("ready")
    person.say("word\n")
    person.until(HELD)
    person.until("\n> ")
    assert person.is_restored()  # lines again, and Ctrl-C is ours
    person.say("y\n")
    person.until("answered")
    person.say("later\n")
    person.until("got later")
    person.say("end\n")
    assert process.wait(WAIT) == 0 and person.is_restored() and (out / "new").exists()


def test_output_waits_for_the_answer(place, out, person):
    """What another process of the command writes does not go into the question."""
    script = f"touch {out}/new & while [ ! -e go ]; do sleep 0.05; done; echo noise; wait; echo behind"
    process = person.start(*ASK, "--", "sh", "-c", script, stdin=person.side, stdout=person.side,
                           stderr=person.side)
    person.until(HELD)
    person.until("\n> ")
    (place.ws / "go").touch()
    assert not person.is_shown_more(0.5)
    person.say("y\n")
    assert "noise" in person.until("behind")
    assert process.wait(WAIT) == 0 and person.is_restored()


def test_ctrl_c_at_a_question_is_the_command_s(place, out, person):
    process = person.start(*ASK, "--", "touch", f"{out}/new", stdin=person.side, stdout=person.side,
                           stderr=person.side)
    person.until(HELD)
    person.until("\n> ")
    person.say("\x03")
    assert process.wait(WAIT) == 130
    assert person.is_restored() and not (out / "new").exists()


# --- clients of a server


def asking(place):
    sandbox = workspace_write(place.ws)
    entries = sandbox["permissions"]["file_system"]["entries"]
    sandbox["permissions"]["file_system"]["entries"] = entries[:2]
    sandbox["permissions"]["watch"] = "ask"
    return sandbox


@pytest.fixture
def server(place, out):
    with Server(place) as server:
        yield server


def reply(client, question, decision):
    client.send({"id": question["id"], "result": {"decision": decision}})


def test_runs_of_a_client(place, out, server):
    """Two that wait for the same are one question; yes for the session is not asked again."""
    with server.client() as client:
        numbers = [exec_run(client, name, f"touch {out}/{name}", sandbox=asking(place)) for name in ("a", "b")]
        question = client.event("approval/request")
        for name in ("a", "b"):
            client.event("exec/event", lambda params, name=name: params["runId"] == name
                         and params["event"] == "asked")
        assert question["params"]["question"]["kind"] == "held"
        reply(client, question, "approved_for_session")
        for number in numbers:
            got = exec_result(client, number)
            assert got["questions"][0]["answer"]["decision"] == "approved_for_session"
            assert got["questions"][0]["done"] and got["attempts"][0]["result"]["exit_code"] == 0
        got = exec_result(client, exec_run(client, "c", f"touch {out}/c", sandbox=asking(place)))
        assert got["questions"][0]["answer"]["by"] == "session"
        assert all((out / name).exists() for name in "abc")
        held = [event["params"] for event in client.events if event["method"] == "exec/event"
                and event["params"]["event"] == "held"]
        assert len(held) == 3 and all(params["done"] for params in held)


def test_a_process_of_a_client(place, out, server):
    with server.client() as client:
        for name, decision, code in (("yes", "approved", 0), ("no", "denied", 1), ("stop", "abort", 143)):
            client.start(name, f"touch {out}/{name}", sandbox=asking(place))
            question = client.event("approval/request")
            assert question["params"]["question"]["argv"] == ["/bin/sh", "-c", f"touch {out}/{name}"]
            reply(client, question, decision)
            assert client.follow(name).code == code
            assert (out / name).exists() == (name == "yes")


def test_a_session_of_a_model(place, out, server):
    """Its time to yield stands still while the client is asked."""
    with server.client() as client:
        number = client.request("session/exec", {
            "cmd": f"touch {out}/new; echo done", "cwd": f"file://{place.ws}", "shell": "/bin/sh",
            "login": False, "yieldTimeMs": 250, "sandbox": asking(place)})
        question = client.event("approval/request")
        assert question["params"]["requestId"] == number
        time.sleep(0.5)  # longer than what it waits otherwise
        reply(client, question, "approved")
        message = client.answer(number)
        assert message["result"]["reason"] == "ended" and "done" in message["result"]["text"]
        assert (out / "new").exists()


def test_a_client_that_goes_while_it_is_asked(place, out, server):
    """The process goes on, with a no."""
    with server.client() as watcher:
        with server.client() as client:
            client.start("p", f"touch {out}/new || echo refused > answer", sandbox=asking(place))
            client.event("approval/request")
            client.sock.close()
        wait_in(place.ws, (place.ws / "answer").exists, WAIT)
        assert not (out / "new").exists()
        assert watcher.call("approval/list")["questions"] == []


def test_another_client_answers(place, out, server):
    with server.client() as client, server.client() as reviewer:
        client.start("p", f"touch {out}/new", sandbox=asking(place))
        question = client.event("approval/request")["params"]
        (listed,) = reviewer.call("approval/list")["questions"]
        assert listed["approvalId"] == question["approvalId"] and listed["question"]["kind"] == "held"
        reviewer.call("approval/resolve", {"approvalId": listed["approvalId"], "decision": "approved"})
        assert client.follow("p").code == 0 and (out / "new").exists()
