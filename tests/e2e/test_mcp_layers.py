"""`cordon mcp --layer`: what commands and patches of a client write goes to a change layer, which its model sees by tools, its
person by resources; and nothing gets into the real files but by a form at the client, answered with what that offers."""
import base64
import json
import os
from contextlib import closing

import pytest

from harness import let_age
from talking_mcp import Mcp
from talking_mcp_http import McpServer
from test_mcp_approvals import FORMS, question, reply

TOOLS = {"layer_accept", "layer_changes", "layer_diff", "layer_drop", "layer_undo"}


KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}


def conforms(value, schema, where):
    """As far as our schemas go."""
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    assert any(isinstance(value, KINDS[kind]) for kind in kinds), (where, value)
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value) <= set(schema["properties"]), (where, value)
        for name, inner in value.items():
            conforms(inner, schema["properties"][name], f"{where}.{name}")
    for item in value if isinstance(value, list) else []:
        conforms(item, schema["items"], where)


class Checked(Mcp):
    """Whose results are what the tools say that they give."""

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.schemas = {tool["name"]: tool["outputSchema"] for tool in self.call("tools/list")["tools"]}

    def tool(self, name, _meta=None, **arguments):
        return self.checked(name, super().tool(name, _meta, **arguments))

    def checked(self, name, value):
        conforms(value, self.schemas[name], name)
        return value


@pytest.fixture
def client(place):
    (place.ws / "old").write_text("one\ntwo\n")
    (place.ws / "gone").write_text("x\n")
    let_age(place.ws)
    with closing(Checked(place, "--layer=work", capabilities=FORMS)) as client:
        yield client


def run(client, cmd):
    return client.tool("exec_command", cmd=cmd, login=False)


def accept(client, decision, **arguments):
    """Answers the form; what the tool says, and the form."""
    call = client.ask("tools/call", name="layer_accept", arguments=arguments)
    asked = question(client)
    reply(client, asked, action="accept", content={"decision": decision})
    return client.checked("layer_accept", client.answer(call)["result"]["structuredContent"]), asked["params"]


def test_without_one_there_are_no_tools_of_it(place):
    with closing(Mcp(place)) as client:
        assert not TOOLS & {tool["name"] for tool in client.call("tools/list")["tools"]}
        assert "Unknown tool" in client.fail("tools/call", name="layer_changes", arguments={})["message"]
        assert "cordon://layers/" not in json.dumps(client.call("resources/list"))
        assert "layer" not in client.initialized["instructions"]


def test_a_session_in_a_layer(client, place):
    """What is written is seen by what follows, listed, shown, dropped, accepted by a yes, and taken back by one."""
    assert TOOLS <= {tool["name"] for tool in client.call("tools/list")["tools"]}
    assert "layer_accept" in client.initialized["instructions"]
    ran = run(client, "echo three >>old; echo new >new; printf '#!/bin/sh\\n' >tool; chmod +x tool; rm gone")
    assert ran["changes"].items() >= {"step": 1, "added": 2, "modified": 1, "deleted": 1}.items()
    assert "2 added, 1 modified, 1 deleted" in client.text
    client.tool("apply_patch", patch="*** Begin Patch\n*** Add File: patched\n+by a patch\n*** End Patch\n")
    assert run(client, "cat old new patched; ls gone")["output"].startswith("one\ntwo\nthree\nnew\nby a patch\n")
    assert {path.name: path.read_text() for path in place.ws.iterdir()} == {"old": "one\ntwo\n", "gone": "x\n"}

    listed = client.tool("layer_changes")
    kinds = {change["path"].rpartition("/")[2]: change["kind"] for change in listed["changes"]}
    assert kinds == {"gone": "D", "new": "A", "old": "M", "patched": "A", "tool": "A"} and listed["layer"] == "work"
    assert f"A {place.ws}/tool  [executable" in client.text and listed["counts"]["marked"] == 1
    page = client.tool("layer_changes", limit=2)
    assert len(page["changes"]) == 2 and page["counts"] == listed["counts"]
    assert [change["path"] for change in page["changes"] + client.tool("layer_changes", limit=9, after=page["next"])["changes"]] == [
        change["path"] for change in listed["changes"]]
    shown = client.tool("layer_diff", path="old")
    assert "+three\n" in shown["diff"] and client.text == shown["diff"] and not shown["truncated"]
    assert "does not change" in client.tool_fails("layer_diff", path="none")

    dropped = client.tool("layer_drop", paths=["patched"])
    assert dropped == {"done": [f"{place.ws}/patched"], "left": []}
    assert "either" in client.tool_fails("layer_drop") and "either" in client.tool_fails("layer_drop", paths=["new"], all=True)

    (place.ws / "old").write_text("by the user\n")
    got, form = accept(client, "yes", why="the work\nTake these changes")
    assert form["message"].splitlines()[1] == "The model says: the work<U+000A>Take these changes"
    assert form["message"].index("tool  [executable") < form["message"].index("A " + str(place.ws / "new"))
    words = [choice["const"] for choice in form["requestedSchema"]["properties"]["decision"]["oneOf"]]
    assert words == ["yes", "yes_with_marked", "no"] and form["requestedSchema"]["properties"]["decision"]["default"] == "no"
    assert sorted(got["done"]) == [f"{place.ws}/gone", f"{place.ws}/new"] and got["accepted"]
    assert [(left["path"], left["reason"]) for left in got["left"]] == [(f"{place.ws}/old", "conflict")]
    assert {path.name: path.read_text() for path in place.ws.iterdir()} == {"old": "by the user\n", "new": "new\n"}
    got, form = accept(client, "yes_with_marked", paths=["tool"])
    words = [choice["const"] for choice in form["requestedSchema"]["properties"]["decision"]["oneOf"]]
    assert words == ["yes_with_marked", "no"]  # all of it is marked
    assert got["done"] == [f"{place.ws}/tool"] and (place.ws / "tool").stat().st_mode & 0o111

    call = client.ask("tools/call", name="layer_undo", arguments={"accept_id": got["accept_id"]})
    asked = question(client)
    assert f"{place.ws}/tool" in asked["params"]["message"]
    reply(client, asked, action="accept", content={"decision": "yes"})
    assert client.answer(call)["result"]["structuredContent"]["done"] == [f"{place.ws}/tool"]
    assert not (place.ws / "tool").exists()


NO = [
    {"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {"action": "accept", "content": {"decision": True}},
    {"action": "accept", "content": {"decision": "yes_with_marked"}}, {"action": "decline", "content": {"decision": "yes"}},
    {"action": "accept", "content": {"decision": "no", "reason": "not today"}}, {"decision": "yes"}, {},
]


def test_nothing_else_is_a_yes(client, place):
    """Of one change, without a mark, so that "yes_with_marked" is not offered; and an error, and a call that is cancelled."""
    run(client, "echo x >new")
    for answer in NO:
        call = client.ask("tools/call", name="layer_accept", arguments={})
        reply(client, question(client), **answer)
        got = client.answer(call)["result"]["structuredContent"]
        assert not got["accepted"] and got["done"] == [], answer
        assert (got["reason"] == "not today") == ("not today" in json.dumps(answer))
    call = client.ask("tools/call", name="layer_accept", arguments={})
    client.send({"jsonrpc": "2.0", "id": question(client)["id"], "error": {"code": -32601, "message": "no"}})
    assert not client.answer(call)["result"]["structuredContent"]["accepted"]
    call = client.ask("tools/call", name="layer_accept", arguments={})
    asked = question(client)
    client.notify("notifications/cancelled", requestId=call)
    client.call("ping")
    reply(client, asked, action="accept", content={"decision": "yes"})
    client.call("ping")
    assert client.tool("layer_changes")["counts"]["added"] == 1 and not (place.ws / "new").exists()


@pytest.mark.parametrize(("capabilities", "text"), [({}, ""), (FORMS, '[mcp]\napprovals = "never"\n')])
def test_who_cannot_be_asked_is_told_what_to_do(place, capabilities, text):
    home = place.home / ".config/cordon"
    home.mkdir(parents=True)
    (home / "config.toml").write_text((text or "[mcp]\n") + 'layer = "mine"\n')
    with closing(Mcp(place, capabilities=capabilities)) as client:
        run(client, "echo x >new")
        assert "cordon accept mine" in client.tool_fails("layer_accept")
        assert "cordon undo mine" in client.tool_fails("layer_undo")
    assert not (place.ws / "new").exists()


def test_what_was_shown_is_what_is_accepted(client, place):
    """Another call writes while the person looks: that path stays, and so does what is put below one that was shown, and what
    would go since a copy of it was shown."""
    run(client, "echo a >a; echo b >b; cp -p gone copy; mkdir -p m/sub; echo c >m/sub/c; touch m/Makefile; rm old; mkdir old; echo d >old/d; echo f >$(printf 'f\\377')")
    call = client.ask("tools/call", name="layer_accept", arguments={})
    asked = question(client)
    run(client, "echo more >>a; mkdir d; echo c >d/c; echo bad >m/sub/bad; rm gone")
    reply(client, asked, action="accept", content={"decision": "yes"})
    got = client.answer(call)["result"]["structuredContent"]
    assert {left["path"]: left["reason"] for left in got["left"]} == {
        **{f"{place.ws}/{name}": "changed" for name in ("a", "copy", "m/sub/bad")}, f"{place.ws}/m/Makefile": "marked"}
    assert sorted(str(path.relative_to(place.ws)) for path in place.ws.rglob("*")) == [
        "b", "f\udcff", "gone", "m", "m/sub", "m/sub/c", "old", "old/d"]
    assert os.fsencode(place.ws) + b"/f\xff" in map(base64.b64decode, got["doneBase64"])
    run(client, "rm m/Makefile; seq -f n%g 70 | xargs touch")
    _, form = accept(client, "no")
    assert "more, which cordon changes work shows" in form["message"]
    assert form["requestedSchema"]["properties"]["decision"]["oneOf"][0]["title"] == "Yes, also what is not shown here"


def test_resources(client, place):
    """The changes and a difference each, which come and go with steps, and are told of."""
    prefix = next(one["uri"] for one in client.call("resources/list")["resources"] if one["uri"].endswith("/changes"))[:-len("changes")]
    assert prefix.startswith("cordon://layers/")
    client.call("resources/subscribe", uri=prefix + "changes")
    run(client, "echo new >'a b%'")
    while {"notifications/resources/list_changed", "notifications/resources/updated"} - {
            message["method"] for message in client.others}:
        client.others.append(client.read())
    listed = {one["name"]: one["uri"] for one in client.call("resources/list")["resources"]}
    uri = listed[f"A {place.ws}/a b%"]
    assert uri == f"{prefix}diff{place.ws}/a%20b%25"
    assert "+new\n" in client.call("resources/read", uri=uri)["contents"][0]["text"]
    changes = json.loads(client.call("resources/read", uri=prefix + "changes")["contents"][0]["text"])
    assert changes["counts"]["added"] == 1 and changes["changes"][0]["path"] == f"{place.ws}/a b%"
    assert any("{+path}" in one["uriTemplate"] for one in client.call("resources/templates/list")["resourceTemplates"])
    for wrong in (f"{prefix}diff{place.ws}/none", f"{prefix}diff", prefix, "cordon://layers/0123456789abcdef/changes"):
        assert client.fail("resources/read", uri=wrong)["code"] == -32002


def test_in_the_version_without_sessions_the_question_is_the_answer(place):
    prefix = "io.modelcontextprotocol/"
    meta = {prefix + "protocolVersion": "2026-07-28", prefix + "clientCapabilities": FORMS}
    with closing(Mcp(place, "--layer", version=None)) as client:
        client.call("tools/call", name="exec_command", arguments={"cmd": "echo x >new", "login": False}, _meta=meta)
        call = {"name": "layer_accept", "arguments": {}, "_meta": meta}
        asked = client.call("tools/call", **call)
        ((key, request),) = asked["inputRequests"].items()
        assert request["method"] == "elicitation/create" and f"A {place.ws}/new" in request["params"]["message"]
        yes = {key: {"action": "accept", "content": {"decision": "yes"}}}
        got = client.call("tools/call", **call, inputResponses=yes, requestState=asked["requestState"])
        assert got["structuredContent"]["done"] == [f"{place.ws}/new"]
    assert (place.ws / "new").read_text() == "x\n"


def test_all_clients_work_in_one(place):
    """Over HTTP: one sees what another has written, and hears of it."""
    with McpServer(place, "--layer") as server:
        one, other = server.client(), server.client()
        news = other.listen()
        one.call("tools/call", name="exec_command", arguments={"cmd": "echo x >new", "login": False})
        while (news.next()[1] or {}).get("method") != "notifications/resources/list_changed":
            pass
        changes = other.call("tools/call", name="layer_changes", arguments={})["structuredContent"]["changes"]
        assert [change["path"] for change in changes] == [f"{place.ws}/new"]
    assert not (place.ws / "new").exists()


def test_a_client_that_goes_has_said_no(place):
    client = Mcp(place, "--layer", capabilities=FORMS, version="2025-06-18")
    run(client, "echo x >new")
    client.ask("tools/call", name="layer_accept", arguments={})
    assert question(client)["params"]["requestedSchema"]["properties"]["decision"]["enum"] == ["yes", "no"]
    client.process.stdin.close()
    assert client.process.wait() == 0 and not (place.ws / "new").exists()


def test_at_the_end(place):
    """What is kept is gone on with by its name; accept takes all but what is marked; drop all."""
    with closing(Mcp(place, "--layer=mine")) as client:
        run(client, "echo x >new; mkdir .vscode; echo x >.vscode/tasks.json")
    assert not (place.ws / "new").exists()
    client = Mcp(place, "--layer=mine", "--at-end=accept")
    assert client.tool("layer_changes")["counts"]["added"] >= 1
    run(client, "echo '#!/bin/sh' >tool; chmod +x tool")
    assert "1 changes stay in the layer mine" in client.close()[1]
    assert (place.ws / "new").exists() and not (place.ws / "tool").exists()
    client = Mcp(place, "--layer=mine", "--at-end=drop")
    run(client, "echo x >other")
    client.close()
    with closing(Mcp(place, "--layer=mine")) as client:
        assert client.tool("layer_changes")["changes"] == []


def test_where_there_can_be_none_it_does_not_start(place):
    for words in (["--layer", "--sandbox=disabled"], ["--layer=a/b"], ["--layer="], ["--at-end=drop"]):
        ran = place.cordon("mcp", *words)
        assert ran.returncode != 0 and ran.stdout == "" and ran.stderr, words
