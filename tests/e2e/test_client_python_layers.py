"""clients/python with change layers, and without asyncio."""
import pytest

from harness import let_age
from test_client_python import run
from test_client_python_own import own  # noqa: F401, a fixture

import cordon
from cordon import sync


async def layers_of(client, own):
    """Those over the workspace: others of the same user may have some in /var/tmp."""
    return [one for one in await client.layers.list() if any(root["path"] == str(own.ws) for root in one["roots"])]


@run
async def test_a_layer(own):
    """What commands, sessions, patches and file calls write is in it; taken in parts, taken back, thrown away."""
    (own.ws / "old").write_text("one\n")
    let_age(own.ws)
    async with cordon.spawn() as client, client.layers.open("agent") as layer:
        assert layer.roots == [str(own.ws)] and layer.name == "agent"
        (await client.run("echo two >>old; echo a >a; mkdir d; printf 'x\\0' >d/b", layer=layer)).check()
        answer = await client.sessions.exec("echo '#!/bin/sh' >tool; chmod +x tool; cat old", login=False, layer=layer)
        assert answer.output == b"one\ntwo\n" and answer.changes["stepId"] == 2 and answer.changes["added"] == 1
        assert (await client.patch("*** Begin Patch\n*** Add File: p\n+x\n*** End Patch\n", layer="agent")).applied
        inside = client.files.inside(layer=layer)
        await inside.write("f", "by a call\n")
        assert await inside.read("a") == b"a\n" and [path.name for path in own.ws.iterdir()] == ["old"]
        with pytest.raises(cordon.NotFound):
            await client.files.read("a")

        changes = await layer.changes()
        names = {one.path[len(str(own.ws)) + 1:]: one for one in changes}
        assert {name: one.kind for name, one in names.items() if name != "d"} == {
            "a": "A", "d/b": "A", "f": "A", "old": "M", "p": "A", "tool": "A"}
        assert changes.counts["marked"] == 1 and names["tool"].marks and not names["a"].marks
        assert [one.path for one in await layer.changes(["d", "old"], step=1)][-1] == f"{own.ws}/old"
        diff = await layer.diff(names["old"])
        assert "+two\n" in diff.unified and diff.change == names["old"]
        assert (await layer.diff("d/b")).unified is None
        assert await layer.read("old") == b"one\ntwo\n" and await layer.read(names["old"], "real") == b"one\n"

        await client.run("echo more >>a", layer=layer)
        took = await layer.accept([names["a"], names["f"], "old"])
        assert sorted(took.done) == [f"{own.ws}/f", f"{own.ws}/old"]
        assert [(left.path, left.reason) for left in took.left] == [(f"{own.ws}/a", "changed")]
        assert (own.ws / "old").read_text() == "one\ntwo\n" and not (own.ws / "a").exists()
        rest = await layer.accept(all=True)
        assert [left.reason for left in rest.left] == ["marked"] and (own.ws / "d/b").exists()
        assert (await layer.undo(took.accept_id)).done and (own.ws / "old").read_text() == "one\n"
        assert (await layer.drop(all=True)).left == [] and len(await layer.changes()) == 0
        with pytest.raises(ValueError, match="all=True"):
            await layer.drop()
        assert [one["name"] for one in await layers_of(client, own)] == ["agent"]
        assert len((await layer.info())["accepts"]) == 2
    async with cordon.spawn() as client:
        await (await client.layers.open("agent")).close(keep=False)
        assert await layers_of(client, own) == []


def test_a_layer_without_asyncio(own):
    with sync.spawn() as client, client.layers.open() as layer:
        assert client.run("echo x >f; cat f", layer=layer).text == "x\n"
        (change,) = layer.changes()
        assert not (own.ws / "f").exists() and layer.accept(change).done == [f"{own.ws}/f"]
    assert (own.ws / "f").read_text() == "x\n"
