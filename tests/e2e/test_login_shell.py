"""Login shells of session/exec and exec/run: what their start-up files set up is kept, so that it is
paid for once; and patches that a model sends as a command of a session."""
import base64

import pytest
from served import READ_ONLY, Server, uri, workspace_write
from ws_client import RpcError

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"


@pytest.fixture
def server(place):
    with Server(place, "--log-level", "debug", env={"SHELL": "/bin/bash"}) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def profile(place, text):
    """Start-up files that take note of being read."""
    (place.home / ".bash_profile").write_text(f"echo read >> {place.ws}/reads\n{text}")


def reads(place):
    return len((place.ws / "reads").read_text().splitlines())


def session(client, cmd, **params):
    """The answer of a command that has ended."""
    return client.call("session/exec", {"cmd": cmd, "cwd": uri(client.cwd),
                                        "until": {"text": "never, so its end"},
                                        "yieldTimeMs": 30000, **params})


def output(client, cmd, **params):
    answer = session(client, cmd, **params)
    assert answer["exitCode"] == 0, answer
    return base64.b64decode(answer["output"]).decode()


def wait_for_snapshot(server, client, number=1):
    while server.logged().count("shell-snapshot-over") < number:
        client.call("process/list")


SANDBOXES = [pytest.param(lambda place: "none", id="no-sandbox"),
             pytest.param(lambda place: workspace_write(place.ws), id="sandbox")]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_start_up_is_paid_once(place, server, client, sandbox):
    sandbox = sandbox(place)
    profile(place, "export A=from-login B=from-login\ngreet() { echo hi $1; }\nshopt -s extglob\n")
    script = "greet you; echo $A; shopt -q extglob && echo glob"
    wanted = "hi you\nfrom-login\nglob\n"
    assert output(client, script, sandbox=sandbox) == wanted
    wait_for_snapshot(server, client)
    assert reads(place) == 2  # the command, and the snapshot

    def at_home():
        """But for the audit log, which is written when some time has passed."""
        return {path for path in place.home.rglob("*") if ".config" not in path.parts}

    before = at_home()
    for _ in range(3):
        assert output(client, script, sandbox=sandbox) == wanted
    assert output(client, "echo $A $B ${_cordon_state_0-}", sandbox=sandbox,
                  env={"A": "mine"}) == "mine from-login\n"
    assert reads(place) == 2
    assert at_home() == before  # nothing of it is on the disk
    output(client, "true", sandbox=sandbox, cwd=uri(place.tmp))
    assert reads(place) >= 3  # another folder


def test_none_is_used_in_another_sandbox(place, server, client):
    """Made in the one, and never read in the other or without one."""
    profile(place, "export WHERE=${CORDON_SANDBOX-none}-$(touch /tmp/x-$$ && echo w; "
                   "rm -f /tmp/x-$$)\n")
    script = "echo $WHERE; declare -F planted"
    first = session(client, script, sandbox=workspace_write(place.ws))
    wait_for_snapshot(server, client)
    (place.home / ".bash_profile").write_text("export WHERE=changed\n")
    again = session(client, script, sandbox=workspace_write(place.ws))
    assert again["output"] == first["output"]
    for sandbox in (None, READ_ONLY):
        got = session(client, script, sandbox=sandbox)
        assert base64.b64decode(got["output"]) == b"changed\n"


def test_none_gives_a_variable_to_a_command_that_may_not_have_it(place, client, server):
    profile(place, "")
    policy = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "includeOnly": [],
              "set": {"SECRET_OF_ONE": "x"}}
    script = "echo ${SECRET_OF_ONE-none}"
    assert output(client, script, envPolicy=policy) == "x\n"
    wait_for_snapshot(server, client)
    assert output(client, script, envPolicy=policy) == "x\n"
    assert output(client, script) == "none\n"
    assert output(client, script, env={"SECRET_OF_ONE": "y"}) == "y\n"
    wait_for_snapshot(server, client, 2)
    assert output(client, script) == "none\n"


def test_none_is_used_by_another_client(place, server, client):
    profile(place, "")
    output(client, "true")
    wait_for_snapshot(server, client)
    with server.client() as other:
        output(other, "true")
        wait_for_snapshot(server, other, 2)
    assert reads(place) == 4


def test_start_up_that_fails_is_said_once(place, server, client):
    profile(place, "case $- in *c*) trap 'exit 3' EXIT ;; esac\n")
    first = session(client, "echo hi")
    wait_for_snapshot(server, client)
    second = session(client, "echo hi")
    third = session(client, "echo hi")
    assert [base64.b64decode(got["output"]) for got in (first, second, third)] == [b"hi\n"] * 3
    assert reads(place) == 4  # each command, and the one attempt
    note = "could not be kept"
    assert [note in got["text"] for got in (first, second, third)] == [False, True, False]
    assert server.logged().count("shell-snapshot-failed") == 1
    assert "start-up files of /bin/bash fail" in server.logged()


def test_what_is_no_login_needs_none(place, server, client):
    profile(place, "")
    assert output(client, "echo hi", login=False) == "hi\n"
    assert not (place.ws / "reads").exists()


def test_run_uses_it_too(place, server, client):
    profile(place, "greet() { echo hi $1; }\n")

    def run(number):
        got = client.call("exec/run", {"runId": str(number), "cwd": uri(client.cwd),
                                       "argv": ["/bin/bash", "-lc", "greet you"]})
        assert got["attempts"][0]["result"]["stdout"] == "hi you\n", got
        return got

    assert run(0)["warnings"] == []
    wait_for_snapshot(server, client)
    for number in range(1, 4):
        run(number)
    assert reads(place) == 2


# --- patches


@pytest.mark.parametrize("script, folder", [
    (f"apply_patch <<'EOF'\n{PATCH}EOF\n", "."),
    (f"cd sub && apply_patch <<'EOF'\n{PATCH}EOF\n", "sub"),
])
def test_a_patch_is_applied_and_not_run(place, client, script, folder):
    (place.ws / "sub").mkdir()
    answer = session(client, script, sandbox=workspace_write(place.ws))
    assert answer["exitCode"] == 0 and "A a.txt" in answer["text"], answer
    assert (place.ws / folder / "a.txt").read_text() == "hello\n"


def test_the_text_of_a_patch_is_in_no_log(place):
    with Server(place) as server:
        with server.client() as client:
            session(client, f"apply_patch <<'EOF'\n{PATCH}EOF\n")
        assert server.stop() == 0
    log = place.cordon("log", "--json").stdout
    assert '"apply_patch"' in log and "hello" not in log


def test_a_patch_stays_in_the_sandbox_of_its_call(place, client):
    answer = session(client, f"apply_patch <<'EOF'\n{PATCH}EOF\n", sandbox=READ_ONLY)
    assert answer["exitCode"] == 1 and not (place.ws / "a.txt").exists()


def test_a_bare_patch_is_refused_with_advice(place, client):
    with pytest.raises(RpcError, match="call apply_patch"):
        session(client, PATCH)
    assert not (place.ws / "a.txt").exists()
