"""Reads that are asked about, by the whole of Cordon: `"PATH" = "ask"` in a profile. Each kind of access,
and all that may go wrong, is in tests/escape/test_points.py. As an ordinary user there may be no
/dev/fuse: then the places are masked, and that is said."""
import json
import os

import pytest

CAN_WATCH = os.access("/dev/fuse", os.R_OK | os.W_OK)


@pytest.fixture
def asks(place):
    """A vault and a key that are asked about."""
    (place.outside / "vault").mkdir()
    (place.outside / "vault/secret").write_text("the-secret\n")
    (place.outside / "key").write_text("the-key\n")
    place.config(f"""
default_permissions = "asks"
[permissions.asks]
extends = ":workspace"
watch = "ask"
[permissions.asks.filesystem]
"{place.outside}" = {{ "vault" = "ask", "key" = "ask" }}
""")
    return place.outside


def hook(place, answer):
    """A program that keeps the questions and gives this answer."""
    file = place.base / "hook"
    file.write_text(f"#!/bin/sh\ncat >> {place.base}/questions\necho >> {place.base}/questions\n"
                    f"echo '{{\"decision\": \"{answer}\"}}'\n")
    file.chmod(0o755)
    return ["--approval-hook", file, "-a", "on-request"]


def questions(place):
    file = place.base / "questions"
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []


def run(place, script, *words):
    return place.run("--json", *words, "--", "sh", "-c", script, start_new_session=True)


if CAN_WATCH:
    def test_yes(place, asks):
        ran = run(place, "cat ../outside/vault/secret ../outside/key ../outside/vault/secret", *hook(place, "approved"))
        result = json.loads(ran.stdout)
        assert result["exit_code"] == 0 and "the-secret\nthe-key\nthe-secret\n" in json.dumps(result).replace("\\n", "\n")
        vault, key = questions(place)
        assert vault["kind"] == "held" and vault["covers"] == f"reading {asks}/vault until the command ends"
        assert "cat (pid " in vault["reason"] and f"wants to read {asks}/vault/secret" in vault["reason"]
        assert key["covers"] == f"reading {asks}/key until the command ends"
        assert result["denials"] == []

    def test_no(place, asks):
        ran = run(place, "cat ../outside/vault/secret; ls ../outside/vault; true", *hook(place, "denied"))
        result = json.loads(ran.stdout)
        assert len(questions(place)) == 1
        assert [(one["operation"], one["evidence"], one["path"]) for one in result["denials"]] == \
            [("read", "fact", f"{asks}/vault/secret"), ("read", "fact", f"{asks}/vault")]

    def test_a_yes_does_not_open_writing(place, asks):
        ran = run(place, "cat ../outside/key && echo changed > ../outside/key", *hook(place, "approved"))
        assert json.loads(ran.stdout)["exit_code"] != 0
        assert (asks / "key").read_text() == "the-key\n"
        assert {one["covers"] for one in questions(place)} == {f"reading {asks}/key until the command ends"}

    def test_programs_in_it_are_seen(place, asks):
        """Also the first one, which the look at it holds, and by whatever name."""
        tool = asks / "vault/tool"
        tool.write_text("#!/bin/sh\necho ran\n")
        tool.chmod(0o755)
        ran = run(place, "ln -s ../outside/vault l; l/tool; l/tool", "--trace=exec", *hook(place, "approved"))
        result = json.loads(ran.stdout)
        assert json.dumps(result["execs"]).count('["l/tool"]') == 2, result["execs"]
        assert result["denials"] == [] and len(questions(place)) == 1

    def test_nobody_to_ask(place, asks):
        result = json.loads(run(place, "cat ../outside/vault/secret").stdout)
        fact, = result["denials"]
        assert (fact["operation"], fact["path"], fact["program"]) == ("read", f"{asks}/vault/secret", "cat")
else:
    def test_masked(place, asks):
        ran = run(place, "cat ../outside/vault/secret ../outside/key", *hook(place, "approved"))
        assert "the-" not in json.loads(ran.stdout)["denials"][0]["path"].rpartition("/")[2]
        assert json.loads(ran.stdout)["exit_code"] != 0
        assert all("reading" not in one["covers"] or one["kind"] == "retry" for one in questions(place))


def test_explained(place, asks):
    text = place.cordon("explain", "--all").stdout
    assert f"  ask    {asks}/vault\n" in text
    assert ("reads: masked; /dev/fuse cannot be opened" in text) == (not CAN_WATCH)
    assert f"  {'watchpoint' if CAN_WATCH else 'mask'} {asks}/vault " in text
    found = place.json("explain", "--json")
    assert [entry["path"] for entry in found["entries"] if entry.get("ask")] == [f"{asks}/key", f"{asks}/vault"]


def test_doctor(place):
    found = json.loads(place.cordon("doctor", "--json").stdout)["watchpoints"]
    assert found["available"] == CAN_WATCH
    assert (found["why"] is None) == CAN_WATCH
