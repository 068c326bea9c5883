"""`cordon config`, and `cordon rules list` and `remove`: what a person does to the files of Cordon without
knowing their syntax."""
import json
import os
import re

import pytest

from harness import TOP
from person import Person


def home(place):
    return place.home / ".config/cordon"


# --- init


def test_init_writes_a_file_that_changes_nothing(place):
    before = place.json("config", "show", "--json")["values"]
    ran = place.cordon("config", "init")
    assert ran.returncode == 0 and str(home(place) / "config.toml") in ran.stdout
    assert os.stat(home(place) / "config.toml").st_mode & 0o777 == 0o600
    assert place.json("config", "show", "--json")["values"] == before
    assert place.cordon("config", "check").stdout == f"{home(place)}/config.toml: right\n"


def test_init_is_never_over_a_file_that_is_there(place):
    file = place.config("# mine\n")
    ran = place.cordon("config", "init")
    assert ran.returncode == 125 and "is there already" in ran.stderr
    assert file.read_text() == "# mine\n"
    file.unlink()
    file.symlink_to(place.base / "nowhere")
    assert place.cordon("config", "init").returncode == 125
    assert not (place.base / "nowhere").exists()


def test_each_setting_of_the_template_is_right(place):
    assert place.cordon("config", "init").returncode == 0
    file = home(place) / "config.toml"
    text = re.sub(r"^#(?! |$)", "", file.read_text(), flags=re.MULTILINE)
    alternative = "sandbox_mode = \"workspace-write\"\n"
    assert alternative in text  # which default_permissions would have no effect beside
    file.write_text(text.replace(alternative, ""))
    assert place.cordon("config", "check").stdout == f"{home(place)}/config.toml: right\n"
    source = (TOP / "src/policy/config/config.c").read_text()
    ours = re.search(r"top_keys\[\] = \{(.*?)\n\n", source, re.DOTALL)[1]
    for key in re.findall(r'"(\w+)"', ours):
        assert re.search(rf"^#?\[?{key}\b", file.read_text() + alternative, re.MULTILINE), key


# --- check


@pytest.mark.parametrize("text, wanted", [
    ("a = 1\nsandbox_mod = 'read-only'\n", ":1: unknown key \"a\""),
    ("sandbox_mod = 'read-only'\n", ":1: unknown key \"sandbox_mod\", did you mean \"sandbox_mode\"?"),
    ("\nsandbox_mode = 'readonly'\n", ":2: sandbox_mode: \"readonly\" is not known, did you mean \"read-only\"?"),
    ("[permissions.a]\nextends = 'b'\n", ":2:"),
    ("[permissions.a.filesystem]\n'~/x' = 'writ'\n", ":2:"),
    ("default_permissions = 'gone'\n", "there is no profile \"gone\""),
    ("[permissions.a]\nwith = ['npmm']\n", ":2: with: there is no preset \"npmm\", did you mean \"npm\"?"),
    ("x = [\n", ":2:1: "),
])
def test_check_says_file_line_and_what_is_meant(place, text, wanted):
    file = place.config(text)
    ran = place.cordon("config", "check")
    assert ran.returncode == 1 and wanted in ran.stdout and str(file) in ran.stdout
    other = place.ws / "other.toml"
    other.write_text(text)
    file.unlink()
    checked = place.cordon("config", "check", "other.toml", "--json")
    found = json.loads(checked.stdout)
    assert checked.returncode == 1 and found["ok"] is False and found["file"] == str(other)
    assert wanted in found["problems"][0]


def test_check_of_a_file_that_is_not_there(place):
    assert place.cordon("config", "check").returncode == 0
    assert place.cordon("config", "check", "gone").returncode == 125
    assert "did you mean \"check\"" in place.cordon("config", "chek").stderr


def test_check_tells_of_every_profile(place):
    place.config("default_permissions = 'b'\n[permissions.a]\nextends = 'x'\n[permissions.b]\nextends = 'y'\n")
    found = json.loads(place.cordon("config", "check", "--json").stdout)
    assert len(found["problems"]) == 2


# --- show


def test_show_says_where_each_value_comes_from(place):
    file = place.config("sandbox_mode = 'read-only'\n[audit]\ntrace = ['exec']\n"
                        "[permissions.'a b'.filesystem]\n'~/x' = 'write'\n")
    values = {value["key"]: value for value in place.json("config", "show", "--json")["values"]}
    assert values["sandbox_mode"] == {"key": "sandbox_mode", "value": "read-only", "from": f"{file}:1"}
    assert values["audit.trace"]["value"] == ["exec"] and values["audit.trace"]["from"] == f"{file}:3"
    assert values['permissions."a b".filesystem."~/x"']["from"] == f"{file}:5"
    assert values["protect"] == {"key": "protect", "value": ["git", "agents", "editors"], "from": None}
    shown = place.cordon("config", "show").stdout
    assert re.search(rf'^sandbox_mode = "read-only" +{re.escape(str(file))}:1$', shown, re.MULTILINE)
    assert re.search(r"^ws_auth is not set", shown, re.MULTILINE)


def test_show_has_every_key_and_true_defaults(place):
    """What is shown as a default is what an empty file, and that very value in a file, come to."""
    source = (TOP / "src/policy/config/config.c").read_text()
    ours = re.search(r"top_keys\[\] = \{(.*?)\n\n", source, re.DOTALL)[1]
    values = place.json("config", "show", "--json")["values"]
    assert {value["key"].split(".")[0] for value in values} == set(re.findall(r'"(\w+)"', ours))
    for table in ("workspace_keys", "environment_keys", "audit_keys"):
        keys = set(re.findall(r'"(\w+)"', re.search(rf"{table}\[\] = \{{(.*?)NULL", source, re.DOTALL)[1]))
        prefix = {"workspace_keys": "sandbox_workspace_write", "audit_keys": "audit",
                  "environment_keys": "shell_environment_policy"}[table]
        shown = {value["key"].split(".")[1] for value in values if value["key"].startswith(prefix + ".")}
        assert shown == keys - {"experimental_use_profile"}
    explained = place.json("explain", "--json")
    del explained["plan"], explained["config"], explained["profile"]["from"]
    file = place.config("".join(f"{value['key']} = {json.dumps(value['value'])}\n" for value in values
                                if value["value"] is not None))
    again = place.json("explain", "--json")
    assert again["config"] == str(file)
    for key in ("environment", "network", "protect", "watch", "judge"):
        if key != "network":
            assert again[key] == explained[key], key
    for name, limit in again["limits"].items():
        assert limit["value"] == explained["limits"][name]["value"]
    access = [{key: entry[key] for key in ("path", "access")} for entry in explained["entries"]
              if str(home(place)) not in entry["path"]]
    assert access == [{key: entry[key] for key in ("path", "access")} for entry in again["entries"]
                      if str(home(place)) not in entry["path"]]


def test_names_and_values_command_no_terminal(place):
    place.config('[permissions."a\\u001b[31m\\n"]\nextends = ":workspace"\ndescription = "\\u001b"\n')
    shown = place.cordon("config", "show").stdout
    assert "\x1b" not in shown and "permissions." in shown


# --- edit


def edit(place, script, **options):
    editor = place.base / "editor"
    editor.write_text("#!/bin/sh\n" + script)
    editor.chmod(0o755)
    env = {"VISUAL": "", "EDITOR": str(editor)}
    return place.cordon("config", "edit", env={**place.env, **env}, **options)


def test_edit_puts_in_place_what_is_right(place):
    file = place.config("# mine\n")
    file.chmod(0o640)
    ran = edit(place, 'case $1 in *.toml) ;; *) exit 1;; esac; echo "sandbox_mode = \'read-only\'" >>"$1"\n')
    assert ran.returncode == 0, ran.stderr
    assert file.read_text() == "# mine\nsandbox_mode = 'read-only'\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == ["config.toml"]


def test_edit_begins_with_the_template(place):
    assert edit(place, 'grep -q "^#sandbox_mode" "$1"\n').returncode == 0
    assert edit(place, 'echo "protect = []" >"$1"\n').returncode == 0
    assert (home(place) / "config.toml").read_text() == "protect = []\n"


def test_edit_keeps_a_link(place):
    target = place.base / "kept.toml"
    target.write_text("# mine\n")
    home(place).mkdir(parents=True)
    (home(place) / "config.toml").symlink_to(target)
    assert edit(place, 'echo "protect = []" >"$1"\n').returncode == 0
    assert (home(place) / "config.toml").is_symlink() and target.read_text() == "protect = []\n"


def test_edit_leaves_a_file_alone_when_the_copy_is_wrong(place):
    file = place.config("# mine\n")
    ran = edit(place, 'echo "protec = []" >"$1"\n')
    assert ran.returncode == 125 and 'did you mean "protect"' in ran.stderr
    assert file.read_text() == "# mine\n"
    copy = re.search(r"what you wrote is in (\S+)", ran.stderr)[1]
    assert open(copy, encoding="utf-8").read() == "protec = []\n"


def test_edit_tells_of_an_editor_that_fails_and_of_others(place):
    file = place.config("# mine\n")
    assert "ended with 3" in edit(place, "exit 3\n").stderr
    assert os.listdir(file.parent) == ["config.toml"]  # nothing was written that could be lost
    ran = edit(place, f'echo "# theirs" >{file}; echo "protect = []" >"$1"\n')
    assert ran.returncode == 125 and "meanwhile" in ran.stderr
    assert file.read_text() == "# theirs\n"


def test_edit_asks_again_at_a_terminal(place):
    file = place.config("# mine\n")
    person = Person(place)
    editor = place.base / "editor"
    editor.write_text('#!/bin/sh\ngrep -q wrong "$1" && echo "protect = []" >"$1" || echo "wrong = 1" >"$1"\n')
    editor.chmod(0o755)
    process = place.start("config", "edit", env={**place.env, "EDITOR": str(editor), "VISUAL": ""},
                          stdin=person.side, stdout=person.side, stderr=person.side,
                          preexec_fn=person.take_terminal)
    person.until("unknown key \"wrong\"")
    person.until("edit it again?")
    assert file.read_text() == "# mine\n"
    person.say("\n")
    person.until("is changed")
    assert process.wait(60) == 0 and file.read_text() == "protect = []\n"


# --- profiles


def test_profiles_are_named(place):
    place.config("[permissions.mine]\nextends = ':workspace'\n"
                 "[permissions.'$(touch x)']\nextends = ':workspace'\n[permissions.'a b']\nextends = 'mine'\n")
    ran = place.cordon("config", "profiles")
    assert ran.stdout.split("\n") == ["read-only", "workspace-write", "danger-full-access", "mine", ""]
    assert "a b" in place.json("config", "profiles", "--json")
    place.config("broken = [\n")
    ran = place.cordon("config", "profiles")
    assert ran.returncode == 0 and ran.stderr == "" and "workspace-write" in ran.stdout


# --- rules list, rules remove


RULES = """# mine
prefix_rule(
  ["git", ["push", "pull"]], decision="forbidden",
  justification="use the mirror")\r
"""


def added(place, *words):
    assert place.cordon("rules", "add", *words).returncode == 0


def test_rules_are_listed_with_their_places(place):
    file = place.config(RULES, "home/.config/cordon/rules/default.rules")
    added(place, "--justification", "quick", "--", "npm", "test")
    added(place, "--host", "example.org")
    shown = place.cordon("rules", "list").stdout.splitlines()
    assert shown == [f"  1  forbidden  git push|pull  {file}:2 (user): use the mirror",
                     f"  2  allow, sandbox keep  npm test  {file}:5 (user): quick",
                     f"  3  allow  host example.org (https)  {file}:6 (user)"]
    listed = place.json("rules", "list", "--json")["rules"]
    assert [rule["number"] for rule in listed] == [1, 2, 3]
    assert [rule["removable"] for rule in listed] == [False, True, True]
    assert listed[1]["words"] == ["npm", "test"] and listed[1]["line"] == 5
    assert listed[0]["justification"] == "use the mirror" and listed[2]["host"] == "example.org"


@pytest.mark.parametrize("words", [["--", "npm", "test"], ["2"]])
def test_just_the_rule_is_removed(place, words):
    file = place.config(RULES, "home/.config/cordon/rules/default.rules")
    before = file.read_bytes()
    added(place, "--", "npm", "test")
    with open(file, "ab") as stream:
        stream.write(b"\n# the end, without a line feed")
    ran = place.cordon("rules", "remove", *words)
    assert ran.returncode == 0, ran.stderr
    assert file.read_bytes() == before + b"\n# the end, without a line feed"


def test_what_is_not_to_be_removed(place):
    file = place.config(RULES, "home/.config/cordon/rules/default.rules")
    added(place, "--", "ls")
    added(place, "--decision", "prompt", "--", "ls")
    before = file.read_bytes()
    for words, said in ((["1"], "was not written by"), (["4"], "there is no rule 4"), (["0"], "no rule 0"),
                        (["--", "git"], "no rule of yours"), (["--", "ls"], "several rules"),
                        (["--host", "x.org"], "no rule of yours"), ([], "say which rule")):
        ran = place.cordon("rules", "remove", *words)
        assert ran.returncode == 125 and said in ran.stderr, ran.stderr
        assert file.read_bytes() == before
    assert place.cordon("rules", "remove", "--decision", "prompt", "--", "ls").returncode == 0
    assert place.json("rules", "list", "--json")["rules"][1]["decision"] == "allow"


def test_a_rule_that_is_written_otherwise_stays(place):
    text = 'prefix_rule(pattern=["a"],  decision="forbidden")\nprefix_rule(pattern=["b"], decision="forbidden") # why\n'
    file = place.config(text, "home/.config/cordon/rules/default.rules")
    for number in ("1", "2"):
        ran = place.cordon("rules", "remove", number)
        assert ran.returncode == 125 and "change it there" in ran.stderr
    assert file.read_text() == text


def test_a_broken_file_is_listed_and_stays(place):
    file = place.config('prefix_rule(pattern=["a"], decision="forbidden")\nbroken(\n',
                        "home/.config/cordon/rules/default.rules")
    assert "broken: " in place.cordon("rules", "list").stdout
    before = file.read_text()
    assert place.cordon("rules", "remove", "1").returncode == 125
    assert file.read_text() == before
