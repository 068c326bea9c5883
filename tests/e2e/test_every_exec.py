"""Each program that a command executes is told (--trace=exec), and judged by the rules (--judge every-exec):
it goes on, waits for an answer, is refused, or runs outside of the sandbox in the place of its caller."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from harness import CORDON, WAIT, finish
from tools import where

RULES = """
prefix_rule(pattern=["uname"], decision="forbidden", justification="it tells too much")
prefix_rule(pattern=["readlink"], decision="allow")
prefix_rule(pattern=["wc"], decision="allow")
prefix_rule(pattern=["sleep"], decision="allow")
prefix_rule(pattern=["env", "outside"], decision="allow")
prefix_rule(pattern=["printenv"], decision="allow")
prefix_rule(pattern=["id"], decision="prompt")
"""

# How each of them executes PROGRAM with its words.
CALLERS = {
    "sh": "printf '%s\\n' '{}' >c.sh; sh c.sh",
    "bash": "printf '%s\\n' '{}' >c.sh; bash c.sh",
    "dash": "printf '%s\\n' '{}' >c.sh; dash c.sh",
    "make": "printf 'all:\\n\\t@%s\\n' '{}' >Makefile; make -s",
    "python": "printf '%s\\n' 'import subprocess, sys; sys.exit(subprocess.call(\"{}\".split()))' "
              ">c.py; /usr/bin/python3 c.py",
    "xargs": "echo {} >words; xargs env -- <words",
    "env": "printf '%s\\n' 'env {}' >c.sh; sh c.sh",
}


@pytest.fixture
def ruled(place):
    rules = place.home / ".config/cordon/rules"
    rules.mkdir(parents=True)
    (rules / "default.rules").write_text(RULES)
    return place


def judged(place, script, *options, code=0, **kwargs):
    """In a file, so that the command itself, which is judged before, shows none of it."""
    (place.ws / "script").write_text(script + "\n")
    return place.json("run", "--json", "--judge", "every-exec", "-a", "on-request", "--trace=exec",
                      *options, "--", "sh", "script", code=code, **kwargs)


def names(result):
    return [pathlib.Path(node["program"]).name for node in result["execs"]]


# --- seen


def test_the_tree_of_a_pipeline(place):
    (place.ws / "script").write_text("echo a | cat | tr a b\n(exit 3)\nsh -c 'exit 4'\n"
                                     "sh -c 'kill -9 $$'\nexec true\n")
    result = place.json("run", "--json", "--trace=exec", "--", "sh", "script")
    nodes = {" ".join(node["argv"]): node for node in result["execs"]}
    root = nodes["sh script"]
    assert root["parent"] is None and root["cwd"] == str(place.ws)
    assert nodes["cat"]["parent"] == nodes["tr a b"]["parent"] == root["id"]
    assert nodes["cat"]["exit_code"] == 0 and nodes["sh -c exit 4"]["exit_code"] == 4
    assert nodes["sh -c kill -9 $$"]["signal"] == signal.SIGKILL
    assert root["replaced"] and nodes["true"]["parent"] == root["id"]
    assert nodes["true"]["pid"] == root["pid"] and nodes["true"]["exit_code"] == 0
    assert all(node["duration_ns"] >= 0 for node in result["execs"] if not node["replaced"])


@pytest.mark.parametrize("program", ["make"])
def test_the_tree_of_make(place, program):
    (place.ws / "Makefile").write_text("all: a b\na:\n\tcat /dev/null >a\nb:\n\tcat /dev/null >b\n")
    result = place.json("run", "--json", "--trace=exec", "--", program, "-s", "-j2")
    nodes = result["execs"]
    make = next(node for node in nodes if node["argv"][0] == "make")
    cats = [node for node in nodes if node["argv"][0] == "cat"]
    assert len(cats) == 2

    def above(node):
        while node["parent"]:
            node = next(other for other in nodes if other["id"] == node["parent"])
        return node["id"]
    assert {above(cat) for cat in cats} == {make["id"]}


@where("strace")
def test_it_agrees_with_strace(place):
    script = "echo a | cat; sh -c 'ls >l; true'; env A=1 cat l; cp l m"
    subprocess.run(["strace", "-ff", "-qq", "-o", place.base / "calls", "-e", "trace=execve",
                    "sh", "-c", script], cwd=place.ws, env=place.env, check=True,
                   capture_output=True)
    calls = [line for file in place.base.glob("calls.*") for line in file.read_text().splitlines()]
    wanted = sorted(re.search(r'execve\("([^"]*)"', line).group(1).rsplit("/", 1)[1]
                    for line in calls if line.endswith("= 0"))
    result = place.json("run", "--json", "--trace=exec", "--", "sh", "-c", script)
    assert sorted(node["argv"][0].rsplit("/", 1)[-1] for node in result["execs"]) == wanted


# --- judged


@pytest.mark.parametrize("caller", CALLERS)
def test_what_a_rule_forbids_is_not_executed(ruled, caller):
    result = judged(ruled, CALLERS[caller].format("uname -a") + "; echo $? >status")
    assert "uname" not in names(result) and "Linux" not in result["stdout"]
    assert int((ruled.ws / "status").read_text()) != 0
    denial = next(denial for denial in result["denials"] if denial["path"].endswith("uname"))
    assert denial["operation"] == "execute" and denial["errno"] == "EACCES"
    assert "the rule `uname`" in denial["decided_by"] and denial["evidence"] == "fact"


@pytest.mark.parametrize("caller", CALLERS)
def test_what_a_rule_lets_out_runs_outside(ruled, caller):
    result = judged(ruled, CALLERS[caller].format("readlink /proc/self/ns/mnt"))
    assert result["stdout"].strip() == os.readlink("/proc/self/ns/mnt"), result
    node = next(node for node in result["execs"] if node["program"].endswith("readlink"))
    assert node["outside"] and node["exit_code"] == 0


def test_the_same_inside_without(ruled):
    (ruled.ws / "script").write_text("readlink /proc/self/ns/mnt\n")
    result = ruled.json("run", "--json", "-a", "on-request", "--", "sh", "script")
    assert result["stdout"].strip() != os.readlink("/proc/self/ns/mnt")


def test_nothing_leaves_a_sandbox_within(ruled):
    """The rule is the outer one's: what the inner one runs stays in it."""
    (ruled.ws / "inner").write_text("readlink /proc/self/ns/mnt; env outside touch new; echo end\n")
    result = judged(ruled, f"{CORDON} run -q -p read-only -- sh inner")
    assert result["stdout"].split()[-1] == "end", result
    assert os.readlink("/proc/self/ns/mnt") not in result["stdout"]
    assert not any(node["outside"] for node in result["execs"])


def test_everything_else_stays_inside(ruled):
    denied = str(ruled.outside / "denied")
    result = judged(ruled, f"stat -Lc %i /proc/self/ns/mnt; touch {denied}; true")
    inode = re.search(r"\d+", os.readlink("/proc/self/ns/mnt")).group()
    assert result["stdout"].strip() != inode
    assert any(denial["path"] == denied for denial in result["denials"])


def test_input_output_and_end_of_what_runs_outside(ruled):
    result = judged(ruled, "printf abc | wc -c; wc missing; echo $?; wc -c <script >out 2>&1; "
                           "timeout 0.1 sleep 60; echo $?; "
                           "sh -c 'sleep 60 & kill -KILL $!; wait $!'; echo $?")
    lines = result["stdout"].split()
    assert lines == ["3", "1", "124", "137"], result
    assert (ruled.ws / "out").read_text().split()[0] == str((ruled.ws / "script").stat().st_size)


def test_what_runs_outside_ends_with_the_command(ruled):
    marker = f"60.{os.getpid()}"
    (ruled.ws / "script").write_text(f"echo up; sleep {marker}; echo over\n")
    process = ruled.start("run", "--judge", "every-exec", "-a", "on-request", "--", "sh", "script")
    assert process.stdout.readline() == b"up\n"

    def running():
        return [pid for pid in pathlib.Path("/proc").glob("[0-9]*")
                if marker.encode() in words_of(pid) and b"script" not in words_of(pid)]
    deadline = time.monotonic() + WAIT
    while not running() and time.monotonic() < deadline:
        pass
    assert running()
    process.terminate()
    finish(process)
    assert not running()


def words_of(pid):
    try:
        return (pid / "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_caller_chooses_nothing_of_it_but_the_words(ruled):
    """Neither environment nor PATH, and no program that a command can write."""
    (ruled.ws / "bin").mkdir()
    planted = ruled.ws / "bin/readlink"
    planted.write_text("#!/bin/sh\necho planted $0; stat -Lc %i /proc/self/ns/mnt\n")
    planted.chmod(0o755)
    result = judged(ruled, "PATH=$PWD/bin:$PATH readlink /proc/self/ns/mnt\n"
                           "LEAKED=yes LD_PRELOAD=/x.so env outside\n"
                           "mkdir d; cd d; readlink -f .")
    inode = re.search(r"\d+", os.readlink("/proc/self/ns/mnt")).group()
    assert "planted" in result["stdout"] and inode not in result["stdout"]
    assert "LEAKED" not in result["stdout"]
    assert str(ruled.ws / "d") in result["stdout"]


def test_what_runs_outside_finds_nothing_that_was_planted(ruled):
    """Nor by Cordon's own environment: no folder that commands can write is in its $PATH."""
    (ruled.ws / "bin").mkdir()
    result = judged(ruled, "printenv", env={"PATH": f"{ruled.env['PATH']}:{ruled.ws}/bin:.", "MINE": "1",
                                            "PYTHONPATH": str(ruled.ws), "BASH_ENV": f"{ruled.ws}/x"})
    assert [node for node in result["execs"] if node["outside"]] and "MINE=1\n" in result["stdout"]
    [path] = re.findall("^PATH=(.*)$", result["stdout"], re.M)
    assert str(ruled.ws) not in path and "." not in path.split(":")
    assert "PYTHONPATH" not in result["stdout"] and "BASH_ENV" not in result["stdout"]


def test_a_name_does_not_let_out(ruled):
    """`exec -a` chooses argv[0]: what counts is the file."""
    result = judged(ruled, "bash -c 'exec -a readlink stat -Lc %i /proc/self/ns/mnt'")
    assert re.search(r"\d+", os.readlink("/proc/self/ns/mnt")).group() not in result["stdout"]


def test_a_name_holds(ruled):
    result = judged(ruled, "bash -c 'exec -a uname true'; echo $?")
    assert result["stdout"] == "126\n"


# --- asked


def hook(place, decision, thinks=0.3):
    script = place.base / "hook"
    script.write_text(f"#!/bin/sh\ncat >>{place.base}/asked; echo >>{place.base}/asked\n"
                      f"sleep {thinks}\necho '{{\"decision\": \"{decision}\"}}'\n")
    script.chmod(0o755)
    return ["--approval-hook", str(script)]


def asked(place):
    file = place.base / "asked"
    text = file.read_text() if file.exists() else ""
    decoder, questions = json.JSONDecoder(), []
    while text.strip():
        question, end = decoder.raw_decode(text.lstrip())
        questions.append(question)
        text = text.lstrip()[end:]
    return questions


@pytest.mark.parametrize("caller", CALLERS)
def test_yes_and_no(ruled, caller):
    script = CALLERS[caller].format("id -u")
    result = judged(ruled, script, *hook(ruled, "approved"))
    assert result["stdout"] == f"{os.getuid()}\n", result
    assert [question["argv"] for question in asked(ruled)] == [["id", "-u"]]
    (ruled.base / "asked").unlink()
    result = judged(ruled, script + "; true", *hook(ruled, "denied"))
    assert result["stdout"] == "" and len(asked(ruled)) >= 1
    assert any(denial["operation"] == "execute" and denial["path"].endswith("/id")
               for denial in result["denials"])


def test_a_yes_lets_out_only_as_in_codex(ruled):
    (ruled.home / ".config/cordon/rules/default.rules").write_text(
        'prefix_rule(pattern=["stat"], decision="prompt")\n')
    script = "stat -Lc %i /proc/self/ns/mnt"
    assert judged(ruled, script, *hook(ruled, "approved_without_sandbox"), code=126)["stdout"] == ""
    assert "approved_without_sandbox" not in asked(ruled)[0]["available_decisions"]
    assert asked(ruled)[0]["covers"] == "this program, in the sandbox"
    result = judged(ruled, script, "--yes-means-unsandboxed", *hook(ruled, "approved_without_sandbox"))
    inode = re.search(r"\d+", os.readlink("/proc/self/ns/mnt")).group()
    assert result["stdout"].strip() == inode, result


def test_clocks_stand_still(ruled):
    result = judged(ruled, "id -u; id -g", *hook(ruled, "approved", thinks=0.6), "--timeout", "1s")
    assert result["end"] == "exited" and not result["timed_out"]


def test_without_anybody_to_ask_it_is_no(ruled):
    result = judged(ruled, "id -u; echo $?")
    assert result["stdout"] == "126\n"


def test_without_a_policy_what_is_forbidden_is_held(ruled):
    (ruled.ws / "script").write_text("uname; id -u; readlink /proc/self/ns/mnt\n")
    done = ruled.run("--judge", "every-exec", "--", "sh", "script")
    out = done.stdout.split()
    assert out[0] == str(os.getuid()) and out[1] != os.readlink("/proc/self/ns/mnt")


def test_by_the_profile(ruled):
    ruled.config('default_permissions = "mine"\napproval_policy = "on-request"\n'
                 '[permissions.mine]\nextends = ":workspace"\njudge = "every-exec"\n')
    (ruled.ws / "script").write_text("uname; echo $?\n")
    assert ruled.run("--", "sh", "script").stdout == "126\n"


def test_it_takes_the_guard(ruled):
    done = ruled.run("--judge", "every-exec", "--watch", "off", "--", "true")
    assert done.returncode == 125 and "want watch not to be" in done.stderr


def test_a_real_repository(ruled):
    """git with an alias, and what it executes."""
    subprocess.run(["git", "init", "-q", "."], cwd=ruled.ws, env=ruled.env, check=True)
    script = ("git config alias.kind '!uname' && git kind; "
              "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline | wc -l")
    result = judged(ruled, script, "--writable", ".git", "--writable", ".git/config")
    assert result["stdout"].split()[-1:] == ["1"], result
    assert any(denial["path"].endswith("uname") for denial in result["denials"])
