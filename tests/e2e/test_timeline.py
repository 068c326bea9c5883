"""What a command did, told by the guard: cordon run --trace."""
import json
import os
import shutil
import socket

import pytest
from events import wait_in
from harness import WAIT
from tools import where


def events(place, script, *options, trace="--trace", **kwargs):
    return place.json("run", "--json", trace, *options, "--", "sh", "-c", script, **kwargs)


def did(result, kind="done"):
    """(program, operation, path...) of each event of the kind."""
    return [(event["program"], event["operation"],
             *(event[key] for key in ("path", "path2") if event.get(key)))
            for event in result["events"] if event["event"] == kind]


# Each script, and what it does in W.
DOES = {
    "make": ("echo x >a", [("sh", "create", "W/a")]),
    "write": ("echo x >old", [("sh", "write", "W/old")]),
    "append": ("echo x >>old", [("sh", "write", "W/old")]),
    "mkdir": ("mkdir d", [("mkdir", "create", "W/d")]),
    "deep": ("mkdir -p d/e; echo x >d/e/f", [("mkdir", "create", "W/d"), ("mkdir", "create", "W/d/e"),
                                            ("sh", "create", "W/d/e/f")]),
    "rename": ("mv old new", [("mv", "rename", "W/old", "W/new")]),
    "remove": ("rm old", [("rm", "remove", "W/old")]),
    "link": ("ln old new", [("ln", "link", "W/new", "W/old")]),
    "symlink": ("ln -s old new", [("ln", "create", "W/new")]),
    "through-link": ("echo x >link", [("sh", "write", "W/old")]),
    "chmod": ("chmod 640 old", [("chmod", "change", "W/old")]),
    "truncate": ("truncate -s 0 old", [("truncate", "write", "W/old")]),
    "relative": ("mkdir d; cd d; echo x >../a", [("mkdir", "create", "W/d"), ("sh", "create", "W/a")]),
    "reads-only": ("cat old; ls; test -w old; grep x old", []),
    "fails": ("rm missing; mkdir old; rmdir .; mv missing x; ln missing y", []),
}


@pytest.mark.parametrize("name", DOES)
def test_files(place, name):
    script, expected = DOES[name]
    (place.ws / "old").write_text("text\n")
    (place.ws / "link").symlink_to("old")
    result = events(place, f"{script}; exit 0", trace="--trace=files")
    assert did(result) == [(program, operation,
                            *(path.replace("W", str(place.ws)) for path in paths))
                           for program, operation, *paths in expected]
    assert result["events_dropped"] == 0


def test_refusals_have_their_place(place):
    denied = str(place.outside / "denied")
    result = events(place, f"echo x >a; echo x >{denied}; echo x >b", code=0)
    assert [(event["event"], event["path"]) for event in result["events"]
            if event["event"] in ("done", "denied")] == [
        ("done", str(place.ws / "a")), ("denied", denied), ("done", str(place.ws / "b"))]
    refused = next(event for event in result["events"] if event["event"] == "denied")
    assert refused["errno"] == "EROFS" and refused["program"] == "sh"
    assert [event["seq"] for event in result["events"]] == list(range(1, len(result["events"]) + 1))


NETWORK = """
import socket
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
port = a.getsockname()[1]
socket.create_connection(("127.0.0.1", port))
b = socket.socket(socket.AF_UNIX); b.bind("sock"); b.listen()
socket.socket(socket.AF_UNIX).connect("sock")
c = socket.socket(socket.AF_UNIX); c.bind("\\0name"); c.listen()
socket.socket(socket.AF_UNIX).connect("\\0name")
try:
    socket.create_connection(("192.0.2.1", 443))
except OSError:
    print(port)
"""


def test_network(place):
    (place.ws / "talk.py").write_text(NETWORK)
    result = events(place, "python3 -B talk.py", trace="--trace=network")
    told = [(event["event"], event["operation"], event.get("path") or (event["host"], event["port"]))
            for event in result["events"]]
    port, sock = int(result["stdout"]), str(place.ws / "sock")
    assert told == [
        ("done", "bind", ("127.0.0.1", 0)), ("done", "connect", ("127.0.0.1", port)),
        ("done", "bind", sock), ("done", "connect", sock),
        ("done", "bind", "@name"), ("done", "connect", "@name"),
        ("denied", "connect", ("192.0.2.1", 443))]


def test_connects_are_not_seen_with_the_network_of_the_host(place):
    """And it is said."""
    (place.ws / "talk.py").write_text(NETWORK.replace("192.0.2.1", "127.0.0.1"))
    result = events(place, "python3 -B talk.py; true", "--network", "host", trace="--trace=network")
    assert {event["operation"] for event in result["events"]} == {"bind"}
    result = events(place, "python3 -B talk.py; true", "--network", "enabled", trace="--trace=network")
    assert "connect" in {event["operation"] for event in result["events"]}
    words = ("--network", "host", "--", "true")
    said = "the trace has no connects"
    assert said in place.run("--trace=network", *words).stderr
    assert said not in place.run("--trace=files", *words).stderr
    assert said not in place.run("--trace=network", "--", "true").stderr


def test_repetitions_are_counted(place):
    result = events(place, "for i in 1 2 3 4 5 6 7 8 9; do echo x >>a; done", trace="--trace=files")
    assert [(event["operation"], event["count"]) for event in result["events"]] == [
        ("create", 1), ("write", 8)]


def test_many_are_bounded_and_counted(place):
    """The newest are kept; a file has all, and the number of those that the guard could not tell in time."""
    (place.ws / "many.py").write_text("for i in range(6000): open(f'f{i}', 'w').close()\n")
    trace = place.base / "trace.jsonl"
    result = events(place, "python3 -B many.py", "--trace-to", str(trace), trace="--trace=files")
    kept = len(result["events"])
    assert kept <= 4096 and result["events"][-1]["seq"] == kept + result["events_dropped"]
    told = [json.loads(line) for line in trace.read_text().splitlines()]
    assert len(told) == kept + result["events_dropped"]
    assert sum(event["count"] for event in told) == 6000
    assert len(list(place.ws.glob("f*"))) == 6000


def test_lines_for_people(place):
    denied = str(place.outside / "denied")
    done = place.run("--trace=files", "--", "sh", "-c", f"echo x >a; echo x >{denied}; true")
    lines = [line.split(maxsplit=2)[2] for line in done.stderr.splitlines()
             if line.startswith("cordon:    ")]
    assert [line.split("  ")[1:] for line in lines] == [
        ["create", str(place.ws / "a")],
        ["create", denied, "refused (EROFS) by built-in workspace-write"]]


def test_a_file_of_events(place):
    trace = place.base / "trace.jsonl"
    done = place.run("--trace=files", "--trace-to", str(trace), "--", "sh", "-c",
                     f"echo x >a; mkdir d; until [ $(grep -c . {trace}) = 2 ]; do :; done")
    assert done.returncode == 0 and "trace:" not in done.stderr  # it was told while it ran
    assert [json.loads(line)["path"] for line in trace.read_text().splitlines()] == [
        str(place.ws / "a"), str(place.ws / "d")]


def test_the_audit_log_has_it_on_request(place):
    place.audits(["files", "network", "exec"])
    (place.ws / "talk.py").write_text(NETWORK)
    secret, denied = "--token=abcdef123456", place.outside / "denied"
    done = place.run("--", "sh", "-c", f"mkdir d; echo x >a; echo y >>a; mv a b; echo x >{denied}; "
                                       f"env true {secret}; python3 -B talk.py; true")
    assert done.returncode == 0 and "trace" not in done.stderr
    told = place.records()
    assert (told[0][0], told[-1][0]) == ("begin", "end")
    assert [(body["operation"], body["path"]) for event, body in told if event == "file"] == [
        ("create", f"{place.ws}/d"), ("create", f"{place.ws}/a"), ("write", f"{place.ws}/a"),
        ("rename", f"{place.ws}/a")]
    connects = [body for event, body in told if event == "connect"]
    assert [body["operation"] for body in connects] == ["bind", "connect"] * 3
    assert connects[1]["host"] == "127.0.0.1" and connects[3]["path"] == f"{place.ws}/sock"
    programs = [body["argv"] for event, body in told if event == "exec"]
    assert ["mkdir", "d"] in programs and ["env", "true", "--token=[redacted]"] in programs
    assert "abcdef123456" not in place.cordon("log", "--json").stdout
    assert {body["path"] or body["host"] for event, body in told if event == "denied"} == {
        str(denied), "192.0.2.1"}
    lines = place.cordon("log").stdout
    assert f"rename {place.ws}/a as {place.ws}/b of mv" in lines
    assert f"mkdir d  (in {place.ws})" in lines
    assert "connect 127.0.0.1 port" in lines and "bind @name of python3" in lines
    assert place.cordon("log", "verify").returncode == 0


def test_the_audit_log_has_what_a_run_did_that_was_killed(place):
    """Within a second, also when the command has run for longer than that."""
    place.audits(["files"])
    tail = place.home / ".config/cordon/audit.tail"
    running = place.start("run", "--", "sh", "-c", "for name in a b; do touch $name; read x; done")
    for name in "ab":
        wait_in(tail.parent, lambda: tail.exists() and f'/{name}"' in tail.read_text(), WAIT)  # noqa: B023
        if name != "b":
            running.stdin.write(b"\n")
            running.stdin.flush()
    running.kill()
    running.wait()
    assert [body["path"] for event, body in place.records() if event == "file"] == [
        f"{place.ws}/{name}" for name in "ab"]


def test_the_audit_log_has_only_what_is_wanted(place):
    """And who asked for a trace has only what that is of."""
    place.audits(["exec"])
    assert did(place.json("run", "--json", "--trace=files", "--", "mkdir", "d")) == [
        ("mkdir", "create", f"{place.ws}/d")]
    assert [event for event, _ in place.records()] == ["begin", "exec", "output", "end"]
    assert "events" not in place.json("run", "--json", "--watch", "off", "--", "mkdir", "e")
    assert [event for event, _ in place.records()][4:] == ["begin", "output", "end"]
    assert "events" not in place.json("run", "--json", "--", "true")


def test_the_audit_log_has_all_of_many(place):
    """More than the timeline keeps, and than wait for the log at a time."""
    place.audits(["files"])
    (place.ws / "many.py").write_text("for i in range(6000): open(f'f{i}', 'w').close()\n")
    assert place.run("--", "python3", "-B", "many.py").returncode == 0
    told = place.records()
    files = [body["path"] for event, body in told if event == "file"]
    assert len(files) == len(set(files))
    assert len(files) + sum(body["count"] for event, body in told if event == "lost") >= 6000
    assert (told[0][0], told[-1][0]) == ("begin", "end")


def test_a_word_that_is_no_topic(place):
    place.audits(["file"])
    done = place.run("--", "true")
    assert done.returncode != 0 and 'did you mean "files"?' in done.stderr


def test_it_says_when_nobody_sees(place):
    done = place.run("--trace", "--sandbox", "disabled", "--", "true")
    assert done.returncode == 0 and "no trace" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["--trace=file"], "none of files, network and exec"),
    (["--trace", "--watch", "off"], "want watch not to be off"),
    (["--trace-to", "x"], "--trace-to needs --trace"),
    (["--trace", "--trace-to", "/missing/x"], "opening /missing/x"),
])
def test_wrong_words(place, words, said):
    done = place.run(*words, "--", "true")
    assert done.returncode == 125 and said in done.stderr


def test_off_there_is_nothing_of_it(place):
    result = place.json("run", "--json", "--", "touch", "a")
    assert "events" not in result and "execs" not in result


# --- --watch learn: what is read, too ---


def reads(result, place, kind="done"):
    """Those in the workspace and what lies beside it, by path."""
    return [(program, path) for program, operation, *paths in did(result, kind) for path in paths
            if operation == "read" and path.startswith(str(place.base))]


def test_what_is_read_is_told_to_who_learns(place):
    (place.ws / "old").write_text("text\n")
    (place.ws / "link").symlink_to("old")
    (place.ws / "dir").mkdir()
    script = "cat old; ls dir; cd dir; cat ../link; cat missing; cat ../dir/missing; test -r ../old; exit 0"
    result = events(place, script, "--watch", "learn", trace="--trace=files")
    old = str(place.ws / "old")
    assert [told for told in reads(result, place) if told[1] != str(place.ws)] == [
        ("cat", old), ("ls", str(place.ws / "dir"))]
    assert next(event["count"] for event in result["events"] if event.get("path") == old) == 2
    assert any(path.endswith("libc.so.6") for _, _, path in did(result))  # wherever it lies
    assert not reads(events(place, script, trace="--trace=files"), place)
    assert "events" not in place.json("run", "--json", "--watch", "learn", "--", "cat", "old")


def test_a_change_by_descriptor_is_told_to_who_learns(place):
    (place.ws / "old").write_text("text\n")
    (place.outside / "file").write_text("f\n")
    script = f"python3 -c 'import os; os.fchmod(os.open(\"old\", 0), 0o600); os.fchmod(os.open(\"{place.outside}/file\", 0), 0o600)'; true"
    result = events(place, script, "--watch", "learn", trace="--trace=files")
    assert [paths for _, operation, *paths in did(result) if operation == "change"] == [[str(place.ws / "old")]]
    assert [(denial["call"], denial["path"], denial["errno"]) for denial in result["denials"]] == [
        ("fchmod", str(place.outside / "file"), "EROFS")]


def test_what_may_not_be_read_is_told_to_who_learns(place):
    secret = place.outside / "secret"
    secret.mkdir()
    (secret / "key").write_text("k\n")
    (place.outside / "file").write_text("f\n")
    script = f"cat {secret}/key; cat {place.outside}/file; ls {secret}; cat {secret}/missing; true"
    result = events(place, script, "--watch", "learn", "--deny", str(secret), "--deny", str(place.outside / "file"),
                    trace="--trace=files")
    refused = [("cat", str(secret / "key")), ("cat", str(place.outside / "file")), ("ls", str(secret))]
    assert reads(result, place, "denied") == refused
    assert [(denial["program"], denial["path"]) for denial in result["denials"]] == refused
    assert {denial["operation"] for denial in result["denials"]} == {"read"}
    assert not [path for _, path in reads(result, place) if path.startswith(str(place.outside))]


def test_learning_comes_from_a_profile(place):
    place.config('[permissions.l]\nextends = ":workspace"\nwatch = "learn"\n')
    (place.ws / "old").write_text("text\n")
    result = events(place, "cat old", "--profile", "l", trace="--trace=files")
    assert ("cat", str(place.ws / "old")) in reads(result, place)
    explained = place.json("explain", "--json", "--profile", "l")
    assert explained["watch"] == "learn"


OPENS = """
import os
def look(*words):
    try:
        os.close(os.open(*words))
    except OSError as e:
        print(words[0].rpartition("/")[2], e.errno)
look(FILE, os.O_RDONLY | os.O_CREAT, 0o600)          # as flock(1) does: it is only read
look(FILE, os.O_PATH | os.O_WRONLY)                  # nothing is opened
look(LINK, os.O_WRONLY | os.O_NOFOLLOW)              # ELOOP, whoever asks
look(LINK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # EEXIST
"""


def test_what_fails_or_works_anyway_is_no_refusal(place):
    """Of opens that look like writing."""
    (place.outside / "file").write_text("f\n")
    (place.outside / "link").symlink_to("file")
    (place.outside / "dangling").symlink_to("missing")
    for link in "link", "dangling":
        script = OPENS.replace("FILE", repr(str(place.outside / "file"))).replace(
            "LINK", repr(str(place.outside / link)))
        (place.ws / "opens.py").write_text(script)
        result = place.json("run", "--json", "--", "python3", "-B", "opens.py", code=0)
        assert result["denials"] == [] and result["stdout"] == f"{link} 40\n{link} 17\n"


# --- --report: what runs later ---

def test_what_others_run_is_reported(place):
    script = ("echo x >Makefile; mkdir -p .github/workflows d; echo x >.github/workflows/ci.yml; "
              "echo x >d/new; mv d/new d/conftest.py; echo x >README; ln README AGENTS.md; rm -f package.json; "
              "echo x >>Makefile")
    (place.ws / "package.json").write_text("{}")
    result = place.json("run", "--json", "--report", "--", "sh", "-c", script, code=0)
    assert result["runs_later"] == [
        {"path": str(place.ws / path), "by": by}
        for path, by in (("Makefile", "make"), (".github/workflows/ci.yml", "CI"),
                         ("d/conftest.py", "pytest"), ("AGENTS.md", "agents"))]
    assert "events" not in result
    said = place.shell("echo x >Makefile; echo x >other", "--report").stderr
    assert said == f"cordon: changed, and run or obeyed by other programs: {place.ws}/Makefile (make)\n"
    assert place.shell("echo x >other", "--report").stderr == ""
    assert "runs_later" not in place.json("run", "--json", "--", "true")
    log = [json.loads(line)["event"] for line in place.cordon("log", "--json").stdout.splitlines()]
    assert "begin" in log and "file" not in log  # which is not what the configuration asks for


def test_a_report_wants_a_guard(place):
    for option in (("--sandbox", "disabled"), ("--watch", "off")):
        assert place.json("run", "--json", "--report", *option, "--", "true")["runs_later"] is None
        assert "no report" in place.run("--report", *option, "--", "true").stderr
