"""What Codex's own exec-server answered to capabilities/discoverV2, capabilityRoots/discoverV1 and
fs/walk for many layouts of files (recorded from 0.169.0, tests/cases/discovery) is what `cordon
serve` answers. A line of a recording:

    {"name", "files": {path below the home folder: what}, "env", "calls", "answers"}

What is a text, or one of {"text", "count"}, {"link"}, {"base64"}, {"fifo"}, {"folder"}; "{n}" in a
path is the number of the copy. "$HOME" stands for the home folder everywhere."""
import base64
import json
import os
import shutil

import pytest
from harness import TOP
from served import Server, uri
from ws_client import RpcError

CASES = TOP / "tests/cases/discovery"
SKILL = "---\nname: deploy\ndescription: Deploy it.\n---\n"

# Behind the original's sentence, we say what is wrong: only the sentence is compared.
SENTENCES = ("some capability ", "capability discovery ")


def make(path, what):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, str):
        path.write_text(what)
    elif "text" in what:
        path.write_text(what["text"])
    elif "base64" in what:
        path.write_bytes(base64.b64decode(what["base64"]))
    elif "link" in what:
        path.symlink_to(what["link"])
    elif "fifo" in what:
        os.mkfifo(path)
    else:
        path.mkdir()


def fill(home, files):
    """The home folder, with these files and nothing else."""
    for child in home.iterdir():
        shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    (home / ".codex").mkdir()
    for name, what in files.items():
        what = json.loads(json.dumps(what).replace("$HOME", str(home)))
        for number in range(what.get("count", 1) if isinstance(what, dict) else 1):
            make(home / name.replace("{n}", f"{number:04}"), what)


def plain(answer, is_silent=False):
    """What has to be the same: errors by their code, no skills of this very machine."""
    if "error" in answer:
        return answer["error"]["code"]
    result = answer["result"]
    if "skills" not in result:
        return result
    warnings = [text for text in result["warnings"] if text.startswith(SENTENCES)]
    skills = [skill for skill in result["skills"]
              if skill["discoveryRoot"]["id"] != "system-skills"]
    return {**result, "skills": skills, "warnings": [] if is_silent else warnings}


def ask(client, call, home):
    call = json.loads(json.dumps(call).replace("$HOME", str(home)))
    answer = client.answer(client.request(call["method"], call["params"]))
    answer.pop("id")
    return json.loads(json.dumps(answer).replace(str(home), "$HOME"))


def check(client, case, home):
    fill(home, case["files"])
    for call, wanted in zip(case["calls"], case["answers"], strict=True):
        got = ask(client, call, home)
        # a file agents/openai.yaml that makes no sense is passed over in silence there, not here
        is_silent = any(name.endswith("openai.yaml") for name in case["files"])
        assert plain(got, is_silent) == plain(wanted, is_silent), case["name"]


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.jsonl")))
def test_layouts(place, name):
    lines = (CASES / f"{name}.jsonl").open()  # not splitlines(): U+2028 is no end of a line here
    with lines, Server(place) as server:
        client = server.client()
        for case in map(json.loads, lines):
            if "env" not in case:
                check(client, case, place.home)
                continue
            fill(place.home, case["files"])
            env = {key: value.replace("$HOME", str(place.home))
                   for key, value in case["env"].items()}
            with Server(place, env=env) as other:
                check(other.client(), case, place.home)


@pytest.fixture
def client(place):
    with Server(place) as server:
        yield server.client()


def discover(client, place, files):
    fill(place.home, files)
    return client.call("capabilities/discoverV2", {"cwd": uri(place.ws)})


def test_it_is_offered(client):
    assert client.call("environment/info", None)["capabilities"]["capabilityDiscoveryV2"]


def test_warnings_say_what_is_wrong(client, place):
    found = discover(client, place, {
        ".codex/skills/a/SKILL.md": "no front matter",
        ".codex/skills/b/SKILL.md": SKILL, ".codex/skills/b/agents/openai.yaml": "policy: [\n",
        ".codex/plugins/cache/m/p/local/.codex-plugin/plugin.json": "{"})
    sentence, *details = found["warnings"]
    assert sentence.startswith("some capability metadata") and len(details) == 3
    folder = uri(place.home / ".codex")
    assert f"the plugin at {folder}/plugins/cache/m/p/local has no manifest that makes sense" in details
    assert (f"invalid skill metadata at {folder}/skills/a/SKILL.md: it does not begin with YAML "
            'between two lines "---"') in details
    assert any(text.startswith(f"ignoring {folder}/skills/b/agents/openai.yaml: line 2, column 1: ")
               for text in details)
    assert len(found["skills"]) == 1


def test_bounds_of_bytes(client, place):
    """Of the answer, of one file, of all files of one folder."""
    long = '{"name": "x", "d": "' + "y" * 1000000 + '"}'
    found = discover(client, place, {
        ".codex/plugins/cache/m/p{n}/local/.codex-plugin/plugin.json": {"count": 5, "text": long},
        ".codex/skills/a/SKILL.md": SKILL})
    assert len(found["plugins"]) == 4 and len(found["skills"]) == 1
    assert found["warnings"] == ["capability discovery size limit reached"]
    most = SKILL + "x" * ((1 << 20) - len(SKILL))
    found = discover(client, place, {".codex/skills/a{n}/SKILL.md": {"count": 17, "text": most},
                                     ".codex/skills/b/SKILL.md": most + "x"})
    assert len(found["skills"]) == 16
    assert sum("limit" in text for text in found["warnings"]) == 2


def test_bounds_of_number(client, place):
    found = discover(client, place, {
        ".codex/skills/s{n}/SKILL.md": {"count": 1500, "text": SKILL},
        ".agents/skills/s{n}/SKILL.md": {"count": 600, "text": SKILL}})
    assert len(found["skills"]) == 2048
    assert found["warnings"] == ["capability discovery size limit reached"]


def test_a_gone_client_leaves_nothing(place):
    """Calls that nobody waits for any more; the server goes on."""
    fill(place.home, {".codex/skills/s{n}/SKILL.md": {"count": 500, "text": SKILL}})
    with Server(place) as server:
        for _ in range(10):
            leaving = server.client()
            leaving.request("capabilities/discoverV2", {"cwd": uri(place.ws)})
            leaving.sock.close()
        found = server.client().call("capabilities/discoverV2", {"cwd": uri(place.ws)})
        assert len(found["skills"]) == 500


def test_a_wrong_sandbox_is_refused(client, place):
    with pytest.raises(RpcError) as error:
        client.call("capabilities/discoverV2", {"cwd": uri(place.ws), "sandbox": {"mode": 5}})
    assert error.value.code == -32602
