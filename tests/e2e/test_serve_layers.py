"""Change layers on the wire: layer/..., and `layer` of what runs commands and touches files."""
import base64
import os
import shutil

import pytest
from harness import BUILD, let_age
from served import Server, exec_result, exec_run, uri, workspace_write
from ws_client import RpcError


@pytest.fixture
def server(place):
    with Server(place) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def older(path, text):
    path.write_text(text)
    let_age(path.parent)


def create(client, **params):
    return client.call("layer/create", {"sandbox": workspace_write(client.cwd), "cwd": uri(client.cwd), **params})["layerId"]


def run(client, layer, text, name="r", **params):
    return exec_result(client, exec_run(client, name, text, **{"sandbox": None, "layer": {"layerId": layer}, **params}))


def changes(client, layer, **params):
    return client.call("layer/changes", {"layerId": layer, **params})


def kinds(client, layer, **params):
    return {os.path.relpath(one["path"], client.cwd): one["kind"] for one in changes(client, layer, **params)["changes"]}


def live(client, layer, name="alive", first=":"):
    """A command that lives in the layer until its input ends."""
    client.start(name, first + "; echo in; cat >/dev/null; echo late > late", layer={"layerId": layer}, pipeStdin=True)
    client.output_until(name, b"in\n")


def end(client, name="alive"):
    client.call("process/closeStdin", {"processId": name})
    client.until(name, "process/exited")


def refused(client, method, code, **params):
    with pytest.raises(RpcError) as error:
        client.call(method, params)
    assert error.value.code == code, error.value
    return error.value


def test_commands_write_to_the_layer_and_not_to_the_files(place, client):
    older(place.ws / "old", "one\n")
    (place.ws / "gone").write_text("gone\n")
    made = client.call("layer/create", {"name": "mine", "sandbox": workspace_write(client.cwd), "cwd": uri(client.cwd)})
    layer = made["layerId"]
    near = "CORDON_TEST_STATE" not in os.environ
    assert made["name"] == "mine" and {"path": str(place.ws), "direct": False, "near": near} in made["roots"]
    result = run(client, layer, "echo two > old; echo new > new; rm gone")
    assert result["exitCode"] == 0, result
    assert result["changes"] == {"layerId": layer, "stepId": 1, "shared": False, "added": 1, "modified": 1, "deleted": 1}
    ended = client.event("layer/stepEnded")["params"]
    assert (ended["layerId"], ended["stepId"]) == (layer, 1)
    assert ended["counts"]["added"] == ended["all"]["added"] == 1
    # the next one sees it, and what nothing is written in is no step, but its end is told
    result = run(client, "mine", "cat old new; ls gone")
    assert result["exitCode"] != 0 and result["changes"]["added"] == 0
    assert client.event("layer/stepEnded")["params"]["stepId"] == 2
    assert (place.ws / "old").read_text() == "one\n" and (place.ws / "gone").exists() and not (place.ws / "new").exists()

    listed = changes(client, layer)
    assert [one["kind"] for one in listed["changes"]] == ["D", "A", "M"], listed
    assert listed["counts"]["deleted"] == 1 and listed["state"] == "quiet"
    first = changes(client, "mine", limit=2)
    rest = changes(client, layer, limit=2, after=first["next"])
    assert first["changes"] + rest["changes"] == listed["changes"] and "next" not in rest
    assert rest["counts"] == listed["counts"]
    assert kinds(client, layer, paths=[str(place.ws / "new"), uri(place.ws / "old")]) == {"new": "A", "old": "M"}

    diff = client.call("layer/diff", {"layerId": layer, "path": uri(place.ws / "old")})
    assert "\n-one\n+two\n" in diff["unified"] and diff["binary"] is False and diff["change"]["kind"] == "M"
    read = {side: client.call("layer/read", {"layerId": layer, "path": str(place.ws / "old"), "side": side, "offset": 1, "limit": 2})
            for side in ("layer", "real")}
    assert {side: base64.b64decode(one["chunk"]) for side, one in read.items()} == {"layer": b"wo", "real": b"ne"}
    assert read["layer"]["eof"] is False and read["layer"]["size"] == 4 and read["real"]["stamp"] == listed["changes"][2]["realStamp"]

    info = client.call("layer/info", {"layerId": "mine"})
    assert [(step["stepId"], step["commands"], step["exitCode"]) for step in info["steps"]] == [(1, 1, 0)]
    mine = [one for one in client.call("layer/list", {"sizes": True})["layers"] if one["layerId"] == layer]
    assert mine[0]["here"] is True and mine[0]["bytes"] > 0 and mine[0]["name"] == "mine"
    run(client, layer, "mkdir gone")  # no page ends between the two changes of one path
    first = changes(client, layer, limit=1)
    assert [one["kind"] for one in first["changes"]] == ["D", "A"]
    assert [one["kind"] for one in changes(client, layer, limit=1, after=first["next"])["changes"]] == ["A"]


def test_what_is_accepted_can_be_taken_back_or_is_dropped(place, client):
    older(place.ws / "old", "one\n")
    layer = create(client)
    run(client, layer, "echo two > old; echo new > new; echo more > more; printf '#!/bin/sh\\n' > tool; chmod +x tool")
    stamps = {one["path"]: one["stamp"] for one in changes(client, layer)["changes"]}
    # of what somebody was shown
    run(client, layer, "echo newer > new")
    done = client.call("layer/accept", {"layerId": layer, "all": True, "expect": stamps})
    assert done["done"] == [str(place.ws / "more"), str(place.ws / "old")]
    assert {os.path.basename(left["path"]): left["reason"] for left in done["left"]} == {"new": "changed", "tool": "marked"}
    assert (place.ws / "old").read_text() == "two\n" and not (place.ws / "new").exists()
    assert kinds(client, layer) == {"new": "A", "tool": "A"}
    undone = client.call("layer/undo", {"layerId": layer})
    assert undone["acceptId"] == done["acceptId"] and sorted(undone["done"]) == sorted(done["done"])
    assert (place.ws / "old").read_text() == "one\n" and not (place.ws / "more").exists()
    assert kinds(client, layer) == {"old": "M", "new": "A", "more": "A", "tool": "A"}
    # a conflict stays
    (place.ws / "old").write_text("outside\n")
    left = client.call("layer/accept", {"layerId": layer, "paths": [str(place.ws / "old"), str(place.ws / "tool")]})
    assert left["done"] == [str(place.ws / "tool")] and left["left"][0]["reason"] == "conflict"
    assert "conflict" in changes(client, layer, paths=[str(place.ws / "old")])["changes"][0]["marks"]
    dry = client.call("layer/accept", {"layerId": layer, "all": True, "force": True, "dryRun": True})
    assert str(place.ws / "old") in dry["done"] and (place.ws / "old").read_text() == "outside\n"
    dropped = client.call("layer/drop", {"layerId": layer, "paths": [uri(place.ws / "old")]})
    assert dropped == {"done": [str(place.ws / "old")], "left": []}
    # a step goes as a whole; and commands go on
    run(client, layer, "echo third > third")
    step = client.call("layer/info", {"layerId": layer})["steps"][-1]["stepId"]
    client.call("layer/drop", {"layerId": layer, "stepId": step})
    assert kinds(client, layer) == {"new": "A", "more": "A"}
    result = run(client, layer, "cat new; test ! -e third; echo fourth > fourth")
    assert result["exitCode"] == 0 and result["changes"]["added"] == 1
    assert client.call("layer/close", {"layerId": layer, "keep": False}) == {"closed": True, "removed": True}
    # that has more than it may lets nothing in, until some of it is gone
    small = create(client, maxBytes=1)
    assert run(client, small, "echo text > new")["outcome"] == "ran"
    full = run(client, small, "true", name="full")
    assert full["outcome"] == "failed" and "1 are allowed: accept or drop some of it" in full["reason"]
    client.call("layer/drop", {"layerId": small, "all": True})
    assert run(client, small, "true", name="empty")["outcome"] == "ran"
    assert refused(client, "layer/changes", -32600, layerId=layer).data["reason"] == "no-layer"
    assert not (place.ws / "new").exists()


def test_while_commands_live_changes_are_copied_and_nothing_is_dropped(place, client):
    older(place.ws / "old", "one\n")
    layer = create(client)
    live(client, layer, first="echo text > held; exec 3>> held")
    # by a mapping it could write unseen, so nobody's yes is for that
    held = changes(client, layer)["changes"][0]
    left = client.call("layer/accept", {"layerId": layer, "paths": [held["path"]], "expect": {held["path"]: held["stamp"]}})["left"]
    assert [one["reason"] for one in left] == ["changed"] and "open for writing" in left[0]["detail"]
    assert client.call("layer/accept", {"layerId": layer, "paths": [held["path"]]})["done"] == [held["path"]]
    joined = run(client, layer, "echo two > old; echo new > new")
    assert joined["changes"]["shared"] is True and joined["changes"]["added"] == 1
    assert refused(client, "process/start", -32600, processId="p", argv=["true"], cwd=uri(place.ws), env={}, tty=False,
                   layer={"layerId": layer, "step": "new"}).data["reason"] == "busy"
    assert changes(client, layer)["state"] == "alive"
    done = client.call("layer/accept", {"layerId": layer, "paths": [str(place.ws / "old")]})
    assert done["left"] == [] and (place.ws / "old").read_text() == "two\n"
    dropped = client.call("layer/drop", {"layerId": layer, "all": True})
    assert dropped["done"] == [] and {left["reason"] for left in dropped["left"]} == {"busy"}
    assert refused(client, "layer/close", -32600, layerId=layer, keep=False).data["reason"] == "busy"
    assert client.call("layer/close", {"layerId": layer})["closed"] is False
    # outside, and seen by who lives
    changes(client, layer)
    (place.ws / "seen").write_text("seen\n")
    assert client.call("layer/refresh", {"layerId": layer}) == {"alive": True}
    assert run(client, layer, "cat seen")["exitCode"] == 0
    end(client)
    ended = client.event("layer/stepEnded")["params"]
    assert ended["stepId"] == 1
    assert kinds(client, layer) == {"late": "A", "new": "A"}
    assert client.call("layer/refresh", {"layerId": layer}) == {"alive": False}
    dropped = client.call("layer/drop", {"layerId": layer, "paths": [str(place.ws / "new")]})
    assert dropped["left"] == [] and kinds(client, layer) == {"late": "A"}


def test_sessions_of_models_patches_and_file_calls_are_in_the_layer(place, client):
    older(place.ws / "old", "one\n")
    layer = create(client)
    where = {"cwd": uri(place.ws), "layer": {"layerId": layer}}
    text = "*** Begin Patch\n*** Update File: old\n@@\n-one\n+two\n*** End Patch\n"
    assert client.call("patch/apply", {"patch": text, **where})["applied"] is True
    assert client.call("fs/writeFile", {"path": uri(place.ws / "file"), "dataBase64": "eA==", "layer": {"layerId": layer}}) == {}
    read = client.call("fs/readFile", {"path": uri(place.ws / "old"), "layer": {"layerId": layer}})
    assert base64.b64decode(read["dataBase64"]) == b"two\n"
    refused(client, "fs/open", -32600, handleId="h", path=uri(place.ws / "old"), mode="replace", layer={"layerId": layer})
    shell = client.call("session/exec", {"cmd": "cat old; read x; echo $x > said", "login": False, "shell": "/bin/sh", "pipeStdin": True,
                                         "yieldTimeMs": 250, **where})
    assert "two" in shell["text"] and shell["sessionId"] and "changes" not in shell
    done = client.call("session/write", {"sessionId": shell["sessionId"], "chars": "hello\n", "until": {"text": "never"}})
    assert done["exitCode"] == 0 and done["changes"]["layerId"] == layer and done["changes"]["added"] >= 1, done
    assert (place.ws / "old").read_text() == "one\n" and sorted(os.listdir(place.ws)) == ["old"]
    assert kinds(client, layer) == {"file": "A", "old": "M", "said": "A"}
    # helpers for files do not keep it from being changed
    client.call("fs/readFile", {"path": uri(place.ws / "old"), "layer": {"layerId": layer}})
    assert client.call("layer/accept", {"layerId": layer, "all": True})["left"] == []
    assert client.call("layer/drop", {"layerId": layer, "all": True}) == {"done": [], "left": []}
    assert (place.ws / "said").read_text() == "hello\n"


def test_clients_share_layers_and_hear_of_what_others_do(place, server, client):
    older(place.ws / "old", "one\n")
    (place.ws / "dir").mkdir()
    (place.ws / "dir/deep").write_text("one\n")
    layer = create(client)
    run(client, layer, "echo two | tee old > dir/deep")
    with server.client() as other:
        assert kinds(other, layer) == {"old": "M", "dir/deep": "M"}
        live(client, layer)
        run(other, layer, "echo more > more")
        end(client)
        assert {who.event("layer/stepEnded", lambda params: params["stepId"] == 2)["params"]["counts"]["added"]
                for who in (client, other)} == {2}
        (place.ws / "dir/unrelated").write_text("x")
        (place.ws / "dir/deep").write_text("outside\n")
        os.replace(place.ws / "dir/unrelated", place.ws / "old")
        told = set()
        while told != {str(place.ws / "old"), str(place.ws / "dir/deep")}:
            told |= set(other.event("layer/outsideChanged")["params"]["paths"])
        assert changes(other, layer)["counts"]["conflicts"] == 2
        # a folder that goes and comes again, as of a git checkout
        shutil.rmtree(place.ws / "dir")
        other.event("layer/outsideChanged")
        for gone in ("gone", "moved"):
            (place.ws / "dir").mkdir()
            run(other, layer, "echo more > more")
            changes(other, layer)
            (place.ws / "dir/deep").write_text("again\n")
            assert other.event("layer/outsideChanged")["params"]["paths"] == [str(place.ws / "dir/deep")]
            os.rename(place.ws / "dir", place.outside / gone)
        os.rename(place.outside / gone, place.ws / "dir")
        # the connection goes in the middle of it: it is done all the same
        number = other.request("layer/accept", {"layerId": layer, "paths": [str(place.ws / "more")]})
        assert number
    while not (place.ws / "more").exists() or "more" in kinds(client, layer):
        pass
    # what waits for its turn keeps the layer open
    looks = [client.request("layer/info", {"layerId": layer}) for _ in range(20)]
    dropped = client.request("layer/drop", {"layerId": layer, "all": True})
    closed = client.request("layer/close", {"layerId": layer})
    assert len(client.answer(dropped)["result"]["done"]) == 3 and client.answer(closed)["result"]["closed"]
    assert all("result" in client.answer(number) for number in looks)
    assert client.call("layer/close", {"layerId": layer}) == {"closed": True, "removed": False}
    assert [one["heldBy"] for one in client.call("layer/list", {"cwd": uri(place.ws)})["layers"]] == [None]


def test_a_killed_server_leaves_layers_whole(place):
    with Server(place) as server, server.client() as client:
        layer = create(client, name="kept")
        run(client, layer, "echo one > one")
        live(client, layer)
        run(client, layer, "echo two > two")
        server.process.kill()
        server.process.wait()
    with Server(place) as server, server.client() as client:
        state = [one["state"] for one in client.call("layer/list", {"cwd": uri(place.ws)})["layers"]]
        assert state in (["orphaned"], ["quiet"])
        assert kinds(client, "kept") == {"one": "A", "two": "A"}
        assert client.call("layer/accept", {"layerId": "kept", "all": True})["left"] == []
        assert (place.ws / "two").read_text() == "two\n" and not (place.ws / "late").exists()
        again = run(client, layer, "echo three > three", sandbox=workspace_write(place.ws))
        assert again["changes"]["added"] == 1 and not (place.ws / "three").exists()
        assert client.call("layer/close", {"layerId": layer, "keep": False})["removed"] is True
    records = [body for event, body in place.records() if event == "layer"]
    assert [(one["action"], one["name"], one["done"]) for one in records][-3:] == [
        ("accept", "kept", 2), ("step", "kept", 0), ("drop", None, 0)], records


LIES = {
    "no JSON": "printf 'nonsense' >&0",
    "no object": """printf '{"result": 7}' >&0""",
    "no message": """printf '{"error": {"code": "busy"}}' >&0""",
    "nothing": "exit 0",
    "killed": "kill -9 $$",
    "too much": "head -c 70000000 /dev/zero >&0",
}


def test_a_helper_that_dies_or_lies_is_a_failure_of_its_call(place):
    folder = place.outside / "programs"
    folder.mkdir()
    for program in ("cli/cordon", "cli/cordon-server", "sandbox/launcher/cordon-linux-sandbox"):
        shutil.copy2(BUILD / "src" / program, folder)
    helper = folder / "cordon-layer"
    helper.write_text("#!/bin/sh\nexit 3\n")
    helper.chmod(0o755)
    with Server(place, program=folder / "cordon") as server, server.client() as client:
        for name, lie in LIES.items():
            helper.write_text(f"#!/bin/sh\n{'' if name == 'killed' else 'cat >/dev/null'}\n{lie}\n")
            for method, params in (("layer/list", {}), ("layer/accept", {"layerId": "x", "all": True})):
                refused(client, method, -32600 if name == "too much" else -32603, **params)
        # one who does not wait for the answer
        helper.write_text("#!/bin/sh\nexec sleep 100\n")
        with server.client() as other:
            other.request("layer/list")
        helper.write_text("""#!/bin/sh\ncat >/dev/null; printf '{"result": {"layers": []}}' >&0""")
        assert client.call("layer/list", {}) == {"layers": []}


WRONG = [
    ("layer/changes", {"layerId": "nothing-of-this-name"}, -32600, "no layer"),
    ("layer/changes", {"layerId": 7}, -32602, "expected a string"),
    ("layer/changes", {"paths": ["relative"]}, -32602, "$.paths[0]: should be an absolute path or a file URI"),
    ("layer/changes", {"paths": ["/a", "file://elsewhere/b"]}, -32602, "$.paths[1]: "),
    ("layer/changes", {"after": "somewhere"}, -32602, "$.after: should be"),
    ("layer/changes", {"limit": 0}, -32602, "limit"),
    ("layer/diff", {"path": "/nowhere/at/all"}, -32004, "does not change /nowhere/at/all"),
    ("layer/read", {"path": "/x", "side": "base"}, -32602, "`base`"),
    ("layer/accept", {}, -32602, "just one of `paths` and `all`"),
    ("layer/accept", {"all": True, "paths": ["/x"]}, -32602, "just one of `paths` and `all`"),
    ("layer/accept", {"all": True, "expect": {"/x": "1-2"}}, -32602, "$.expect"),
    ("layer/accept", {"all": True, "expect": {"x": "1-2-3-4-81a4"}}, -32602, "$.expect"),
    ("layer/accept", {"all": True, "text": "x"}, -32602, "just one path"),
    ("layer/drop", {"all": True, "stepId": 1}, -32602, "just one of"),
    ("layer/drop", {"stepId": 0}, -32602, "stepId"),
    ("layer/undo", {"acceptId": "1"}, -32602, "expected an integer"),
]


def test_what_is_malformed_is_named_by_its_place(place, client):
    layer = create(client)
    run(client, layer, "echo one > one")
    for method, params, code, text in WRONG:
        error = refused(client, method, code, **{"layerId": layer, **params})
        assert text in str(error), (method, params, error)
    for sandbox in (None, "none"):
        error = refused(client, "process/start", -32600 if sandbox is None else -32602, processId="p", argv=["true"], cwd=uri(place.ws),
                        env={}, tty=False, sandbox="none", layer={"layerId": "missing" if sandbox is None else layer})
        assert "layer" in str(error)
    refused(client, "layer/create", -32602, sandbox="none", cwd=uri(place.ws))
    refused(client, "layer/create", -32602, name="no/name", sandbox=workspace_write(place.ws), cwd=uri(place.ws))
    refused(client, "layer/create", -32602, direct=["relative"], sandbox=workspace_write(place.ws), cwd=uri(place.ws))
    create(client, name="twice")
    assert refused(client, "layer/create", -32600, name="twice", sandbox=workspace_write(place.ws), cwd=uri(place.ws))
    assert os.listdir(place.ws) == []
