"""libcordon: a host with a change layer (hosts/layers.c)."""
import json

from harness import let_age
from host import ENV, build


def test_a_host_with_a_layer(place):
    (place.ws / "old").write_text("old\n")
    let_age(place.ws)
    ran = place.cordon("host", program=build(place, "layers"), env=ENV)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    first, seen, changes, step, diffs, accepted, _, undone, _, dropped, layers, old, _ = map(json.loads, ran.stdout.splitlines())
    assert first["exit"] == 0 and seen["output"] == "new"
    assert [(one["path"], one["kind"]) for one in changes["changes"]] == [
        (f"{place.ws}/new", "A"), (f"{place.ws}/old", "M"), (f"{place.ws}/session", "A")]
    assert changes["counts"]["added"] == 2 and [one["path"] for one in step["changes"]] == [f"{place.ws}/session"]
    assert "+more\n" in diffs["diffs"][1]["unified"] and diffs["diffs"][1]["change"]["kind"] == "M"
    assert len(accepted["done"]) == 3 and sorted(undone["done"]) == sorted(accepted["done"])
    assert [(one["path"], one["reason"]) for one in accepted["left"]] == [("/somewhere", "changed")]
    assert sorted(dropped["done"]) == [f"{place.ws}/new", f"{place.ws}/old"]
    # others of the same user may have some in /var/tmp
    assert [layer["name"] for layer in layers["layers"] if any(root["path"] == str(place.ws) for root in layer["roots"])] == ["host"]
    assert old["output"] == "old" and [path.name for path in place.ws.iterdir()] == ["old"]
