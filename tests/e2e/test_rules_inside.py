"""What rules mean for commands in a sandbox, which needs namespaces; the rest is in test_rules.py."""
import json

import pytest

from served import Server
from test_rules import check, rules


@pytest.mark.parametrize("words", [["bash"], ["bash", "-c"], ["git"], ["rm"], ["python3", "-c"], ["env"], ["npm", "run"]])
def test_a_rule_for_anything_lets_nothing_out(place, words):
    pattern = ", ".join(f'"{word}"' for word in words)
    file = rules(place, f'prefix_rule([{pattern}])\nprefix_rule([{pattern}, "push"])\n')
    argv = [*words, "$HOME"] if words[0] == "bash" else [*words, "x"]
    explained = json.loads(place.cordon("explain", "--json", "-a", "untrusted", "--", *argv).stdout)
    assert "would let nearly anything out" in explained["command"]["requirement"]["reason"]
    assert explained["command"]["requirement"]["place"] == "sandbox"
    told = place.cordon("rules", "check", "--", *argv).stdout
    assert f"{file}:1 would let nearly anything out of the sandbox, so it allows nothing" in told
    assert check(place, "--", *argv)["commands"][0]["tooWide"]["line"] == 1
    if words not in (["env"], ["bash", "-c"]):  # what they run is judged by itself
        assert check(place, "--", *words, "push")["sandbox"] == "bypass"  # this one says what for
    refused = place.cordon("rules", "add", "--sandbox", "bypass", "--", *words)
    assert refused.returncode == 125 and "allows nothing" in refused.stderr


def test_rules_of_a_trusted_project_below_are_no_commands(place):
    """Whatever the command's workspace is: the next command in the project obeys them."""
    app = place.ws / "mono/app"
    app.mkdir(parents=True)
    place.config(f'[projects."{app}"]\ntrust_level = "trusted"\n')
    for name in (".cordon", ".codex"):
        ran = place.shell(f"mkdir -p mono/app/{name}/rules && echo 'prefix_rule([\"touch\"])' > mono/app/{name}/rules/x.rules")
        assert ran.returncode and not (app / name / "rules").exists()
        (app / name / "rules").mkdir(parents=True)
        ran = place.shell(f"echo x > mono/app/{name}/rules/x.rules; mv mono/app/{name} mono/app/x; mv mono/app m; mv mono n")
        assert (app / name / "rules").exists() and not list((app / name / "rules").iterdir())
    assert place.shell("echo x > mono/app/other").returncode == 0


@pytest.mark.parametrize("face", ["server", "connect", "elsewhere"])
def test_trusted_projects_are_kept_in_every_sandbox(place, face):
    """Rules, configuration and helpers of a project, there or not, whoever makes the sandbox and whatever its workspace is."""
    app = place.base / "apps/one"
    for folder in (".cordon/rules", ".codex/rules"):
        (app / folder).mkdir(parents=True)
    place.config(f'[projects."{app}"]\ntrust_level = "trusted"\n[projects."{place.base}/apps/two"]\ntrust_level = "trusted"\n')
    (place.base / "apps/two").mkdir()
    script = (f"cd {place.base}/apps; for f in one/.cordon/rules/x.rules one/.codex/rules/x one/.codex/config.toml one/.cordon/hook "
              "two/.cordon two/.codex; do mkdir $f && echo $f; done; mkdir one/other")
    command = ["sh", "-c", script]
    if face == "elsewhere":
        assert place.run("--writable", f"{place.base}/apps", "--", *command).stdout == ""
    else:
        with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
            if face == "connect":
                ran = place.cordon("--connect", server.url, "run", "-C", f"{place.base}/apps", "--", *command)
                assert ran.stdout == "", ran.stderr
            else:
                with server.client() as client:
                    client.start("p", script, {"profile": None, "writable": [f"{place.base}/apps"]})
                    client.until("p", "process/closed")
    assert (app / "other").is_dir() and not (app / ".codex/config.toml").exists()
    assert not any((app / ".codex/rules").iterdir()) and not any((place.base / "apps/two").iterdir())
