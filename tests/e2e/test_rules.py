"""`cordon rules`: check, add and test against the built program. What rules mean is tested as data:
tests/cases/rules and tests/cases/requirement."""
import json
import re

import pytest

from harness import TOP

pytestmark = pytest.mark.no_userns


def rules(place, text, name="home/.config/cordon/rules/default.rules"):
    return place.config(text, name)


def check(place, *words):
    return place.json("rules", "check", "--json", *words)


# --- check


def test_check_says_decision_file_and_line(place):
    file = rules(place, '# mine\nprefix_rule(\n  ["git", ["push", "pull"]],\n'
                        '  decision="forbidden", justification="use the mirror")\n')
    found = check(place, "--", "git", "push", "origin")
    assert found["decision"] == "forbidden" and "sandbox" not in found
    assert found["matchedRules"] == [{"prefixRuleMatch": {
        "matchedPrefix": ["git", "push"], "decision": "forbidden",
        "justification": "use the mirror", "layer": "user", "file": str(file), "line": 2,
        "column": 1}}]
    ran = place.cordon("rules", "check", "git", "push")
    assert ran.returncode == 0
    assert ran.stdout == ("forbidden\n  git push\n    forbidden by `git push|pull`, "
                          f"{file}:2 (user): use the mirror\n")


def test_no_match_has_no_decision(place):
    found = check(place, "--", "ls", "-l")
    assert found["matchedRules"] == [] and "decision" not in found and found["problems"] == []
    assert "no rule decides" in place.cordon("rules", "check", "ls").stdout


def test_check_says_what_allow_grants(place):
    rules(place, 'prefix_rule(["make"])\nprefix_rule(["ninja"], sandbox="keep")\n')
    assert check(place, "--", "make")["sandbox"] == "bypass"
    assert check(place, "--", "ninja")["sandbox"] == "keep"
    assert place.cordon("rules", "check", "make").stdout.startswith("allow, without a sandbox")
    assert place.cordon("rules", "check", "ninja").stdout.startswith("allow, in its sandbox")


@pytest.mark.parametrize("script, decision, sandbox", [
    ("make && make install", "allow", "bypass"),
    ("make; ninja", "allow", "keep"),
    ("make; other", None, None),
    ("other; git push", "forbidden", None),
    ("make > log", None, None),
    ("git push > log", "forbidden", None),
    ("env A=1 git push", "forbidden", None),
    ("$X push; git pu\\sh", "forbidden", None),
])
def test_scripts_are_judged_command_by_command(place, script, decision, sandbox):
    rules(place, 'prefix_rule(["make"])\nprefix_rule(["ninja"], sandbox="keep")\n'
                 'prefix_rule(["git", "push"], decision="forbidden")\n')
    found = check(place, "--", "bash", "-lc", script)
    assert (found.get("decision"), found.get("sandbox")) == (decision, sandbox)


def test_a_script_that_cannot_be_read_is_said(place):
    found = check(place, "--", "bash", "-lc", "make > log")
    assert found["opaque"] and found["commands"][0]["argv"] == ["bash", "-lc", "make > log"]
    assert f"can be read ({found['opaque']})" in place.cordon(
        "rules", "check", "bash", "-lc", "make > log").stdout


def test_a_program_by_path_says_what_it_is(place):
    rules(place, 'prefix_rule(["git", "push"], decision="prompt")\n')
    match = check(place, "--", "/opt/git", "push")["matchedRules"][0]["prefixRuleMatch"]
    assert match["matchedPrefix"] == ["git", "push"] and match["resolvedProgram"] == "/opt/git"


def test_given_files_take_the_place_of_the_layers(place):
    rules(place, 'prefix_rule(["a"], decision="forbidden")\n')
    one = place.config('prefix_rule(["b"])\n', "ws/one.rules")
    two = place.config('prefix_rule(["b"], decision="prompt")\n', "ws/two.rules")
    assert "decision" not in check(place, "--rules", one, "--", "a")
    found = check(place, "--rules", one, "--rules", two, "--", "b")
    assert found["decision"] == "prompt"
    assert [match["prefixRuleMatch"]["layer"] for match in found["matchedRules"]] == ["option"] * 2


def test_a_given_file_has_to_be_there_and_right(place):
    bad = place.config('prefix_rule(["b"\n', "ws/bad.rules")
    for file, message in ((bad, f"{bad}:2:1: "), (place.ws / "gone.rules", "No such file")):
        ran = place.cordon("rules", "check", "--rules", file, "--", "b")
        assert ran.returncode == 125 and ran.stdout == "" and message in ran.stderr


def test_a_broken_layer_makes_a_question_and_says_why(place):
    rules(place, 'prefix_rule(["good"])\n', "home/.config/cordon/rules/a.rules")
    bad = rules(place, "prefix_rule([", "home/.config/cordon/rules/b.rules")
    found = check(place, "--", "other")
    assert found["decision"] == "prompt" and found["matchedRules"] == []
    assert found["problems"] == [{"layer": "user", "file": str(bad), "error":
                                  f"{bad}:1:14: the end of the file is not expected here; "
                                  'a value is a "string" or a [list]'}]
    assert check(place, "--", "good")["decision"] == "allow"
    text = place.cordon("rules", "check", "other").stdout
    assert f"broken: {bad}:1:14" in text and "asked about" in text


def test_a_project_rules_only_when_it_is_trusted(place):
    rules(place, 'prefix_rule(["p"])\n', "ws/.cordon/rules/x.rules")
    rules(place, 'prefix_rule(["q"])\n', "ws/.codex/rules/x.rules")
    (place.ws / "sub").mkdir()
    assert "decision" not in check(place, "--", "p")
    place.config(f'[projects."{place.ws}"]\ntrust_level = "trusted"\n')
    for word in ("p", "q"):
        found = place.json("rules", "check", "--json", word, cwd=place.ws / "sub")
        assert found["decision"] == "allow"
        assert found["matchedRules"][0]["prefixRuleMatch"]["layer"] == "project"
    place.config(f'[projects."{place.base}"]\ntrust_level = "trusted"\n'
                 f'[projects."{place.ws}"]\ntrust_level = "untrusted"\n')
    assert "decision" not in check(place, "--", "p")


def test_hosts(place):
    file = rules(place, 'network_rule("Example.org", "https", "deny", justification="no")\n')
    found = check(place, "--host", "EXAMPLE.org:443")
    assert found["decision"] == "forbidden"
    assert found["matchedRules"] == [{"networkRuleMatch": {
        "host": "example.org", "protocol": "https", "decision": "forbidden", "justification": "no",
        "layer": "user", "file": str(file), "line": 1, "column": 1}}]
    assert "decision" not in check(place, "--host", "example.org", "--protocol", "http")
    assert place.cordon("rules", "check", "--host", "example.org").stdout == \
        f"forbidden by {file}:1 (user): no\n"
    ran = place.cordon("rules", "check", "--host", "*.example.org")
    assert ran.returncode == 125 and "wildcard" in ran.stderr


# --- add


def test_add_and_check(place):
    file = place.home / ".config/cordon/rules/default.rules"
    place.config("")
    ran = place.cordon("rules", "add", "--", "npm", "test")
    line = 'prefix_rule(pattern=["npm", "test"], decision="allow", sandbox="keep")'
    assert ran.returncode == 0 and ran.stdout == f"added to {file}\n  {line}\n"
    assert place.cordon("rules", "add", "npm", "test").stdout.startswith("already in ")
    assert file.read_text() == line + "\n"
    assert check(place, "npm", "test", "--all")["sandbox"] == "keep"
    added = place.json("rules", "add", "--json", "--sandbox", "bypass", "--", "make")
    assert added == {"file": str(file), "added": True,
                     "rule": 'prefix_rule(pattern=["make"], decision="allow")'}
    place.cordon("rules", "add", "--decision", "forbidden", "--justification", "it's \"no\"", "--",
                 "git", "push")
    found = check(place, "git", "push")["matchedRules"][0]["prefixRuleMatch"]
    assert found["justification"] == "it's \"no\"" and found["line"] == 3
    place.cordon("rules", "add", "--host", "Example.org.", "--decision", "prompt")
    assert check(place, "--host", "example.org")["decision"] == "prompt"
    assert place.cordon("rules", "test").stdout == "1 file, 4 rules, 0 examples: 0 wrong\n"


def test_add_to_a_file_of_ones_own(place):
    place.cordon("rules", "add", "--rules", "my.rules", "--", "a")
    assert (place.ws / "my.rules").read_text().startswith('prefix_rule(pattern=["a"]')


def test_add_warns_of_rules_that_allow_everything(place):
    place.config("")
    ran = place.cordon("rules", "add", "--", "bash", "-lc")
    assert ran.returncode == 0 and "allows whatever bash can be made to run" in ran.stderr
    ran = place.cordon("rules", "add", "--decision", "prompt", "--", "sudo")
    assert ran.stderr == "" and "approval_policy in config.toml; else it does not count" in ran.stdout
    assert "approval_policy" not in place.cordon("rules", "add", "--", "make").stdout


def test_add_leaves_a_broken_file_alone(place):
    file = rules(place, "prefix_rule([\n")
    ran = place.cordon("rules", "add", "--", "a")
    assert ran.returncode == 125 and f"{file}:2:1: " in ran.stderr
    assert file.read_text() == "prefix_rule([\n"


def test_a_command_cannot_write_rules(place):
    """The rules that decide about the next command are no command's to write."""
    place.config("")
    (place.home / ".config/cordon/rules").mkdir()
    ran = place.shell(f"echo x > {place.home}/.config/cordon/rules/x.rules", "-p",
                      "workspace-write", "-w", place.home)
    assert ran.returncode != 0
    assert not (place.home / ".config/cordon/rules/x.rules").exists()


# --- test


def test_every_wrong_example_is_shown(place):
    file = rules(place, 'prefix_rule(["a", "b"], match=["a b", "a c"],\n'
                        '  not_match=["a b c", "x"])\n')
    other = rules(place, 'prefix_rule(["a"], match=["a"])\n',
                  "home/.config/cordon/rules/other.rules")
    ran = place.cordon("rules", "test")
    assert ran.returncode == 1
    assert ran.stdout == (
        f"{file}:2:14: the example `a b c` should not match but matches the rule `a b` of line 1; "
        f"change one of them\n{file}:1:39: the example `a c` should match but does not match the "
        "rule `a b` of line 1; change one of them\n2 files, 2 rules, 5 examples: 2 wrong\n")
    found = place.json("rules", "test", "--json", code=1)
    assert found["failures"] == 2
    assert [len(entry["failures"]) for entry in found["files"]] == [2, 0]
    assert found["files"][1] == {"file": str(other), "layer": "user", "rules": 1, "examples": 1,
                                 "failures": []}


def test_broken_files_are_failures(place):
    file = rules(place, "prefix_rule([")
    ran = place.cordon("rules", "test", "--rules", file, "--rules", "gone.rules")
    assert ran.returncode == 1 and f"{file}:1:14: " in ran.stdout
    assert "gone.rules" in ran.stdout and ran.stdout.endswith("0 rules, 0 examples: 2 wrong\n")


# --- wrong calls and documents


@pytest.mark.parametrize("words, message", [
    ([], "cordon rules check -- COMMAND"),
    (["chek"], 'did you mean "check"'),
    (["check"], "ask about a command"),
    (["check", "--host", "a.org", "--", "a"], "ask about a command"),
    (["check", "--decision", "allow", "--", "a"], "--decision means nothing"),
    (["check", "--protocol", "http", "--", "a"], "add --host"),
    (["add"], "say what the rule is about"),
    (["add", "--decision", "deny", "--", "a"], "deny"),
    (["add", "--decision", "prompt", "--sandbox", "keep", "--", "a"], "--sandbox"),
    (["add", "--justification", " ", "--", "a"], "blank"),
    (["add", "--rules", "a", "--rules", "b", "--", "a"], "give --rules once"),
    (["add", "--host", "a/b"], "more than a host"),
    (["test", "a"], "takes no argument"),
    (["test", "--sandbox", "keep"], "--sandbox means nothing"),
])
def test_wrong_calls(place, words, message):
    ran = place.cordon("rules", *words)
    assert ran.returncode == 125 and ran.stdout == ""
    assert ran.stderr.startswith("cordon: ") and message in ran.stderr


def test_help(place):
    for words in (["rules", "--help"], ["rules", "check", "--help"], ["help", "rules"]):
        ran = place.cordon(*words)
        assert ran.returncode == 0 and ran.stdout.startswith("Usage: cordon rules check|add|list|remove|test ")


def test_the_page_has_every_option_and_its_example_is_right(place):
    text = (TOP / "man/cordon-rules.1.scd").read_text()
    options = json.loads(place.cordon("help", "--json").stdout)["commands"]
    options = next(entry for entry in options if entry["name"] == "rules")["options"]
    assert set(re.findall(r"^(?:\*-\w\*, )?\*--([a-z]+)\*(?: _.*_)?$", text, re.MULTILINE)) == \
        {option["name"] for option in options} | {"help"}
    for option in options:
        for word in option["words"] or []:
            assert f"*{word}*" in text, word
    example = re.search(r"```\n(# may be read.*?)```", text, re.DOTALL)[1]
    rules(place, example)
    ran = place.cordon("rules", "test")
    assert ran.stdout == "1 file, 3 rules, 2 examples: 0 wrong\n", ran.stdout
    assert check(place, "git", "push")["decision"] == "forbidden"
