"""`cordon log`: what runs leave in the audit log, and that it never stands in their way."""
import concurrent.futures
import datetime
import fcntl
import json
import os
import pathlib
import platform
import pty
import re
import resource
import signal

import pytest

from events import wait_in
from harness import CORDON, WAIT, finish


def folder(place):
    return place.home / ".config/cordon"


def records(place, *options):
    ran = place.cordon("log", "--json", *options)
    assert ran.returncode == 0 and ran.stderr == "", ran
    return [json.loads(line) for line in ran.stdout.splitlines()]


def events(place, *options):
    return [record["event"] for record in records(place, *options)]


def test_a_run_leaves_its_story(place):
    assert place.shell("printf abc; printf de >&2; exit 3").returncode == 3
    begin, output, end = records(place)
    assert [begin["event"], output["event"], end["event"]] == ["begin", "output", "end"]
    assert begin["body"]["argv"] == ["sh", "-c", "printf abc; printf de >&2; exit 3"]
    assert begin["body"]["cwd"] == str(place.ws)
    assert begin["body"]["profile"] == "workspace-write"
    assert output["body"] == {"stdout_bytes": 3, "stderr_bytes": 2}
    assert end["body"]["end"] == "exited" and end["body"]["exit_code"] == 3
    assert end["body"]["wall_time_ns"] > 0
    assert begin["session"] == end["session"] and len(begin["session"]) == 16
    assert [begin["seq"], output["seq"], end["seq"]] == [1, 2, 3]
    assert begin["time"] <= output["time"] <= end["time"]


def test_that_it_began_is_there_before_it_does(place):
    """So whoever kills Cordon, or its machine, cannot hide it."""
    ran = place.shell("cat .; " + f"grep -c begin {folder(place)}/audit.tail")
    assert ran.stdout == "1\n"
    running = place.start("run", "--", "cat")
    wait_in(folder(place), lambda: len(events(place)) == 4, WAIT)
    running.kill()
    running.wait()
    assert events(place) == ["begin", "output", "end", "begin"]


def test_secrets_of_who_calls_are_taken_out(place):
    """Which are no part of the command's environment."""
    secret = {"MY_TOKEN": "hunter2hunter2"}
    assert place.run("--", "echo", "a hunter2hunter2", "b", env=secret).returncode == 0
    assert place.run("--", "echo", "curl -u me:pw x", env=secret).returncode == 0
    assert [record["body"]["argv"][1:] for record in records(place) if record["event"] == "begin"] == [
        ["a [redacted]", "b"], ["curl -u [redacted] x"]]


def test_nothing_to_show(place):
    ran = place.cordon("log")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert place.cordon("log", "verify").returncode == 0
    assert not folder(place).exists()


def test_patches_are_in_the_log(place):
    patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"
    assert place.cordon("patch", text=patch).returncode == 0
    assert place.cordon("patch", "--check", text=patch.replace(": a", ": b")).returncode == 0
    assert place.cordon("patch", text=patch.replace("Add File", "Delete File").replace(
        "+x\n", "")).returncode == 0
    assert place.cordon("patch", text=patch.replace("Add", "Update")).returncode == 1
    bodies = [(record["event"], record["body"]) for record in records(place)]
    assert [event for event, _ in bodies] == ["patch-begin", "patch-end"] * 3
    assert bodies[0][1] == {"cwd": str(place.ws), "patch_bytes": len(patch)}
    assert [body["applied"] for event, body in bodies if event == "patch-end"] == \
        [True, True, False]
    assert "applied" in place.cordon("log").stdout


def test_no_audit_leaves_nothing(place):
    place.run("--no-audit", "--", "true")
    assert not folder(place).exists()


def test_a_home_that_does_not_exist_is_not_made(place):
    home = place.base / "nobody"
    ran = place.run("--", "true", env={"HOME": str(home)})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert not home.exists()


def test_a_failure_to_start_is_a_record(place):
    assert place.run("--", "there-is-no-such-program").returncode == 127
    end = records(place)[-1]
    assert end["body"]["end"] == "failed-to-start"
    assert "there-is-no-such-program" in end["body"]["reason"]


def test_denied_shows_only_refusals(place):
    place.run("--", "true")
    refused = place.shell(f"echo x > {place.outside}/file", "--profile", "read-only")
    assert refused.returncode != 0
    denied, end = records(place, "--denied")
    assert denied["event"] == "denied" and denied["body"]["path"] == f"{place.outside}/file"
    assert denied["body"]["operation"] == "write"
    assert end["body"]["end"] == "denied"


def test_session_since_and_lines_choose(place):
    for code in range(3):
        place.shell(f"exit {code}")
    sessions = [record["session"] for record in records(place)]
    assert len(set(sessions)) == 3
    assert events(place, "--session", sessions[3][:12]) == ["begin", "output", "end"]
    assert events(place, "--session", "nobody") == []
    assert events(place, "-n", "2") == ["output", "end"]
    assert len(events(place, "-n", "100", "--since", "1h")) == 9
    assert len(events(place, "--since", "2024-02-29")) == 9
    assert events(place, "--since", "2100-01-01T00:00Z") == []


@pytest.mark.parametrize("words, message", [
    (["--since", "yesterday"], "neither a time ago"),
    (["--since", "2025-02-29"], "neither a time ago"),
    (["--since", "2026-04-31T10:00Z"], "neither a time ago"),
    (["--lines", "0"], "at least 1"),
    (["--lins", "1"], "did you mean --lines?"),
    (["verify", "all"], "no argument but \"verify\""),
    (["verify", "--json", "verify"], "no argument but \"verify\""),
    (["show"], "no argument but \"verify\""),
    (["verify", "-n", "3"], "looks at all records"),
    (["--session", "a", "verify"], "looks at all records"),
])
def test_wrong_calls_say_what_is_right(place, words, message):
    ran = place.cordon("log", *words)
    assert ran.returncode == 125 and message in ran.stderr


def test_secrets_and_environment_stay_out(place):
    value = "correct-horse-battery"
    place.run("--env", f"DEPLOY_TOKEN={value}", "--env", "PLAIN=unremarkable-value", "--",
              "sh", "-c", f"echo {value}; PASSWORD=staple true; echo \"$PLAIN\"")
    text = (folder(place) / "audit.tail").read_text()
    assert "begin" in text and "PLAIN" in text
    for secret in (value, "staple", "unremarkable-value"):
        assert secret not in text


def on_terminal(place, *words, **kwargs):
    """What `cordon log` writes to one."""
    main, side = pty.openpty()
    shown = place.start("log", *words, stdout=side, **kwargs)
    os.close(side)
    text = b""
    while True:
        try:
            text += os.read(main, 65536)
        except OSError:  # EIO: the other side is closed
            break
    os.close(main)
    assert shown.wait(WAIT) == 0
    return text.replace(b"\r\n", b"\n").decode()


def test_colours_only_on_a_terminal(place):
    place.shell(f"echo x > {place.outside}/file", "--profile", "read-only")
    assert "\033" not in place.cordon("log").stdout
    text = on_terminal(place)
    assert "\033[31m" in text and "\033" not in on_terminal(place, env={"NO_COLOR": "1"})
    without_time = r"^\S+( \S+ \S+)?  "
    assert re.sub(without_time, "", re.sub(r"\033\[\d*m", "", text), flags=re.MULTILINE) == \
        re.sub(without_time, "", place.cordon("log").stdout, flags=re.MULTILINE)


def test_times_are_local_on_a_terminal_only(place):
    """And say how far from UTC that is."""
    place.run("--", "true")
    env = {"TZ": "AAA-05:30", "NO_COLOR": "1"}
    local, distance = re.match(r"(\S+ \S+) (\S+)  ", on_terminal(place, "-n", "1", env=env)).groups()
    utc = place.cordon("log", "-n", "1", env=env).stdout.split("  ")[0]
    assert distance == "+0530" and utc.endswith("Z")
    moment = datetime.datetime.fromisoformat(f"{local}+05:30")
    assert moment == datetime.datetime.fromisoformat(utc.replace("Z", "+00:00"))
    assert records(place)[-1]["time"] == utc


# --- following


def next_record(following):
    return json.loads(following.stdout.readline())


def test_who_follows_is_told_of_what_comes(place):
    for word in ("one", "two"):
        place.run("--", "true", word)
    following = place.start("log", "--follow", "--json", "-n", "3", text=True)
    assert [next_record(following)["seq"] for _ in range(3)] == [4, 5, 6]
    place.run("--", "true", "three")
    assert [next_record(following)["event"] for _ in range(3)] == ["begin", "output", "end"]
    place.cordon("log")  # moves the records to the database
    place.run("--", "true", "four")
    assert next_record(following)["body"]["argv"] == ["true", "four"]
    assert [next_record(following)["event"] for _ in range(2)] == ["output", "end"]
    following.send_signal(signal.SIGINT)
    assert following.communicate(timeout=WAIT) == ("", "") and following.returncode == 0


def test_what_was_moved_away_unseen_is_shown(place):
    """Records that went to the database before the follower looked."""
    following = place.start("log", "-f", "--json", text=True)
    place.run("--", "true", "one")
    assert next_record(following)["seq"] == 1
    following.send_signal(signal.SIGSTOP)
    place.run("--", "true", "two")
    place.cordon("log")
    place.run("--", "true", "three")
    following.send_signal(signal.SIGCONT)
    assert [next_record(following)["seq"] for _ in range(8)] == [*range(2, 10)]


def test_who_follows_chooses_and_ends_with_its_reader(place):
    following = place.start("log", "--follow", "--denied", "--json", text=True)
    place.run("--", "true")
    place.shell(f"echo x > {place.outside}/file", "-p", "read-only")
    assert next_record(following)["event"] == "denied"
    following.stdout.close()
    assert following.wait(WAIT) in (0, 125, -signal.SIGPIPE)


def test_who_follows_sleeps_until_something_comes(place):
    """In a poll(2) without a time."""
    following = place.start("log", "--follow", "--json", text=True)
    place.run("--", "true")
    for _ in range(3):
        next_record(following)
    call = pathlib.Path(f"/proc/{following.pid}/syscall")
    poll = {"x86_64": "7"}.get(platform.machine())
    while poll and (words := call.read_text().split())[0] != poll:
        assert following.poll() is None
    assert not poll or words[3].endswith("ffffffff"), words


# --- beginning anew


def test_a_log_that_was_changed_can_be_begun_anew(place):
    place.run("--", "true", "one")
    tail = folder(place) / "audit.tail"
    tail.write_bytes(tail.read_bytes().replace(b"one", b"two"))
    changed = tail.read_bytes()
    assert place.cordon("log", "verify").returncode == 1
    assert place.cordon("log").returncode == 125
    ran = place.cordon("log", "--start-anew")
    assert ran.returncode == 0, ran.stderr
    [kept] = folder(place).glob("audit-*.tail")
    assert kept.read_bytes() == changed and str(kept) in ran.stderr
    place.run("--", "true")
    anew, begin, *_ = records(place)
    assert anew["event"] == "anew" and anew["seq"] == 1 and begin["event"] == "begin"
    assert anew["body"]["kept"] == [str(kept)] and "was changed" in anew["body"]["problem"]
    assert place.cordon("log", "verify").returncode == 0
    assert f"is kept in {kept}; record 1" in place.cordon("log").stdout


def test_a_sound_log_can_be_begun_anew_too(place):
    place.run("--", "true")
    last = records(place)[-1]  # in the database now
    following = place.start("log", "-f", "--json", text=True)
    assert [next_record(following)["seq"] for _ in range(3)] == [1, 2, 3]
    found = place.json("log", "--start-anew", "--json")
    assert found["problem"] is None and found["hash"] == last["hash"] and found["last"] == 3
    assert {pathlib.Path(path).suffix for path in found["kept"]} == {".tail", ".db"}
    assert next_record(following)["event"] == "anew"
    assert events(place) == ["anew"] and place.cordon("log", "verify").returncode == 0
    assert place.cordon("log", "--start-anew", "verify").returncode == 125


def test_a_log_can_be_begun_where_none_is(place):
    assert place.json("log", "--start-anew", "--json")["kept"] == []
    assert events(place) == ["anew"]


def test_no_command_can_begin_it_anew(place):
    place.run("--", "true")
    ran = place.run("--writable", place.home, "--", CORDON, "log", "--start-anew")
    assert ran.returncode != 0 and events(place)[:3] == ["begin", "output", "end"]


def test_control_characters_do_not_reach_the_terminal(place):
    place.run("--", "true", "\033]0;gotcha\a")
    ran = place.cordon("log")
    assert "gotcha" in ran.stdout and "\033" not in ran.stdout and "\a" not in ran.stdout


def test_what_runs_for_long_is_there_while_it_runs(place):
    running = place.start("run", "--", "cat")
    tail = folder(place) / "audit.tail"
    tail.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    wait_in(tail.parent, lambda: tail.exists() and " begin " in tail.read_text(), WAIT)
    finish(running, 0)
    assert events(place) == ["begin", "output", "end"]


# --- the chain


def test_verify_tells_the_head(place):
    place.run("--", "true")
    for _ in range(2):  # in the tail alone, then with the database
        verdict = place.json("log", "--json", "verify")
        assert verdict == place.json("log", "verify", "--json")
        assert verdict["ok"] and verdict["records"] == 3 and verdict["last"] == 3
        assert verdict["hash"] == records(place)[-1]["hash"]
    place.run("--", "true")
    assert "6 records, all as they were written" in place.cordon("log", "verify").stdout


def test_a_changed_record_is_found(place):
    place.run("--", "true")
    place.cordon("log")  # moves the records
    place.run("--", "false")
    for name, old, new in (("audit.db", b'"true"', b'"trUe"'), ("audit.tail", b'false', b'fAlse')):
        file = folder(place) / name
        whole = file.read_bytes()
        assert old in whole
        file.write_bytes(whole.replace(old, new, 1))
        ran = place.cordon("log", "verify")
        assert ran.returncode == 1 and "was changed" in ran.stderr, ran
        assert place.json("log", "--json", "verify", code=1)["ok"] is False
        file.write_bytes(whole)
    assert place.cordon("log", "verify").returncode == 0


def test_a_missing_tail_or_database_is_found(place):
    place.run("--", "true")
    place.cordon("log")
    place.run("--", "true")
    for name in ("audit.tail", "audit.db"):
        file = folder(place) / name
        whole = file.read_bytes()
        file.unlink()
        assert place.cordon("log", "verify").returncode == 1
        file.write_bytes(whole)


def test_many_at_once_make_one_chain(place):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: place.run("--", "true"), range(24)))
    assert place.json("log", "--json", "verify")["records"] == 72


# --- it never stands in the way


def test_a_lock_that_is_held_only_costs_the_record(place):
    place.run("--", "true")
    with open(folder(place) / "audit.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ran = place.shell("echo out; exit 4")
    assert ran.returncode == 4 and ran.stdout == "out\n"
    assert ran.stderr.count("\n") == 1 and "not in the audit log" in ran.stderr
    assert len(records(place)) == 3


def test_a_full_disk_only_costs_the_record(place):
    for _ in range(24):  # so that the limit leaves room for everything else that a run writes
        place.run("--", "true", *["x" * 1000] * 7)
    size = (folder(place) / "audit.tail").stat().st_size
    # Python ignores SIGXFSZ, so the write fails instead
    ran = place.shell("echo out; exit 4", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (size + 100, size + 100)), restore_signals=False)
    assert ran.returncode == 4 and ran.stdout == "out\n"
    assert ran.stderr.count("\n") == 1 and "not in the audit log" in ran.stderr
    assert (folder(place) / "audit.tail").stat().st_size == size
    assert place.json("log", "--json", "verify")["records"] == 72


def test_a_home_that_cannot_be_written_only_costs_the_record(place):
    (place.base / "file").write_text("")
    ran = place.shell("exit 4", env={"CORDON_HOME": f"{place.base}/file/cordon"})
    assert ran.returncode == 4
    assert ran.stderr.count("\n") == 1 and "not in the audit log" in ran.stderr


def test_a_damaged_database_stops_nothing(place):
    place.run("--", "true")
    place.cordon("log")
    (folder(place) / "audit.db").write_bytes(b"no database at all" * 1000)
    assert place.run("--", "true").stderr == ""
    ran = place.cordon("log")
    assert "audit.db" in ran.stderr and "begin" in ran.stdout  # the tail is shown all the same
    assert place.cordon("log", "verify").returncode == 1


def test_a_locked_database_stops_nothing(place):
    place.run("--", "true")
    place.cordon("log")
    with open(folder(place) / "audit.db.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert place.run("--", "true").stderr == ""
        ran = place.cordon("log", "--json", "-n", "3")
        assert "audit.db.lock stayed locked" in ran.stderr and ran.stdout.count("\n") == 3
    assert len(records(place)) == 6


def test_the_sandbox_keeps_the_log_from_the_command(place):
    place.run("--", "true")
    ran = place.shell(f"echo x >> {folder(place)}/audit.tail", "--writable", place.home)
    assert ran.returncode != 0
    assert place.cordon("log", "verify").returncode == 0


def test_a_grown_tail_is_moved_by_itself(place):
    """Behind the 256 KiB; what moves it detaches itself, so the test waits for the lock's file to
    be replaced by looking at what `log` shows: all records, whoever moved them."""
    words = ["true", *["x" * 1000] * 7]
    for _ in range(40):
        place.run("--", *words)
    assert place.json("log", "--json", "verify")["records"] == 120
    assert len(records(place)) == 120
    assert (folder(place) / "audit.db").exists()


def test_the_sessions_of_a_script_are_in_it(place):
    lines = [{"exec_command": {"cmd": "exit 3", "shell": "/bin/sh", "login": False}},
             {"exec_command": {"cmd": f"echo x > {place.outside}/x", "shell": "/bin/sh",
                               "login": False}},
             {"exec_command": {"cmd": "echo up; read x", "shell": "/bin/sh", "login": False,
                               "stdin": "pipe", "yield_time_ms": 250}}]
    place.cordon("script", "-", text="\n".join(json.dumps(line) for line in lines) + "\n")
    records = [json.loads(line) for line in place.cordon("log", "--json").stdout.splitlines()]
    assert [record["event"] for record in records] == \
        ["begin", "end", "begin", "denied", "end", "begin", "end"]


def test_what_a_killed_script_began_is_there(place):
    common = {"shell": "/bin/sh", "login": False, "stdin": "pipe", "yield_time_ms": 250}
    running = place.start("script", "-", text=True)
    for command in ("exit 3", f"grep -c ' begin ' {folder(place)}/audit.tail; cat"):
        running.stdin.write(json.dumps({"exec_command": {"cmd": command, **common}}) + "\n")
    running.stdin.flush()
    answers = [json.loads(running.stdout.readline()) for _ in range(2)]
    assert answers[1]["output"] == "2\n"
    running.kill()
    running.wait()
    assert events(place) == ["begin", "end", "begin"]


def test_a_script_that_starts_nothing_says_so(place):
    line = {"exec_command": {"cmd": "true", "shell": "/nonexistent/sh", "login": False}}
    place.cordon("script", "-", text=json.dumps(line) + "\n")
    begin, end = records(place)
    assert begin["event"] == "begin" and end["body"]["end"] == "failed-to-start"
