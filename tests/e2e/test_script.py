"""`cordon script`: sessions as a model uses them, and real programs driven through them.

tests/cases/script/NAME.jsonl is played, and NAME.expected is what has to come, byte for byte.
"""
import json
import os
import resource
import select
import signal

import pytest

from harness import CORDON, TOP, WAIT, cpu_ticks, finish
from processes import children, descendants, has_ended
from tools import has_account, need

CASES = sorted((TOP / "tests/cases/script").glob("*.jsonl"))


class Talk:
    """A script that is written line by line, each after the answer to the one before."""

    def __init__(self, place, *options):
        self.process = place.start("script", *options, "-", text=True)

    def call(self, name, **parameters):
        self.process.stdin.write(json.dumps({name: parameters}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["call"] == name
        return answer

    def run(self, cmd, **parameters):
        return self.call("exec_command", cmd=cmd, login=False, **parameters)

    def write(self, session, chars="", **parameters):
        parameters.setdefault("yield_time_ms", 30000)
        return self.call("write_stdin", session_id=session, chars=chars, **parameters)

    def wait(self, session, **parameters):
        return self.call("wait_for", session_id=session, **parameters)

    def end(self):
        out, err = finish(self.process, 0)
        assert (out, err) == ("", "")


@pytest.fixture
def talk(place):
    talk = Talk(place)
    yield talk
    talk.end()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_cases(place, case):
    ran = place.cordon("script", "--fixed-times", case)
    assert (ran.returncode, ran.stderr) == (0, "")
    golden, got = case.with_suffix(".expected"), ran.stdout.replace(str(place.ws), "WS")
    if "CORDON_UPDATE_GOLDEN" in os.environ:
        golden.write_text(got)
    assert got == golden.read_text()


# --- what a model relies on (docs/model-calls.md)


def test_shell_state_persists_across_writes_and_nowhere_else(talk):
    shell = talk.run("PS1='go> ' sh", tty=True, text="go> ")["session_id"]
    talk.write(shell, "VALUE=kept; cd /usr\n", text="go> ")
    answer = talk.write(shell, "echo \"<$VALUE:$PWD>\"\n", text="<kept:/usr>")
    assert answer["reason"] == "met" and answer["session_id"] == shell
    fresh = talk.run("echo \"<$VALUE:$PWD>\"")
    assert fresh["output"].startswith("<:") and "/usr" not in fresh["output"]


def test_a_short_yield_misses_what_a_later_poll_gets(talk):
    answer = talk.run("echo early; read x; echo late", stdin="pipe", yield_time_ms=250)
    assert (answer["output"], answer["reason"]) == ("early\n", "yielded")
    answer = talk.write(answer["session_id"], "\n")
    assert (answer["output"], answer["reason"], answer["exit_code"]) == ("late\n", "ended", 0)


def test_a_poll_after_the_end_is_answered_with_the_end(talk):
    session = talk.run("echo x; read x; exit 5", stdin="pipe", text="x")["session_id"]
    assert talk.write(session, "\n")["exit_code"] == 5
    answer = talk.write(session)
    assert answer["error"] == "not-found"
    assert answer["ended"] == {"fate": "exited", "number": 5}


def test_the_environment_is_that_of_a_session(place):
    talk = Talk(place, "--env", "PAGER=more", "--env", "MINE=1")
    names = "NO_COLOR TERM LANG LC_CTYPE LC_ALL COLORTERM PAGER GIT_PAGER GH_PAGER CODEX_CI MINE"
    answer = talk.run(f"for n in {names}; do eval echo $n=\\${{$n-unset}}; done")
    assert answer["output"].split() == [
        "NO_COLOR=1", "TERM=dumb", "LANG=C.UTF-8", "LC_CTYPE=C.UTF-8", "LC_ALL=C.UTF-8",
        "COLORTERM=", "PAGER=more", "GIT_PAGER=cat", "GH_PAGER=cat", "CODEX_CI=1", "MINE=1"]
    talk.end()


def test_it_is_a_sandbox(place, talk):
    answer = talk.run(f"touch {place.outside}/x")
    assert answer["exit_code"] != 0 and "Read-only file system" in answer["output"]
    assert talk.run("touch x")["exit_code"] == 0
    assert (place.ws / "x").exists() and not (place.outside / "x").exists()


# --- limits and denials


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])
def test_what_was_refused_is_said(place, talk, tty):
    answer = talk.run(f"LC_ALL=C touch {place.outside}/x", tty=tty)
    assert len(answer["denials"]) == 1
    denial = answer["denials"][0]
    assert denial["operation"] == "write" and denial["path"] == f"{place.outside}/x"
    assert denial["source"] == "sandbox" and "--writable" in denial["remedy"]
    assert "denials" not in talk.run("exit 1", tty=tty)


def test_a_denial_is_said_by_the_call_that_tells_the_end(place, talk):
    script = f"echo up; read x; LC_ALL=C touch {place.outside}/x"
    answer = talk.run(script, stdin="pipe", text="up\n")
    assert "denials" not in answer
    answer = talk.write(answer["session_id"], "\n")
    assert [denial["path"] for denial in answer["denials"]] == [f"{place.outside}/x"]


def test_a_denial_behind_much_output_is_found(place, talk):
    """Only the beginning and the end of what is retained are looked at."""
    script = f"head -c 3000000 /dev/zero | tr '\\0' '\\n'; LC_ALL=C touch {place.outside}/x"
    answer = talk.run(script, yield_time_ms=30000, max_output_tokens=10)
    assert [denial["path"] for denial in answer["denials"]] == [f"{place.outside}/x"]
    assert answer["bytes"] > 3000000


def test_nothing_is_refused_without_a_sandbox(place):
    talk = Talk(place, "--sandbox", "disabled")
    assert "denials" not in talk.run("LC_ALL=C touch /nowhere/x")
    talk.end()


@pytest.mark.parametrize("script, limits, name", [
    ("exec head -c 5000 /dev/zero > large", {"file_size": 1000}, "file-size"),
    ("while :; do :; done", {"cpu_time_ms": 900}, "cpu-time"),
])
def test_a_limit_that_was_reached_is_said(talk, script, limits, name):
    answer = talk.run(script, limits=limits, yield_time_ms=30000)
    assert answer["exit_code"] > 128
    assert answer["limits"][name]["hit"] and answer["limits"][name]["by"] == "rlimit"


def test_limits_of_memory_and_processes(talk):
    """Whether a cgroup or rlimits keep them depends on the host; 256 MiB are too many for both."""
    answer = talk.run("/usr/bin/python3 -c 'b\"x\" * (256 << 20)'",
                      limits={"memory": 128 << 20, "pids": 1000}, tty=True)
    assert answer["exit_code"] != 0
    assert {name: limit["value"] for name, limit in answer["limits"].items()} == {
        "memory": 128 << 20, "pids": 1000}
    assert {limit["by"] for limit in answer["limits"].values()} <= {"rlimit", "cgroup"}


# --- real programs


def test_python(talk):
    repl = talk.run("/usr/bin/python3 -q", tty=True, text=">>> ")["session_id"]
    talk.write(repl, "x = 20\n", text=">>> ")
    # with its prompt: what is typed before it counts for another mode of the terminal
    assert talk.write(repl, "print(2 * x + 1)\n", text="41\r\n>>> ")["reason"] == "met"
    assert talk.write(repl, "\x04")["exit_code"] == 0


def test_bash_and_its_keys(talk):
    shell = talk.run("PS1='go> ' bash --norc -i", tty=True, text="go> ")["session_id"]
    # in one process: a shell stopped in the middle of a vfork() would hold everything up
    loop = ("/usr/bin/python3 -c 'import os, signal; "
            'signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"a" b"gain\\n")); '
            'os.write(1, b"u" b"p\\n"); [signal.pause() for _ in iter(int, 1)]\'\n')
    assert talk.write(shell, loop, text="up\r\n")["reason"] == "met"
    assert talk.write(shell, "\x1a", text="go> ")["reason"] == "met"
    assert talk.write(shell, "jobs\n", text="go> ")["reason"] == "met"
    assert talk.write(shell, "fg\n", text="again\r\n")["reason"] == "met"
    assert talk.write(shell, "\x03", text="go> ")["reason"] == "met"
    assert talk.write(shell, "echo code=$?\n", text="code=130\r\ngo> ")["reason"] == "met"
    assert talk.write(shell, "\x04")["reason"] == "ended"


def test_the_end_of_file_and_the_interrupt_of_a_pipe(talk):
    """Without a terminal there are no keys: the input is closed, and U+0003 alone interrupts."""
    session = talk.run("echo up; exec cat", stdin="pipe", text="up\n")["session_id"]
    assert talk.write(session, "a\x03b\n", text="a\x03b\n")["reason"] == "met"
    answer = talk.write(session, "last", close=True)
    assert (answer["output"], answer["exit_code"]) == ("last", 0)
    session = talk.run("echo up; exec cat", stdin="pipe", text="up\n")["session_id"]
    assert talk.write(session, "\x03")["signal"] == signal.SIGINT


def test_sqlite(talk):
    need("sqlite3")
    session = talk.run("sqlite3", tty=True, text="sqlite> ")["session_id"]
    talk.write(session, "create table t (n); insert into t values (6), (7);\n", text="sqlite> ")
    talk.write(session, "select 'sum=' || sum(n) from t;\n", text="sum=13")
    assert talk.write(session, ".quit\n")["exit_code"] == 0


def test_gdb(talk):
    need("gdb")
    session = talk.run("gdb -q -nx /bin/true", tty=True, text="(gdb) ")["session_id"]
    talk.write(session, "print 6 * 7\n", text="$1 = 42")
    assert talk.write(session, "quit\n")["exit_code"] == 0


def test_a_password_prompt(talk):
    script = "stty -echo; printf 'Password: '; read p; stty echo; echo; echo \"length ${#p}\""
    session = talk.run(script, tty=True, text="Password: ")["session_id"]
    answer = talk.write(session, "secret\n")
    assert answer["output"] == "\r\nlength 6\r\n"


def test_ssh_keygen_and_its_prompts(place, talk):
    """It asks on /dev/tty, with echo off for what nobody shall see, and answers what it is told."""
    need("ssh-keygen")
    said = talk.run("ssh-keygen -t ed25519 -f key", tty=True, text="passphrase): ")
    if not has_account():  # then it does nothing for anybody (scripts/as-user)
        assert said["output"].rstrip() == f"No user exists for uid {os.getuid()}"
        return
    session, texts = said["session_id"], [said["output"]]
    for answer, prompt in (("first try\r", "again: "), ("second\r", "passphrase): "),
                           ("first try\r", "again: ")):
        said = talk.write(session, answer, text=prompt)
        assert said["reason"] == "met"
        texts.append(said["output"])
    said = talk.write(session, "first try\r")
    texts.append(said["output"])
    assert said["exit_code"] == 0 and "fingerprint" in said["output"]
    assert "do not match" in texts[2] and "try" not in "".join(texts[:4])
    assert (place.ws / "key").stat().st_mode & 0o777 == 0o600
    session = talk.run("ssh-keygen -t ed25519 -f key", tty=True, text="(y/n)? ")["session_id"]
    assert talk.write(session, "n\r")["exit_code"] == 1


def test_resize(talk):
    session = talk.run("trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.05; done",
                       tty=True, rows=30, columns=90, text="ready")
    assert session["output"].startswith("30 90")
    talk.call("resize", session_id=session["session_id"], rows=40, columns=100)
    assert talk.wait(session["session_id"], text="40 100")["reason"] == "met"


def test_yes_is_stopped_after_a_second(talk):
    answer = talk.run("exec yes", tty=True, yield_time_ms=1000, max_output_tokens=100)
    assert answer["reason"] == "yielded" and answer["bytes"]
    answer = talk.write(answer["session_id"], "\x03", max_output_tokens=100)
    assert (answer["reason"], answer["signal"]) == ("ended", signal.SIGINT)


def test_yes_is_terminated(talk):
    answer = talk.run("yes", bytes=1 << 20, max_output_tokens=100)
    session = answer["session_id"]
    assert answer["reason"] == "met" and answer["bytes"] >= 1 << 20
    assert talk.call("terminate", session_id=session)["signal"] == signal.SIGTERM
    assert talk.call("list")["sessions"] == []
    assert set(talk.write(session, max_output_tokens=10)["output"]) <= set("y\n. bytesomitted0123456789")
    assert talk.write(session)["ended"]["fate"] == "terminated"


def test_a_writer_of_200_megabytes(talk):
    size = 200 << 20
    answer = talk.run(f"head -c {size} /dev/zero | tr '\\0' x; echo; echo the end", yield_time_ms=30000)
    while answer["reason"] != "ended":
        answer = talk.wait(answer["session_id"], exit=True)
        size -= answer["bytes"]
    assert answer["exit_code"] == 0
    assert answer["output"].endswith("x\nthe end\n")
    assert answer["omitted_bytes"] == answer["bytes"] - (1 << 20)
    assert "bytes omitted ..." in answer["output"]


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "tty"])
def test_no_byte_is_lost_of_commands_that_end_at_once(talk, tty):
    """As a model calls them; thousands of them are in test_library_sessions.py."""
    for n in range(100):
        size = n * 97 % 5000
        answer = talk.run(f"head -c {size} /dev/zero | tr '\\0' x", tty=tty, yield_time_ms=30000)
        assert (answer.get("bytes"), answer.get("reason")) == (size, "ended"), (n, answer)
        assert answer["output"] == "x" * size


def kib_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


def open_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_thousand_terminals(place):
    """Issue 3: below 40 KiB of our memory each, idle while nothing comes, and every descriptor
    closed after. How long it takes to end them all is a figure of `make bench`."""
    count, (soft, hard) = 1000, resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 5 * count:
        pytest.skip(f"only {hard} descriptors are allowed (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        talk = Talk(place, "--max-sessions", str(count))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    talk.run("true")
    memory, fds = kib_of(talk.process.pid), open_fds(talk.process.pid)
    ids = [talk.run("echo x; exec cat", tty=True, text="x")["session_id"] for _ in range(count)]
    assert len(set(ids)) == count
    assert len(talk.call("list")["sessions"]) == count
    if not is_sanitized(talk.process.pid):
        assert kib_of(talk.process.pid) - memory < 40 * count
    ticks = cpu_ticks(talk.process.pid)
    assert talk.wait(ids[0], text="never", yield_time_ms=1000)["reason"] == "yielded"
    assert cpu_ticks(talk.process.pid) - ticks <= os.sysconf("SC_CLK_TCK") // 50
    assert talk.call("terminate")["terminated"] == count
    for session in ids:
        assert talk.wait(session, exit=True)["reason"] == "ended"
    assert talk.call("list")["sessions"] == []
    assert open_fds(talk.process.pid) == fds
    talk.end()


def is_sanitized(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        return "libasan" in file.read() or b"__asan_init" in CORDON.read_bytes()


# --- what goes wrong


def test_the_oldest_has_to_go(place):
    talk = Talk(place, "--max-sessions", "9")
    ids = [talk.run("echo x; exec cat", stdin="pipe", text="x")["session_id"] for _ in range(10)]
    assert [s["session_id"] for s in talk.call("list")["sessions"]] == ids[1:]
    assert talk.write(ids[0])["ended"]["fate"] == "pruned"
    assert talk.call("terminate")["terminated"] == 9
    for session in ids[1:]:
        assert talk.wait(session, exit=True)["signal"] == signal.SIGTERM
    assert talk.call("list")["sessions"] == []
    talk.end()


@pytest.mark.parametrize("mode", ["auto", "disabled"])
def test_killing_the_host_leaves_nothing(place, mode):
    talk = Talk(place, "--sandbox", mode)
    for tty in (False, True):
        answer = talk.run(f"setsid sleep 1234 & sleep 1234 & echo $$ > pid{tty:d}; echo x; wait",
                          tty=tty, text="x")
        assert answer["reason"] == "met"
    inits = children(talk.process.pid)
    assert len(inits) >= 2
    below = [pid for init in inits for pid in descendants(init)]
    assert len(below) >= 6
    watched = [os.pidfd_open(pid) for pid in inits + below]
    talk.process.kill()
    talk.process.wait()
    for pidfd, pid in zip(watched, inits + below):
        wait_for_end(pidfd)
        os.close(pidfd)
        assert has_ended(pid), pid


def wait_for_end(pidfd):
    assert select.select([pidfd], [], [], WAIT)[0], "a process of the session outlived its host"


@pytest.mark.parametrize("line, message", [
    ("{", "line 1"),
    ("[]", "$: "),
    ('{"exec": {}}', 'exec_command'),
    ('{"exec_command": {}}', "$.exec_command.cmd"),
    ('{"exec_command": {"cmd": "x", "ttty": true}}', "tty"),
    ('{"exec_command": {"cmd": "x", "yield_time_ms": 1.5}}', "$.exec_command.yield_time_ms"),
    ('{"write_stdin": {"chars": "x"}}', "$.write_stdin.session_id"),
    ('{"wait_for": {"session_id": 1, "exit": true, "bytes": 3}}', "exclude each other"),
    ('{"list": {}, "resize": {}}', "one key"),
    ('{"exec_command": {"cmd": "x", "limits": {"memry": 1}}}', "$.exec_command.limits.memry"),
    ('{"exec_command": {"cmd": "x", "limits": {"pids": -1}}}', "$.exec_command.limits.pids"),
])
def test_wrong_lines_are_named(place, line, message):
    ran = place.cordon("script", "-", text="\n# fine\n" + line + "\n")
    assert ran.returncode == 125 and ran.stdout == ""
    assert ran.stderr.startswith("cordon: -:3: ") and message in ran.stderr


def test_arguments_are_checked(place):
    assert place.cordon("script").returncode == 125
    assert place.cordon("script", "a", "b").returncode == 125
    ran = place.cordon("script", "no-such-file")
    assert ran.returncode == 125 and "no-such-file" in ran.stderr
    assert place.cordon("script", "--max-sessions", "0", "-").returncode == 125
