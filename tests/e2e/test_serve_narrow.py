"""`narrow` and `roots` of a sandbox: what a client sends of its own sandbox makes ours narrower, and never wider."""
import base64
import json

import pytest
from served import Server, uri
from ws_client import RpcError


def profile(*entries, network="restricted", **fields):
    kinds = {"root", "project_roots", "slash_tmp", "tmpdir", "minimal"}
    return {"type": "managed", "network": network, **fields, "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": path}} if path in kinds else {"type": "path", "path": str(path)},
         "access": access} for path, access in entries]}}


OPEN = profile(("root", "write"), network="host")
READ = profile(("root", "read"))


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def run(client, cmd, narrow, sandbox="workspace-write", cwd=None, **fields):
    return client.call("session/exec", {
        "cmd": cmd, "cwd": uri(cwd or client.cwd), "shell": "/bin/sh", "login": False, "yieldTimeMs": 30000,
        "sandbox": {"profile": sandbox, **({"narrow": narrow} if narrow else {}), **fields}})


def output_of(answer):
    return base64.b64decode(answer["output"])


def test_it_is_held_to_both(place, client):
    (place.ws / "deep").mkdir()
    for narrow, written in ((None, "ab"), (READ, ""), (OPEN, "ab"), ({"type": "disabled"}, "ab"),
                            (profile(("root", "read"), (place.ws / "deep", "write")), "b"),
                            (profile(("root", "read"), ("project_roots", "write"), (place.ws / "deep", "deny")), "a"),
                            (profile(("root", "read"), (place.outside, "write")), "")):
        got = run(client, f"echo a >a; echo b >deep/b; echo c >{place.outside}/c", narrow)
        assert got["exitCode"] != 0
        assert "".join(name for name in ("a", "deep/b") if (place.ws / name).exists()).replace("deep/", "") == written
        assert not (place.outside / "c").exists()
        for name in ("a", "deep/b"):
            (place.ws / name).unlink(missing_ok=True)


def test_what_it_denies_is_not_read_and_names_who_did(place, client):
    (place.outside / "secret").write_text("s3cret")
    got = run(client, f"cat {place.outside}/secret", profile(("root", "read"), (place.outside / "secret", "deny")))
    assert b"s3cret" not in output_of(got) and got["exitCode"] != 0
    answer = client.call("permissions/explain", {
        "cwd": uri(client.cwd), "path": "x", "access": "write",
        "sandbox": {"profile": "workspace-write", "narrow": READ}})["answer"]
    assert (answer["allowed"], answer["verdict"]) == (False, "read")


def test_without_a_sandbox_of_ours_it_gets_theirs(place, client):
    got = run(client, f"echo a >a; echo c >{place.outside}/c", profile(("root", "read"), (place.ws, "write")),
              "danger-full-access")
    assert (place.ws / "a").exists() and not (place.outside / "c").exists() and got["exitCode"] != 0
    run(client, f"echo c >{place.outside}/c", {"type": "disabled"}, "danger-full-access")
    assert (place.outside / "c").exists()
    with pytest.raises(RpcError, match="client's own sandbox"):
        run(client, "true", READ, mode="disabled")


def test_the_private_folders_stay_ours(place, client):
    got = run(client, "echo mine >/tmp/x && cat /tmp/x && rm /tmp/x", READ)
    assert (output_of(got), got["exitCode"]) == (b"mine\n", 0)


def test_a_network_is_not_opened_by_it(client):
    for sandbox, narrow, access in (("workspace-write", OPEN, "restricted"), ("danger-full-access", READ, "restricted"),
                                    ("danger-full-access", profile(("root", "write"), network="enabled"), "enabled")):
        answer = client.call("permissions/explain", {"cwd": uri(client.cwd),
                                                     "sandbox": {"profile": sandbox, "narrow": narrow}})["answer"]
        assert answer["network"]["access"] == access
    hosts = client.call("permissions/explain", {"cwd": uri(client.cwd), "sandbox": {
        "profile": "workspace-write", "allowHosts": ["a.test", "b.test:443"], "narrow": profile(
            ("root", "write"), network="proxied", network_policy={"domains": {"b.test": "allow", "c.test": "allow"}})}})
    assert [rule["pattern"] for rule in hosts["answer"]["network"]["policy"]["rules"]] == ["b.test"]


@pytest.mark.parametrize("wrong", [{}, [], "read-only", {"type": "managed"}, {"type": "no-such"},
                                   profile(("relative/path", "read")), {"profile": "read-only"}])
def test_what_is_no_profile_runs_nothing(place, client, wrong):
    with pytest.raises(RpcError) as error:
        run(client, "touch made", wrong or {"x": 1})
    assert error.value.code in (-32602, -32603) and not (place.ws / "made").exists()


def test_roots_stand_in_for_the_directory(place, client):
    for name in ("one", "two"):
        (place.ws / name).mkdir()
    got = run(client, "echo a >../one/a; echo b >../two/b; echo c >../c", None, cwd=place.ws / "one",
              roots=[uri(place.ws / "one"), uri(place.ws / "two")])
    assert got["exitCode"] != 0
    assert (place.ws / "one/a").exists() and (place.ws / "two/b").exists() and not (place.ws / "c").exists()
    got = run(client, "echo a >a", None, roots=[uri(place.ws / "one")])
    assert got["exitCode"] != 0 and not (place.ws / "a").exists()


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_root_that_became_a_symlink_opens_nothing(place, client, name):
    """By a command that runs on with a wider workspace, say."""
    for folder in ("one", "two"):
        (place.ws / folder).mkdir()
    roots = [uri(place.ws / "one"), uri(place.ws / "two")]
    assert run(client, "echo a >one/a", None, roots=roots)["exitCode"] == 0
    run(client, f"rm -r {name}; ln -s {place.outside} {name}", None)
    with pytest.raises(RpcError, match="leads through a symlink"):
        run(client, f"echo a >{name}/made", None, roots=roots)
    assert not (place.outside / "made").exists()


def test_what_a_codex_sends_runs_a_shell(place, client):
    narrow = profile(("root", "read"), (place.ws, "write"), ("slash_tmp", "write"), ("tmpdir", "write"),
                     (place.ws / ".git", "read"), (place.ws / ".codex", "read"), (place.ws / ".agents", "read"))
    narrow["file_system"]["entries"][-1]["missing_path_behavior"] = "skip"
    got = run(client, "echo a >a && mkdir -p b/c && ls && cat a", json.loads(json.dumps(narrow)))
    assert (output_of(got), got["exitCode"]) == (b"a\nb\na\n", 0)
    assert run(client, "mkdir .git", narrow)["exitCode"] != 0
