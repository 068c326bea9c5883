"""The tools of `cordon mcp`: one way through each, and what models do wrong."""
import pytest

from harness import is_alive
from talking_mcp import Mcp

PATCH = "*** Begin Patch\n*** Add File: {}\n+hi\n*** End Patch\n"


@pytest.fixture
def mcp(place):
    return Mcp(place)


def test_a_command_ends(mcp):
    result = mcp.tool("exec_command", cmd="cat; pwd; exit 3", stdin="in\n", env={"A": "b"})
    assert result["exit_code"] == 3 and result["session_id"] is None
    assert result["output"] == f"in\n{mcp.place.ws}\n"
    assert mcp.text.startswith("Chunk ID: ") and mcp.text.endswith(result["output"])


def test_a_denial_is_told_with_what_would_allow_it(mcp):
    path = mcp.place.outside / "x"
    result = mcp.tool("exec_command", cmd=f"touch {path}")
    denial, = result["denials"]
    assert (denial["operation"], denial["path"], denial["program"]) == ("write", str(path), "touch")
    assert denial["certain"] and denial["remedy"] in mcp.text.splitlines()[-2]
    # nor does a directory that the model chooses become one that it may write
    assert mcp.tool("exec_command", cmd="touch x", workdir=str(mcp.place.outside))["exit_code"] != 0


def test_what_is_refused_is_logged_for_who_wants_to_know(mcp):
    deny = {"cmd": f"touch {mcp.place.outside}/x"}
    mcp.tool("exec_command", **deny)
    assert mcp.others == []
    mcp.call("logging/setLevel", level="info")
    mcp.tool("exec_command", **deny)
    told, = mcp.others
    assert told["method"] == "notifications/message"
    assert told["params"]["level"] == "notice" and told["params"]["data"].startswith("Denied: write ")


def test_the_user_permits_more_by_options(place):
    mcp = Mcp(place, "--writable", place.outside, "--directory", place.ws / "..")
    assert mcp.tool("exec_command", cmd=f"pwd; touch {place.outside}/x")["output"] == f"{place.base}\n"
    assert (place.outside / "x").exists()
    assert mcp.tool("explain_permissions", path=str(place.outside), access="write")["allowed"]
    for wrong in (["--credential", "A=b.c"], ["--profile", "nope"], ["--network", "x"], ["install", "claude", "--writable", "x"]):
        assert place.cordon("mcp", *wrong).returncode in (1, 125)


def test_a_profile_only_takes_away(mcp):
    write = f"touch x; touch {mcp.place.outside}/x; ls"
    assert mcp.tool("exec_command", cmd=write, profile="read-only")["output"].count("Read-only") == 2
    for wider in ("workspace-write", "danger-full-access"):
        assert mcp.tool("exec_command", cmd=write, profile=wider)["output"].endswith("\nx\n")
    assert not (mcp.place.outside / "x").exists()
    assert "nope" in mcp.tool_fails("exec_command", cmd="true", profile="nope")


def test_any_bytes_are_output(mcp):
    result = mcp.tool("exec_command", cmd=r"printf 'a\000\377\033[31mb\n'")
    assert result["output"] == "a\0\ufffd\x1b[31mb\n" and mcp.text.endswith(result["output"])


def test_a_session_is_talked_to(mcp):
    started = mcp.tool("exec_command", cmd="read a; echo got $a; read b", tty=True, yield_time_ms=250)
    number = started["session_id"]
    assert started["reason"] == "yielded" and started["exit_code"] is None
    session, = mcp.tool("list_sessions")["sessions"]
    assert session["session_id"] == number and session["workdir"] == str(mcp.place.ws)
    assert mcp.tool("write_stdin", session_id=number, chars="1\n", until={"text": "got 1"})["reason"] == "met"
    assert "got 1" in mcp.tool("read_screen", session_id=number)["lines"]
    assert mcp.tool("wait_for", session_id=number, quiet_ms=1)["reason"] == "met"
    assert mcp.tool("terminate_session", session_id=number)["signal"]
    assert mcp.tool("list_sessions") == {"sessions": []}


def test_a_patch_is_applied(mcp):
    assert "+hi" in mcp.tool("apply_patch", patch=PATCH.format("a"), dry_run=True)["diff"]
    assert not (mcp.place.ws / "a").exists()
    assert mcp.tool("apply_patch", patch=PATCH.format("a"))["files"][0]["path"] == "a"
    assert (mcp.place.ws / "a").read_text() == "hi\n"
    assert "nothing was changed" in mcp.tool_fails("apply_patch", patch=PATCH.format("../outside/b"))


def test_what_is_permitted_can_be_asked(mcp):
    assert mcp.tool("explain_permissions", path="a", access="write")["allowed"]
    asked = mcp.tool("explain_permissions", path=str(mcp.place.outside / "x"), access="write")
    assert not asked["allowed"] and asked["decided_by"]
    assert "--allow-host example.com:443" in mcp.tool("explain_permissions", host="example.com:443")["note"]
    assert mcp.tool("explain_permissions", command="git push; true")["verdict"] == "runs"
    everything = mcp.tool("explain_permissions")
    assert str(mcp.place.ws) in everything["writable"] and everything["network"] == "restricted"


@pytest.mark.parametrize("name, arguments, said", [
    ("explain_permissions", {"path": "a", "host": "b"}, "one of path, command and host"),
    ("exec_command", {}, "missing field `cmd`"),
    ("exec_command", {"command": "true"}, "Its arguments are cmd,"),
    ("exec_command", {"cmd": 3}, "$.cmd"),
    ("exec_command", {"cmd": "true", "until": {}}, "one of text, quiet_ms, bytes"),
    ("wait_for", {"session_id": 7}, "there is no session 7"),
    ("wait_for", {"session_id": 1 << 40}, "there is no session 1099511627776"),
    ("wait_for", {"session_id": 7, "bytes": 1, "quiet_ms": 1}, "one of text, quiet_ms, bytes"),
    ("read_screen", {"session_id": "x"}, "expected an integer"),
    ("list_sessions", {"x": 1}, "unknown"),
])
def test_what_a_model_does_wrong_is_a_result(mcp, name, arguments, said):
    assert said in mcp.tool_fails(name, **arguments)


def test_null_is_the_same_as_nothing(mcp):
    assert mcp.tool("exec_command", cmd="true", workdir=None, yield_time_ms=None, until=None)["exit_code"] == 0


def test_no_such_tool(mcp):
    assert mcp.fail("tools/call", name="bash", arguments={})["code"] == -32602


def test_versions_without_structure_get_text(place):
    mcp = Mcp(place, version="2025-03-26")
    result = mcp.call("tools/call", name="exec_command", arguments={"cmd": "echo hi"})
    assert "structuredContent" not in result and result["content"][0]["text"].endswith("hi\n")
    assert not any("outputSchema" in tool for tool in mcp.call("tools/list")["tools"])


def test_progress_is_told_until_the_answer(mcp):
    """Each second, with the line that was written last."""
    number = mcp.ask("tools/call", name="exec_command", _meta={"progressToken": "t"},
                     arguments={"cmd": "echo hi; while [ ! -e enough ]; do sleep 0.05; done"})
    told = {"message": None}
    while told["message"] != "hi":  # before it has written: how long it takes
        told = mcp.read()["params"]
    assert told["progressToken"] == "t" and told["progress"] >= 1 and told["total"] == 10
    (mcp.place.ws / "enough").touch()
    assert mcp.answer(number)["result"]["structuredContent"]["exit_code"] == 0


def test_cancelling_interrupts_and_answers_nothing(mcp):
    number = mcp.ask("tools/call", name="exec_command", arguments={
        "cmd": "trap 'touch interrupted; read; exit' INT; touch ready; read a", "tty": True})
    mcp.wait_for_file("ready")
    mcp.notify("notifications/cancelled", requestId=number)
    mcp.wait_for_file("interrupted")
    session, = mcp.tool("list_sessions")["sessions"]
    assert mcp.others == []
    mcp.tool("terminate_session", session_id=session["session_id"])


def test_the_end_of_input_ends_what_runs(mcp):
    pid = mcp.tool("exec_command", cmd="sleep 1000", yield_time_ms=250) and mcp.tool("list_sessions")["sessions"][0]["pid"]
    mcp.ask("tools/call", name="exec_command", arguments={"cmd": "sleep 1000"})
    assert mcp.close() == ("", "")
    assert not is_alive(pid)


def test_lines_are_counted_from_the_first_of_the_command(mcp):
    """What a login shell set up is read in front of it (docs/decisions/0020-*)."""
    for _ in range(2):
        assert "line 1: /no/such/folder/x" in mcp.tool("exec_command", cmd="echo > /no/such/folder/x", shell="/bin/bash")["output"]
