"""What rules mean for commands in a sandbox, which needs namespaces; the rest is in test_rules.py."""
import json

import pytest

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
