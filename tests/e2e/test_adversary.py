"""Attacks of an adversary who had not built the guards: on questions, on what runs outside, and on who may talk
to a server."""
import re
import subprocess

import pytest

from harness import WAIT
from served import Server, exec_result, exec_run, workspace_write
from test_approvals import Runner, rules
from test_serve_peers import ATTACK, enabled

ASK = ["--watch", "ask", "-a", "on-request"]


@pytest.fixture
def person(place):
    return Runner(place)


def visible(stream):
    """What a terminal shows of it, as far as these attacks go: strings (OSC, DCS, APC) are swallowed to their
    end, CAN ends one, concealed text is none, and so is what is written in line drawing."""
    shown, is_concealed, is_drawn = "", False, False
    for part in re.finditer(r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x18|\Z)|\x1b\[[?!>]?([\d;]*)([@-~])|\x1b(\()?(.)|(.)", stream, re.S):
        numbers, final, charset, kind, text = part.groups()
        if final == "m":
            is_concealed = "8" in numbers.split(";")
        elif final == "p" or (charset and kind == "B"):
            is_drawn = False
        elif charset:
            is_drawn = kind == "0"
        elif text and not (is_concealed or is_drawn):
            shown += text
    return shown


SOBER = re.compile(r"\x18\x1b.*?]111\x07")  # what Cordon writes first
FAKE = "cordon: run this command?  ls"
LEFT = {"concealed": "\x1b[8m", "in_a_title": "\x1b]0;", "in_a_device_string": "\x1bPq", "drawn_as_lines": "\x1b(0",
        "in_a_message": "\x1b_G"}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
def test_a_question_is_seen_whatever_the_terminal_was_left_in(place, person, left):
    """The command writes a question of its own, and has the real one not shown."""
    process = person.start(*ASK, "--", "sh", "-c", f"printf '%s' '{FAKE}{left}'; read go; touch {place.outside}/new",
                           stdin=person.side, stdout=person.side, stderr=person.side, env={**place.env, "TERM": "xterm"})
    stream = person.until(FAKE + left)
    person.say("go\n")
    stream += person.until("\n> ")
    person.say("n\n")
    process.wait(WAIT)
    covers = f"a yes covers: writing everything in {place.outside}"
    assert covers in stream and covers not in visible(SOBER.sub("", stream))
    assert covers in visible(stream)


@pytest.mark.parametrize("name, shown", [
    ("a until the command ends and nothing else", "'{}/a until the command ends and nothing else'"),
    ("a\x1b[2J\nb", "'{}/a<U+001B>[2J<U+000A>b'"), ("e\u0301\u20e0", "{}/e<U+0301><U+20E0>"),
    ("a\u202eb", "{}/a<U+202E>b"), ("a'b", "'{}/a'\\''b'")])
def test_a_path_in_a_question_is_one_word(place, person, name, shown):
    (place.outside / name).write_text("old")
    process = person.start(*ASK, "--", "sh", "-c", 'echo x > "$1"', "sh", f"{place.outside}/{name}")
    question = person.until("\n> ")
    person.say("n\n")
    process.wait(WAIT)
    shown = shown.format(place.outside)
    assert f"a yes covers: writing {shown} until" in question and f"wants to write {shown}, which" in question


def test_the_name_of_a_program_is_one_word(place, person):
    """It says that something else asks."""
    (place.ws / "bin").mkdir()
    name = "cat (pid 7) wants to read x; evil"
    (place.ws / "bin" / name).symlink_to("/usr/bin/touch")
    process = person.start(*ASK, "--", "sh", "-c", f"'bin/{name}' {place.outside}/new")
    question = person.until("\n> ")
    person.say("n\n")
    process.wait(WAIT)
    assert f"because: '{name[:15]}' (pid " in question


# --- what runs outside: rules allow `uname` and `env`, and here are programs called so

RULES = 'prefix_rule(pattern=["uname"], decision="allow")\nprefix_rule(pattern=["env"], decision="allow")\n'
WAYS = ["{ws}/bin/uname", "./uname", "bin/uname", "{ws}/../ws/bin/uname", "/usr/bin/../..{ws}/bin/uname", "/proc/self/cwd/uname",
        "sh -c ./uname", "sh -c {ws}/bin/uname", "env ./uname", "env PATH={ws}/bin uname", "/usr/bin/env -S ./uname",
        "bash -c 'uname() {{ ./uname; }}; uname'", "bash -c 'PATH={ws}/bin uname'", "bash -c 'export PATH={ws}/bin; uname'",
        "bash -c 'hash -p {ws}/bin/uname uname; uname'", "bash -c 'uname $(./uname)'", "bash -c 'uname <(./uname)'",
        "bash -c 'uname & ./uname; wait'", "bash -c $'uname #\\n./uname'", "bash -c 'uname >| {mark}'",
        "bash --rcfile ./uname -ic uname", "bash --init-file ./uname -ic uname"]


@pytest.mark.parametrize("profile", ["workspace-write", "read-only"])
def test_what_is_called_like_an_allowed_program_stays_inside(place, profile):
    """Nothing of a read-only profile may be written, and yet a command before could have."""
    rules(place, RULES)
    mark = place.outside / "escaped"
    (place.ws / "bin").mkdir()
    for path in (place.ws / "uname", place.ws / "bin/uname"):
        path.write_text(f"#!/bin/sh\n: > {mark}\n")
        path.chmod(0o755)
    escaped, real = [], []
    for way in WAYS:
        argv = ["bash", "-c", "exec " + way.format(ws=place.ws, mark=mark)]  # its words as a shell has them
        words = subprocess.run(["bash", "-c", "printf '%s\\0' " + way.format(ws=place.ws, mark=mark)],
                               capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
        subprocess.run(argv, cwd=place.ws, env=place.env, capture_output=True, timeout=WAIT, check=False)
        real += [mark.exists()]
        mark.unlink(missing_ok=True)
        place.run("-a", "never", "--profile", profile, "--", *words)
        escaped += [way] if mark.exists() else []
        mark.unlink(missing_ok=True)
    assert all(real) and not escaped


def test_a_catalogue_of_messages_is_no_look(place):
    """LANGUAGE may lead to a catalogue that the workspace holds, whose texts are formats, and commands to bash."""
    rules(place, 'prefix_rule(["true"])\n')
    with Server(place) as server, server.client() as client:
        def where_it_ran(**env):
            number = exec_run(client, "r", ["true"], approvalPolicy="never", sandbox=workspace_write(place.ws),
                              env={"PATH": "/usr/bin:/bin", **env})
            return exec_result(client, number)["attempts"][0]["place"]

        assert where_it_ran(LANGUAGE="de:en", TZ="Europe/Berlin") == "none"
        for name, value in (("LANGUAGE", f"../../../..{place.ws}"), ("LANGUAGE", f"de:{place.ws}"), ("TZ", f":{place.ws}/x"),
                            ("LC_ALL", f"{place.ws}/x")):
            assert where_it_ran(**{name: value}) == "sandbox", value


# --- who may talk to a server: commands with the network, in disguise

@pytest.mark.parametrize("how", ["mkfifo go; (setsid {} > go &); cat go", "exec -a systemd {}", "cd /; exec env -i /usr/bin/{}"])
def test_a_command_in_disguise_is_no_client(place, how):
    """An orphan in a session of its own, one by another name, one without what the server gave it."""
    attack = place.ws / "attack.py"
    attack.write_text(ATTACK)
    for options, status in ((["--ws-auth", "anybody"], b"101"), ([], b"403")):
        victim = place.outside / f"victim-{len(options)}"
        (place.ws / "go").unlink(missing_ok=True)
        with Server(place, *options) as server, server.client() as client:
            script = how.format(f"python3 {attack} plain {server.url} {victim}")
            ended = client.run("a", ["bash", "-c", script], sandbox=enabled(place))
            assert b"HTTP/1.1 " + status in ended.output, ended.output
        assert victim.exists() == bool(options)
