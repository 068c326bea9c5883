"""session/exec keeps what the rules of its host's user forbid, as `cordon run` does without an
approval policy: no question is asked, and nothing of a refused command runs."""
import base64
import json

import pytest
from served import Server, uri, workspace_write
from ws_client import RpcError

FORBIDDEN = 'prefix_rule(pattern=["touch"], decision="forbidden", justification="{}")\n'
WHY = "files are made by patches here"
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n"


@pytest.fixture
def server(place):
    with Server(place, env={"SHELL": "/bin/bash"}) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def write_rules(place, text, name="test.rules"):
    """The file."""
    file = place.home / ".config/cordon/rules" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def session(client, cmd, **params):
    return client.call("session/exec", {"cmd": cmd, "cwd": uri(client.cwd), "login": False,
                                        "until": {"text": "never, so its end"},
                                        "yieldTimeMs": 30000, **params})


def refusal(client, cmd, **params):
    """The error; nothing may be left of the call."""
    with pytest.raises(RpcError) as error:
        session(client, cmd, **params)
    assert error.value.code == -32600
    assert client.call("session/list") == {"sessions": []}
    assert client.call("process/list") == {"processes": []}
    return error.value


def text_of(error):
    """What the model is to see."""
    return error.data["text"]


def records(place):
    lines = place.cordon("log", "--json").stdout.splitlines()
    return [(record["event"], record["body"]) for record in map(json.loads, lines)]


def test_what_a_rule_forbids_is_refused_in_the_words_of_exec_run(place, server, client):
    why = WHY + ", which is said at such length that no fixed number of bytes would hold it" * 5
    file = write_rules(place, "\n" + FORBIDDEN.format(why))
    wanted = f"the rule `touch` ({file}:2) forbids it: {why}"
    error = refusal(client, "touch made")
    assert wanted in str(error)
    assert text_of(error) == f"exec_command failed for `touch made`: {wanted}"
    got = client.call("exec/run", {"runId": "r", "argv": ["touch", "made"], "cwd": uri(client.cwd)})
    assert (got["outcome"], got["reason"]) == ("forbidden", wanted)
    assert session(client, "echo x > other")["exitCode"] == 0
    assert (place.ws / "other").exists() and not (place.ws / "made").exists()


@pytest.mark.parametrize("cmd", [
    'bash -lc "echo a && touch made"', "echo a; touch made", "cat < /dev/null && (touch made)",
    "for f in made; do touch $f; done", "/usr/bin/touch made", "t='' touch made",
])
@pytest.mark.parametrize("params", [
    pytest.param({}, id="no-login"),
    pytest.param({"login": True}, id="login"),
    pytest.param({"shell": "/bin/sh", "tty": True}, id="sh"),
    pytest.param({"shell": "/usr/bin/dash"}, id="dash"),
])
def test_it_is_found_wherever_it_stands(place, server, client, cmd, params):
    write_rules(place, FORBIDDEN.format(WHY))
    (place.home / ".bash_profile").write_text(f"echo login > {place.ws}/login\n")
    error = refusal(client, cmd, sandbox=workspace_write(place.ws), **params)
    assert WHY in text_of(error)
    assert list(place.ws.iterdir()) == []  # not even start-up files have run


def test_a_rules_file_that_is_broken_refuses_what_it_might_forbid(place, server, client):
    write_rules(place, 'prefix_rule(pattern=["echo"], decision="allow", sandbox="keep")\n'
                       'prefix_rule(pattern=["printf"], decision="prompt")\n', "a.rules")
    file = write_rules(place, "nonsense(\n", "b.rules")
    for cmd in ("cat /dev/null", "echo a && cat /dev/null", "rm -rf x", "printf a; cat /dev/null"):
        error = refusal(client, cmd)
        assert f"{file}:" in text_of(error) and "broken" in text_of(error)
    for cmd in ("echo fine", "printf 'fine\\n'"):  # no question is asked, so a prompt is none
        answer = session(client, cmd)
        assert base64.b64decode(answer["output"]) == b"fine\n" and answer["exitCode"] == 0
    file.unlink()  # rules count from the next command on
    assert session(client, "cat /dev/null")["exitCode"] == 0


def test_a_patch_can_be_forbidden(place, server, client):
    script = f"apply_patch <<'EOF'\n{PATCH}EOF\n"
    file = write_rules(place, 'prefix_rule(pattern=["apply_patch"], decision="forbidden", '
                              'justification="read only today")\n')
    (place.ws / "sub").mkdir()
    for cmd in (script, f"cd sub && {script}"):
        assert "read only today" in text_of(refusal(client, cmd))
    assert list(place.ws.rglob("a.txt")) == []
    file.unlink()
    assert session(client, script)["exitCode"] == 0
    assert (place.ws / "a.txt").read_text() == "hello\n"


def test_a_refusal_is_in_the_log_like_that_of_exec_run(place):
    write_rules(place, FORBIDDEN.format(WHY) +
                'prefix_rule(pattern=["apply_patch"], decision="forbidden")\n')
    with Server(place) as server:
        with server.client() as client:
            refusal(client, "touch made", shell="/bin/bash", env={"KEY": "s3cret-s3cret"})
            client.call("exec/run", {"runId": "r", "argv": ["/bin/bash", "-c", "touch made"],
                                     "cwd": uri(client.cwd)})
            refusal(client, f"apply_patch <<'EOF'\n{PATCH}EOF\n", shell="/bin/bash")
        assert server.stop() == 0
    (begin, one), (end, how), (_, other), (_, how_other), (_, patch), (_, how_patch) = records(place)
    assert (begin, end) == ("begin", "end") and how == how_other
    assert how["end"] == "forbidden" and WHY in how["reason"]
    assert one["argv"] == other["argv"] == ["/bin/bash", "-c", "touch made"]
    assert one["cwd"] == other["cwd"] and "s3cret" not in json.dumps(one)
    assert patch["argv"] == ["apply_patch"] and how_patch["end"] == "forbidden"


def test_the_rules_of_a_project_count_where_the_client_names_it_a_root(place):
    project = place.base / "project"
    (project / ".cordon/rules").mkdir(parents=True)
    (project / ".cordon/rules/a.rules").write_text(FORBIDDEN.format("not in this project"))
    place.config(f'[projects."{project}"]\ntrust_level = "trusted"\n')
    roots = {**workspace_write(project), "workspaceRoots": [uri(project)]}
    with Server(place) as server, server.client() as client:
        error = refusal(client, "touch made", cwd=uri(project), sandbox=roots)
        assert "not in this project" in text_of(error)
        assert session(client, "touch made")["exitCode"] == 0
