"""exec/run, approval/*, rules/* and patch/apply of `cordon serve`: the whole executor on the wire."""
import base64
import contextlib
import json
import os
import signal
import time

import pytest
from harness import WAIT
from served import READ_ONLY, Server, exec_result as result, exec_run as run
from served import uri, workspace_write
from ws_client import Closed, RpcError

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


def rules(place, text, name="test.rules"):
    file = place.home / ".config/cordon/rules" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def only_workspace(place):
    """Without /tmp and $TMPDIR, where places of tests may lie."""
    sandbox = workspace_write(place.ws)
    entries = sandbox["permissions"]["file_system"]["entries"]
    sandbox["permissions"]["file_system"]["entries"] = entries[:2]
    return sandbox


PROMPT = 'prefix_rule(pattern=["echo"], decision="prompt", justification="it is loud")\n'


def question(client):
    """The next approval/request."""
    return client.event("approval/request")


def answer(client, asked, decision, **more):
    client.send({"id": asked["id"], "result": {"decision": decision, **more}})


def steps(client, name):
    """The kinds of the events of a run, output as "output"; they have to be counted from 1."""
    events = [event for event in client.events if event["method"].startswith("exec/")
              and event["params"]["runId"] == name]
    assert [event["params"]["seq"] for event in events] == list(range(1, len(events) + 1))
    return [event["params"].get("event", "output") for event in events]


@pytest.mark.parametrize("method", ["exec/run", "session/exec", "process/start"])
@pytest.mark.parametrize("options", [[], ["--default-sandbox", "default"], ["--default-sandbox", "mine"]],
                         ids=["plain", "default", "named"])
def test_only_a_word_means_no_sandbox(place, method, options):
    """What is left out is what the user's configuration says; but the original's process/start."""
    out = place.outside / "f"
    place.config('[permissions.mine]\nextends = ":read-only"\n')
    with Server(place, *options) as server, server.client() as client:
        def writes(path, name, **sandbox):
            params = {"cwd": uri(place.ws), "env": {"PATH": "/usr/bin:/bin"}, **sandbox}
            if method == "session/exec":
                client.call(method, {"cmd": f"echo x > {path}", "login": False, "shell": "/bin/sh", **params})
            elif method == "exec/run":
                client.call(method, {"runId": name, "argv": ["sh", "-c", f"echo x > {path}"],
                                     "approvalPolicy": "never", **params})
            else:
                client.call(method, {"processId": name, "argv": ["sh", "-c", f"echo x > {path}"], "tty": False, **params})
                client.follow(name)
            try:
                path.unlink()
            except FileNotFoundError:
                return False
            return True

        is_open = method == "process/start" and not options
        assert writes(out, "a") == is_open
        assert writes(out, "b", sandbox=None) == is_open
        assert writes(place.ws / "f", "c") == (options[1:] != ["mine"])
        assert writes(out, "d", sandbox="none")
        assert not writes(out, "e", sandbox="default")
        assert not writes(place.ws / "f", "f", sandbox={"profile": "read-only"})
        assert writes(out, "g", sandbox={"profile": None, "writable": [str(place.outside)]})
        for wrong in ("nosuch", {"profile": "nosuch"}, {"profile": None, "more": 1}, {"profile": 5}):
            with pytest.raises(RpcError):
                writes(out, "h", sandbox=wrong)


def test_a_default_sandbox_that_is_none_is_refused(place):
    ran = place.cordon("serve", "--default-sandbox", "nosuch")
    assert ran.returncode == 1 and "--default-sandbox" in ran.stderr and "nosuch" in ran.stderr


def test_yes_runs_and_tells_every_step(place, server):
    rules(place, PROMPT)
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"], justification="to see it")
        asked = question(client)
        assert asked["params"]["sessionId"] == client.session
        asks = asked["params"]["question"]
        assert asks["argv"] == ["echo", "hello"] and asks["kind"] == "command"
        assert "it is loud" in asks["reason"]
        answer(client, asked, "approved", reason="fine")
        got = result(client, number)
        assert got["outcome"] == "ran" and got["runId"] == "r" and not got["patch"]
        assert got["questions"][0]["answer"] == {"decision": "approved", "by": "client",
                                                 "reason": "fine"}
        attempt, = got["attempts"]
        assert attempt["place"] == "sandbox" and attempt["result"]["stdout"] == "hello\n"
        assert steps(client, "r") == ["asked", "answered", "begin", "output", "end"]
        output = client.event("exec/output")["params"]
        assert base64.b64decode(output["chunk"]) == b"hello\n" and output["offset"] == 0


@pytest.mark.parametrize("reply", [
    {"result": {"decision": "denied", "reason": "not now"}},
    {"result": {"decision": "certainly"}},
    {"result": {}},
    {"error": {"code": -32601, "message": "what is that?"}},
])
def test_everything_but_a_yes_is_a_no(place, server, reply):
    rules(place, PROMPT)
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"])
        client.send({"id": question(client)["id"], **reply})
        got = result(client, number)
        assert got["outcome"] == "rejected" and got["decision"] == "denied"
        assert got["attempts"] == []
        assert steps(client, "r") == ["asked", "answered", "end"]


def test_a_yes_for_the_session_is_remembered(place, server):
    rules(place, PROMPT)
    with server.client() as client, server.client() as other:
        number = run(client, "1", ["echo", "hello"])
        answer(client, question(client), "approved_for_session")
        assert result(client, number)["outcome"] == "ran"
        got = result(client, run(client, "2", ["echo", "hello"]))
        assert got["outcome"] == "ran" and got["questions"] == []
        assert steps(client, "2") == ["answered", "begin", "output", "end"]
        number = run(other, "3", ["echo", "hello"])
        answer(other, question(other), "denied")
        assert result(other, number)["outcome"] == "rejected"


def test_always_writes_a_rule(place, server):
    with server.client() as client:
        number = run(client, "1", ["dd", "--version"], approvalPolicy="untrusted",
                     prefixRule=["dd", "--version"])
        asked = question(client)
        assert asked["params"]["question"]["proposed_execpolicy_amendment"] == ["dd", "--version"]
        answer(client, asked, "approved_execpolicy_amendment")
        assert result(client, number)["outcome"] == "ran"
        file = place.home / ".config/cordon/rules/default.rules"
        assert 'pattern=["dd", "--version"]' in file.read_text()
        got = result(client, run(client, "2", ["dd", "--version"], approvalPolicy="untrusted"))
        assert got["outcome"] == "ran" and got["questions"] == []


def test_retry_with_the_smallest_grant(place, server):
    outside = place.base / "granted"
    outside.mkdir()
    (outside / "there").write_text("")
    with server.client() as client:
        number = run(client, "r", f"echo hi > {outside}/there", sandbox=only_workspace(place))
        asked = question(client)["params"]["question"]
        assert asked["kind"] == "retry" and str(outside / "there") in asked["covers"]
        listed, = client.call("approval/list")["questions"]
        client.call("approval/resolve", {"approvalId": listed["approvalId"],
                                         "decision": "approved"})
        got = result(client, number)
        assert [attempt["place"] for attempt in got["attempts"]] == ["sandbox", "widened"]
        assert got["attempts"][0]["result"]["end"] == "denied"
        assert got["attempts"][1]["result"]["exit_code"] == 0
        assert (outside / "there").read_text() == "hi\n"
        kinds = [kind for kind in steps(client, "r") if kind != "output"]
        assert kinds == ["begin", "denied", "asked", "answered", "retried", "begin", "end"]


def test_forbidden_by_a_rule_is_not_asked(place, server):
    rules(place, 'prefix_rule(pattern=["echo"], decision="forbidden", justification="use printf")\n')
    with server.client() as client:
        got = result(client, run(client, "r", ["echo", "hello"]))
        assert got["outcome"] == "forbidden" and "use printf" in got["reason"]
        assert steps(client, "r") == ["end"]


GRANULAR = {"sandbox_approval": True, "rules": True, "mcp_elicitations": True}


@pytest.mark.parametrize("policy, asks", [
    ({"granular": GRANULAR}, True),
    ({"granular": {**GRANULAR, "rules": False}}, False),
    ({"granular": {**GRANULAR, "sandbox_approval": False}}, True),
    ({"reject": {"sandbox_approval": False, "rules": True, "mcp_elicitations": False}}, False),
    ("granular", True),
    (None, True),
])
def test_kinds_of_questions_are_switched_off(place, server, policy, asks):
    rules(place, PROMPT)
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"], approvalPolicy=policy)
        if asks:
            answer(client, question(client), "approved")
        got = result(client, number)
    assert got["outcome"] == ("ran" if asks else "forbidden")
    if not asks:
        assert "granular and has questions like this switched off" in got["reason"]


@pytest.mark.parametrize("policy, where", [
    ("sometimes", '$.approvalPolicy: "sometimes" is no approval policy'),
    (3, "$.approvalPolicy: should be a word"),
    ({"granular": {"rules": True}}, "$.approvalPolicy.granular: sandbox_approval is missing"),
    ({"granular": {**GRANULAR, "rules": "no"}}, "$.approvalPolicy.granular.rules: "),
    ({"granular": {**GRANULAR, "rulez": True}}, "$.approvalPolicy.granular.rulez: "),
    ({"granulare": GRANULAR}, "$.approvalPolicy.granulare: "),
])
def test_a_wrong_policy_is_told_with_its_place(server, policy, where):
    with server.client() as client, pytest.raises(RpcError) as error:
        client.call("exec/run", {"runId": "r", "argv": ["true"], "cwd": uri(client.cwd),
                                 "approvalPolicy": policy})
    assert where in str(error.value) and "-32602" in str(error.value)


def test_the_configuration_of_the_server_chooses_the_policy(place):
    rules(place, PROMPT)
    place.config('approval_policy = "never"\n')
    with Server(place) as server, server.client() as client:
        got = result(client, run(client, "r", ["echo", "hello"]))
        assert got["outcome"] == "forbidden" and "never" in got["reason"]


def test_a_reviewer_answers_for_the_client(place, server):
    rules(place, PROMPT)
    with server.client() as client, server.client() as reviewer:
        number = run(client, "r", ["echo", "hello"])
        asked = question(client)["params"]
        listed, = reviewer.call("approval/list")["questions"]
        assert listed == asked
        for approval, decision, code in ((asked["approvalId"], "certainly", -32602),
                                         (asked["approvalId"], "timed_out", -32602),
                                         ("99.q1", "denied", -32600)):
            with pytest.raises(RpcError) as error:
                reviewer.call("approval/resolve", {"approvalId": approval, "decision": decision})
            assert error.value.code == code
        reviewer.call("approval/resolve", {"approvalId": asked["approvalId"],
                                           "decision": "approved"})
        got = result(client, number)
        assert got["outcome"] == "ran" and got["questions"][0]["answer"]["by"] == "reviewer"
        assert reviewer.call("approval/list") == {"questions": []}
        with pytest.raises(RpcError):
            reviewer.call("approval/resolve", {"approvalId": asked["approvalId"],
                                               "decision": "denied"})


def test_who_disconnects_while_asked_says_no(place, server):
    rules(place, PROMPT)
    client = server.client()
    run(client, "r", "echo hello > ran")
    question(client)
    client.close()
    with server.client() as other:
        # the server hears of the end by another socket than of this call
        deadline = time.monotonic() + WAIT
        while other.call("approval/list")["questions"]:
            assert time.monotonic() < deadline
        number = run(other, "r", ["echo", "hello"])
        answer(other, question(other), "approved")
        assert result(other, number)["outcome"] == "ran"
    assert not (place.ws / "ran").exists()


def test_a_prompt_pauses_the_clock_and_cancel_withdraws_it(place, server):
    rules(place, PROMPT)
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"], timeoutMs=1)
        question(client)
        with pytest.raises(RpcError) as error:
            client.call("exec/run", {"runId": "r", "argv": ["true"], "cwd": uri(client.cwd)})
        assert error.value.code == -32600
        assert client.call("exec/cancel", {"runId": "r"}) == {"running": True}
        assert result(client, number)["outcome"] == "rejected"
        assert client.call("exec/cancel", {"runId": "r"}) == {"running": False}
        number = run(client, "s", "printf up; exec sleep 1000")
        client.event("exec/output")
        client.call("exec/cancel", {"runId": "s"})
        assert result(client, number)["attempts"][0]["result"]["end"] == "cancelled"
        got = result(client, run(client, "t", ["sleep", "1000"], timeoutMs=1))
        assert got["attempts"][0]["result"]["end"] == "timed-out"


def test_the_sandbox_of_the_call_holds(server, place):
    with server.client() as client:
        got = result(client, run(client, "r", "echo x > f", sandbox=READ_ONLY,
                                 approvalPolicy="never"))
        assert got["attempts"][0]["result"]["end"] == "denied" and not (place.ws / "f").exists()
        got = result(client, run(client, "e", ["true"], sandboxPermissions="require_escalated",
                                 approvalPolicy="never"))
        assert got["outcome"] == "forbidden"


def test_rules_check_list_and_add(place, server):
    rules(place, PROMPT)
    rules(place, "nonsense(\n", "zz.rules")
    with server.client() as client:
        got = client.call("rules/check", {"argv": ["sh", "-c", "true && echo hi"]})
        match, = got["matchedRules"]
        assert match["prefixRuleMatch"]["line"] == 1 and got["decision"] == "prompt"
        assert "zz.rules" in got["problems"][0]["file"]
        files = client.call("rules/list")["files"]
        assert [file["file"].rpartition("/")[2] for file in files] == ["test.rules", "zz.rules"]
        assert files[0]["rules"][0]["pattern"] == [["echo"]] and files[0]["error"] is None
        assert "zz.rules:" in files[1]["error"]
        added = {"pattern": ["git", "push"], "decision": "forbidden", "justification": "ask first"}
        assert client.call("rules/add", added)["added"]
        assert not client.call("rules/add", added)["added"]
        got = client.call("rules/check", {"argv": ["git", "push", "origin"]})
        assert got["decision"] == "forbidden"
        with pytest.raises(RpcError) as error:
            client.call("rules/add", {**added, "sandbox": "keep"})
        assert error.value.code == -32602


def apply(client, patch, **params):
    return client.call("patch/apply", {"patch": patch, "cwd": uri(client.cwd),
                                       "sandbox": workspace_write(client.cwd), **params})


def test_patch_apply(place, server):
    with server.client() as client:
        got = apply(client, PATCH, task="diff")
        assert "+hello" in got["diff"] and not got["applied"]
        assert not (place.ws / "a.txt").exists()
        got = apply(client, PATCH)
        assert got["applied"] and got["error"] is None and got["files"][0]["path"] == "a.txt"
        assert (place.ws / "a.txt").read_text() == "hello\n"
        got = apply(client, PATCH.replace("a.txt", "../b.txt"))
        assert not got["applied"] and got["error"]["code"] == "forbidden"
        assert not (place.ws.parent / "b.txt").exists()
        got = apply(client, PATCH.replace("a.txt", "c.txt"), sandbox=READ_ONLY)
        assert not got["applied"] and not (place.ws / "c.txt").exists()


def test_apply_patch_is_intercepted(place, server):
    script = f"cd sub && apply_patch <<'EOF'\n{PATCH}EOF\n"
    (place.ws / "sub").mkdir()
    with server.client() as client:
        got = result(client, run(client, "r", ["bash", "-lc", script]))
        assert got["patch"] and "A a.txt" in got["attempts"][0]["result"]["stdout"], got
        assert (place.ws / "sub/a.txt").read_text() == "hello\n"
        with pytest.raises(RpcError) as error:
            client.call("exec/run", {"runId": "s", "argv": [PATCH], "cwd": uri(client.cwd)})
        assert "apply_patch" in str(error.value)


def test_a_patch_is_asked_about_like_a_command(place, server):
    with server.client() as client:
        number = run(client, "r", ["apply_patch", PATCH], approvalPolicy="untrusted")
        answer(client, question(client), "denied")
        assert result(client, number)["outcome"] == "rejected"
        assert not (place.ws / "a.txt").exists()


def add_files(*names):
    """A patch; each has another text, as no two patches of a model are the same."""
    add_files.count = getattr(add_files, "count", 0) + 1
    files = "".join(f"*** Add File: {name}\n+{add_files.count}\n" for name in names)
    return f"*** Begin Patch\n{files}*** End Patch\n"


def test_a_yes_for_the_session_to_a_patch_is_one_for_each_file(place, server):
    (place.ws / "d").mkdir()
    with server.client() as client:
        def is_asked(patch, decision="approved_for_session", cd=None, **params):
            """Whether the patch is asked about, which is answered so."""
            is_asked.number += 1
            name = f"r{is_asked.number}"
            argv = ["apply_patch", patch] if cd is None else [
                "bash", "-lc", f"cd {cd} && apply_patch <<'EOF'\n{patch}EOF\n"]
            number = run(client, name, argv, **{"approvalPolicy": "untrusted", **params})
            if client.event("exec/event", lambda told: told["runId"] == name)["params"]["event"] == "asked":
                asks = question(client)
                answer(client, asks, decision)
                is_asked.covers = asks["params"]["question"]["covers"]
                is_asked.offers = asks["params"]["question"]["available_decisions"]
            got = result(client, number)
            assert got["outcome"] == "ran" and got["patch"]
            return got["questions"] != []
        is_asked.number = 0

        assert is_asked(add_files("a.txt", "b.txt"))
        assert is_asked.covers.endswith(
            f"; for the session: also every later patch of {place.ws}/a.txt, {place.ws}/b.txt")
        assert not is_asked(add_files("b.txt"))
        assert (place.ws / "b.txt").read_text() == f"{add_files.count}\n"
        assert not is_asked(add_files("b.txt", "a.txt"))
        assert is_asked(add_files("b.txt", "c.txt"), "approved")  # once is once
        assert is_asked(add_files("b.txt", "c.txt"))
        assert not is_asked(add_files("c.txt"))
        for name in ("./b.txt", "d/../b.txt", f"{place.ws}/b.txt"):
            assert not is_asked(add_files(name))
        assert not is_asked(add_files("b.txt"), cd=".")
        assert not is_asked(add_files("b.txt"), cd=place.ws)
        assert is_asked(add_files("b.txt"), cd="d")  # d/b.txt
        assert not is_asked(add_files("d/b.txt"))
        move = "*** Begin Patch\n*** Update File: c.txt\n*** Move to: e.txt\n@@\n-{}\n+x\n" \
               "*** End Patch\n"
        assert is_asked(move.format((place.ws / "c.txt").read_text().strip()), "approved")
        assert (place.ws / "e.txt").read_text() == "x\n"
        assert is_asked("*** Begin Patch\n*** Rename File: b.txt\n*** End Patch\n", "approved")
        assert "approved_for_session" not in is_asked.offers


def test_what_was_asked_and_run_is_in_the_log(place):
    rules(place, PROMPT)
    with Server(place) as server:
        with server.client() as client:
            number = run(client, "r", ["echo", "hello"])
            answer(client, question(client), "approved")
            result(client, number)
            apply(client, PATCH)
        assert server.stop() == 0
    records = [json.loads(line) for line in place.cordon("log", "--json").stdout.splitlines()]
    kinds = [record["event"] for record in records]
    assert kinds == ["begin", "asked", "answered", "output", "end", "patch-begin", "patch-end"]
    assert records[0]["body"]["argv"] == ["echo", "hello"]
    assert records[2]["body"]["by"] == "client" and records[-1]["body"]["applied"]


def test_who_disconnects_ends_the_command(place, server):
    os.mkfifo(place.ws / "alive")
    client = server.client()
    run(client, "r", "exec 3> alive; printf up; exec sleep 1000")
    with open(place.ws / "alive", "rb") as alive:
        client.event("exec/output")
        client.close()
        assert alive.read() == b""  # the end comes when the command is gone


def test_a_server_that_stops_takes_its_questions_back(place, server):
    rules(place, PROMPT)
    with server.client() as client:
        number = run(client, "r", ["echo", "hello"])
        question(client)
        os.kill(server.process.pid, signal.SIGTERM)
        os.kill(server.process.pid, signal.SIGINT)
        assert server.process.wait(WAIT) == 0
        with contextlib.suppress(Closed):
            assert result(client, number)["outcome"] == "rejected"


def test_additional_permissions_are_asked_about_and_given(place, server):
    target = place.base / "wanted"
    target.mkdir()
    with server.client() as client:
        wish = {"sandboxPermissions": "with_additional_permissions", "sandbox": only_workspace(place),
                "additionalPermissions": {"file_system": {"write": [str(target)]}}}
        number = run(client, "r", f"echo hi > {target}/file", **wish)
        asked = question(client)
        assert str(target) in asked["params"]["question"]["covers"]
        answer(client, asked, "approved")
        got = result(client, number)
        assert [attempt["place"] for attempt in got["attempts"]] == ["widened"]
        assert (target / "file").read_text() == "hi\n"
        got = result(client, run(client, "s", f"echo hi > {target}/more",
                                 sandbox=only_workspace(place), approvalPolicy="never"))
        assert got["attempts"][0]["result"]["end"] == "denied"  # the yes was for one command
        with pytest.raises(RpcError) as error:
            client.call("exec/run", {"runId": "t", "argv": ["true"], "cwd": uri(place.ws),
                                     "additionalPermissions": {"nonsense": 1}})
        assert error.value.code == -32602


def test_output_that_nobody_reads_is_missing_by_its_offset(place, server):
    with server.client() as client:
        number = run(client, "r", "head -c 64M /dev/zero; echo end", maxOutputBytes=1000)
        got = result(client, number)["attempts"][0]["result"]
        assert got["stdout_bytes"] == (64 << 20) + 4 and got["stdout"].endswith("end\n")
        pieces = [event["params"] for event in client.events if event["method"] == "exec/output"]
        at = 0
        for piece in pieces:
            assert piece["offset"] >= at
            at = piece["offset"] + len(base64.b64decode(piece["chunk"]))
        assert at <= got["stdout_bytes"]


def test_a_patch_elsewhere_gets_the_one_folder_that_is_granted(place, server):
    elsewhere = place.base / "elsewhere"
    (elsewhere / "sub").mkdir(parents=True)
    sandbox = only_workspace(place)
    del sandbox["workspaceRoots"]  # the folder of the call counts, and never that of `cd`
    patch = PATCH.replace("a.txt", "sub/a.txt")
    script = f"cd {elsewhere} && apply_patch <<'EOF'\n{patch}EOF\n"
    with server.client() as client:
        got = result(client, run(client, "r", ["bash", "-lc", script], sandbox=sandbox,
                                 approvalPolicy="never"))
        assert len(got["attempts"]) == 1 and got["attempts"][0]["result"]["exit_code"] != 0
        got = client.call("patch/apply", {"patch": patch, "cwd": uri(place.ws), "sandbox": sandbox,
                                          "task": "check"})
        assert got["error"] is None and not got["applied"]
        assert list((elsewhere / "sub").iterdir()) == []
        number = run(client, "s", ["bash", "-lc", script], sandbox=sandbox)
        asked = question(client)
        assert f"writing {elsewhere}" in asked["params"]["question"]["covers"]
        assert "approved_without_sandbox" not in asked["params"]["question"]["available_decisions"]
        answer(client, asked, "approved")
        got = result(client, number)
        assert [attempt["place"] for attempt in got["attempts"]] == ["sandbox", "widened"]
    assert (elsewhere / "sub/a.txt").read_text() == "hello\n"


def test_a_wish_is_shown_as_what_it_leads_to(place, server):
    """A link of a hostile repository has one name and opens another place."""
    target = place.base / "elsewhere"
    target.mkdir()
    (place.ws / "vendor").symlink_to(target)
    with server.client() as client:
        def wish(path):
            return {"sandboxPermissions": "with_additional_permissions",
                    "sandbox": only_workspace(place),
                    "additionalPermissions": {"file_system": {"write": [str(path)]}}}

        number = run(client, "r", "true", **wish(place.ws / "vendor/new"))
        asked = question(client)
        assert f"{target}/new" in asked["params"]["question"]["covers"]
        answer(client, asked, "denied")
        assert result(client, number)["outcome"] == "rejected"
        (place.ws / "top").symlink_to("/")
        for path, word in ((place.home / ".config/cordon", "belongs to Cordon"),
                           (place.ws / "top", "root directory")):
            message = client.answer(run(client, "s", "true", **wish(path)))
            assert word in message["error"]["message"]


def test_variables_of_a_call_go_nowhere_outside(place):
    """A rule lets the program out, and not what the caller has it do by its environment."""
    rules(place, 'prefix_rule(["touch"])\nprefix_rule(["true"])\n')
    (place.ws / "env").write_text(f"touch {place.outside}/leaked\n")
    with Server(place) as server, server.client() as client:
        def call(argv, **env):
            number = run(client, "r", argv, approvalPolicy="never", sandbox=only_workspace(place),
                         env={"PATH": "/usr/bin:/bin", **env})
            return result(client, number)["attempts"][0]["place"]

        assert call(["touch", f"{place.outside}/a"], LANG="C", TERM="dumb") == "none"
        for name, value in (("LD_PRELOAD", f"{place.ws}/x.so"), ("BASH_ENV", f"{place.ws}/env"), ("PATH", f"{place.ws}:/usr/bin"),
                            ("GIT_SSH_COMMAND", "x"), ("BASH_FUNC_true%%", "() { touch x; }"), ("ANYTHING", "1")):
            assert call(["bash", "-c", "true"], **{name: value}) == "sandbox", name
        assert not (place.outside / "leaked").exists()


def test_a_yes_for_the_session_is_for_variables_sandbox_and_program(place):
    with Server(place) as server, server.client() as client:
        def asked(env=None, sandbox=None, decision="approved_for_session"):
            number = run(client, "r", ["true"], sandboxPermissions="require_escalated",
                         env={"PATH": "/usr/bin:/bin", **(env or {})},
                         approvalPolicy="on-request", sandbox=sandbox or only_workspace(place))
            message = question(client) if decision else None
            seen = message and message["params"]["question"]
            if seen:
                answer(client, message, decision)
            return seen, result(client, number)

        first, _ = asked()
        assert first["programs"].startswith("true = /") and first["variables"] == []
        asked(decision=None)
        preload = {"LD_PRELOAD": f"{place.ws}/x.so"}
        again, _ = asked(env=preload, decision="denied")
        assert again["variables"] == [f"LD_PRELOAD={place.ws}/x.so"]
        other = only_workspace(place)
        other["permissions"]["network"] = "enabled"
        asked(sandbox=other, decision="denied")


def test_the_folder_of_a_call_chooses_no_rules(place):
    """The rules of a trusted project count for a call whose client names it as a root, and not for one
    whose model says `cwd`."""
    project = place.base / "project"
    (project / ".cordon/rules").mkdir(parents=True)
    (project / ".cordon/rules/a.rules").write_text(
        'prefix_rule(pattern=["touch"], decision="allow")\n')
    place.config(f'[projects."{project}"]\ntrust_level = "trusted"\n')
    with Server(place) as server, server.client() as client:
        file = place.outside / "made"
        number = run(client, "r", ["touch", str(file)], cwd=uri(project), approvalPolicy="never",
                     sandbox=only_workspace(place))
        assert result(client, number)["attempts"][0]["result"]["end"] == "denied"
        assert not file.exists()
        number = run(client, "s", ["touch", str(file)], cwd=uri(project), approvalPolicy="never",
                     sandbox={**only_workspace(place), "workspaceRoots": [uri(project)]})
        assert result(client, number)["attempts"][0]["place"] == "none" and file.exists()
