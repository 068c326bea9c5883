"""What an unmodified Codex and its own exec-server said to each other in whole runs (recorded by
scripts/try-codex, tests/cases/codex-run) is said again with `cordon serve`: see
test_wire_samples.py for what counts as the same."""
import base64
import json
import subprocess

import pytest
from harness import TOP
from served import Server
from test_wire_samples import Replay

RUNS = TOP / "tests/cases/codex-run"
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
                         "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def make_workspace(top):
    """What scripts/try-codex puts there."""
    (top / "sub").mkdir()
    (top / "old.txt").write_text("old\n")
    (top / "pixel.png").write_bytes(PIXEL)
    (top / "AGENTS.md").write_text("Be brief.\n")
    (top / ".agents/skills/greet").mkdir(parents=True)
    (top / ".agents/skills/greet/SKILL.md").write_text(
        "---\nname: greet\ndescription: Greets.\n---\nSay hi.\n")
    subprocess.run(["git", "init", "-q", top], check=True)


def without_repeats(lines):
    """Codex ends what is left twice, and what the second call finds is a race."""
    ended, dropped = set(), set()
    for line in lines:
        message = line.get("msg", {})
        if message.get("method") == "process/terminate":
            process = message["params"]["processId"]
            if process in ended:
                dropped.add(message["id"])
            ended.add(process)
        if message.get("id") not in dropped:
            yield line


@pytest.mark.parametrize("name", sorted(path.stem for path in RUNS.glob("*.jsonl")))
def test_run(place, name):
    make_workspace(place.ws)
    lines = [json.loads(line) for line in (RUNS / f"{name}.jsonl").read_text().splitlines()]
    with Server(place) as server:
        Replay(name, place, server.connect).run(list(without_repeats(lines)))
