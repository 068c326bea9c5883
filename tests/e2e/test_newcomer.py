"""What a newcomer tripped over, one test for each of the rows D6 to D10 of that review (where a row has a test of
its own elsewhere, its name stands here)."""
import json
import os
import re

import pytest

from file_server import Server

# D6: explain says no to what works, and yes to what is not there


@pytest.mark.parametrize("path, wanted, allowed", [
    ("/dev/shm/x", "write", True), ("/dev/null", "write", True), ("/dev/kvm", "read", False),
    ("/dev/sda", "read", False), ("/dev/pts/0", "read", True), ("/dev/shmx", "read", False)])
def test_explain_knows_the_devices_inside(place, path, wanted, allowed):
    answer = place.json("explain", "--json", "--path", path, "--for", wanted, code=0 if allowed else 1)
    assert answer["allowed"] is allowed and answer["decided_by"] == "the /dev of the sandbox"


def test_explain_knows_what_a_file_refuses(place):
    secret = place.outside / "secret"
    secret.write_text("x")
    secret.chmod(0)
    answer = place.cordon("explain", "--path", secret)
    assert (answer.returncode == 1) == (os.geteuid() != 0)
    assert ("the permissions of the file" in answer.stdout) == (os.geteuid() != 0)


# D7: exit codes; of `cordon connect run` test_connect_run.py has them


@pytest.mark.parametrize("words, code, said", [
    (["nosuch"], 127, "nosuch"), (["/etc/passwd"], 126, "/etc/passwd"),
    (["-C", "/nope", "true"], 125, "/nope")])
def test_the_same_codes_here_and_at_a_server(place, words, code, said):
    server = Server(place, f"unix:{place.tmp}/s")
    for face in (["run"], ["--connect", server.url, "run"]):
        ran = place.cordon(*face, *words)
        assert ran.returncode == code and said in ran.stderr, (face, ran)


def test_an_address_that_is_wrong(place):
    """1, as cordon-serve(1) says: it could not listen."""
    ran = place.cordon("serve", "--listen", "tcp://1")
    assert ran.returncode == 1 and "should be ws://IP:PORT" in ran.stderr


# D9: test_cli_log.py, "beginning anew"; test_approvals.py, test_an_end_at_the_question_is_told_of
# D10: of the log test_cli_log.py, test_times_are_local_on_a_terminal_only; of where things lie:


def test_a_run_leaves_its_log_and_nothing_else(place):
    """The stand-ins of old, and the journal of them in ~/.local/state, are gone (decision 24)."""
    running = place.start("run", "--", "sh", "-c", "touch made; echo up; cat", text=True)
    assert running.stdout.readline() == "up\n"
    running.kill()
    running.wait()
    assert [path.name for path in place.ws.iterdir()] == ["made"]
    kept = {str(path.relative_to(place.home)) for path in place.home.rglob("*")}
    assert {path for path in kept if path.split("/")[0] != ".cache"} == {  # which has its /tmp
        ".config", ".config/cordon", ".config/cordon/audit.tail", ".config/cordon/audit.lock"}


# D8: "did you mean" that is silly, or missing


@pytest.mark.parametrize("words, wanted, silly", [
    (["run", "--env-inherit", "some", "--", "true"], "is not one of core, all or none", "did you mean"),
    (["run", "--stdin", "file", "--", "true"], "is not one of pipe or null", "did you mean"),
    (["rules", "lits"], 'did you mean "list"', None),
    (["run", "-p", "readonly", "--", "true"], 'did you mean "read-only"?', None),
    (["run", "-p", "workspace", "--", "true"], 'did you mean "workspace-write"?', None),
    (["run", "-p", "min", "--", "true"], 'did you mean "mine"?', None),
    (["run", "--write", ".", "--", "true"], "did you mean --writable?", None),
    (["run", "echo hi"], "cordon run -- sh -c 'echo hi'", None),
    (["run", "nosuch"], "No such file", "sh -c"),
])
def test_what_is_meant(place, words, wanted, silly):
    place.config("[permissions.mine]\nextends = ':workspace'\n")
    ran = place.cordon(*words)
    assert ran.returncode in (125, 127) and wanted in ran.stderr, ran.stderr
    assert silly is None or silly not in ran.stderr


# One name for one profile


@pytest.mark.parametrize("names", [("read-only", ":read-only"), ("workspace-write", ":workspace"),
                                   ("danger-full-access", ":danger-full-access")])
def test_two_names_are_one_profile(place, names):
    place.config(f"[sandbox_workspace_write]\nwritable_roots = ['{place.outside}']\n")
    told = [place.json("explain", "--json", "-p", name) for name in names]
    assert told[0] == told[1] and told[0]["profile"]["name"] == names[0]
    assert place.json("explain", "--json", "--diff", names[1], "-p", names[0])["differences"] == []
    place.config(f"default_permissions = '{names[1]}'\n")
    told = place.json("explain", "--json")
    assert told["profile"]["name"] == names[0]


def test_a_file_of_codexs_means_what_codex_means(place):
    """There :workspace is not the mode with its table."""
    file = place.config("[sandbox_workspace_write]\nnetwork_access = true\n", "home/.codex/config.toml")
    told = [place.json("explain", "--json", "--config", file, "-p", name)["network"]["access"]
            for name in ("workspace-write", ":workspace")]
    assert told == ["enabled", "restricted"]


# `cordon explain` by default


def test_explain_is_short(place):
    place.config('[permissions.mine]\nextends = ":workspace"\n[permissions.mine.filesystem]\n'
                 f'"{place.outside}" = "write"\n"~/.ssh" = "deny"\n')
    (place.home / ".ssh").mkdir()
    ran = place.cordon("explain", "-p", "mine")
    lines = ran.stdout.splitlines()
    assert len(lines) < 24, ran.stdout
    assert "profile  mine (from --profile)" in lines
    assert any(str(place.ws) in line for line in lines)
    assert any(f"{place.outside} (" in line and "config.toml:4" in line for line in lines)
    assert any(line.startswith(f"deny     {place.home}/.ssh (") for line in lines)
    assert any(line.startswith("network  restricted") for line in lines)
    assert any(line.startswith("layers   ") for line in lines) and "plan" not in lines
    assert "with     pip (from --with)" in place.cordon("explain", "--with", "pip").stdout.splitlines()


def test_a_profile_beside_the_default(place):
    (place.home / ".ssh").mkdir()
    place.config('[permissions.mine]\nextends = ":workspace"\n[permissions.mine.filesystem]\n'
                 f'"{place.outside}" = "write"\n"~/.ssh" = "deny"\n[permissions.mine.network]\nenabled = true\n'
                 '[permissions.tmp]\nextends = ":workspace"\ntmp = "host"\n')
    text = place.cordon("explain", "--diff", "mine").stdout.splitlines()
    assert text[0] == "mine, beside workspace-write" and len(text) == 4
    assert text[1].startswith(f"- deny {place.home}/.ssh, not read  (")
    assert text[2].startswith(f"+ write {place.outside}, not read  (")
    assert text[3] == "+ network enabled, not restricted"
    found = place.json("explain", "--json", "--diff", "workspace-write", "-p", "mine")["differences"]
    assert [(one["what"], one["wider"]) for one in found] == [("path", True), ("path", False), ("network", False)]
    assert place.cordon("explain", "--diff", "tmp").stdout.splitlines()[1:] == ["+ tmp host, not private"]
    text = place.cordon("explain", "--diff", "danger-full-access").stdout
    assert re.search(rf"^\+ write \d+ protected names in {place.ws}, not read$", text, re.MULTILINE) and "/.git" not in text
    assert "- tmp private, not host" in place.cordon("explain", "--diff", ":workspace", "-p", "tmp").stdout
    assert place.cordon("explain", "--diff", "nosuch").returncode == 125
    assert json.loads(place.cordon("explain", "--json", "--diff", "mine", "-p", "mine").stdout)["differences"] == []
