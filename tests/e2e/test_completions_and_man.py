"""Completions and man pages say what the program has, and nothing else: all three shells and every
page are held against `cordon help --json`. The completions are made of it (completions/generate)
and work in their shells; the pages are written by hand."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import BUILD, CORDON, TOP

SHELLS = {"bash": "cordon", "zsh": "_cordon", "fish": "cordon.fish"}  # as they are installed
NOT_COMMANDS = {"help", "version"}  # of Cordon itself: --help, --version


@pytest.fixture(scope="module")
def commands():
    text = subprocess.run([CORDON, "help", "--json"], capture_output=True, check=True).stdout
    return {command["name"]: command for command in json.loads(text)["commands"]}


def options_of(*commands):
    return {option["name"] for command in commands for option in command["options"]} | {"help"}


def long_options(text):
    return set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])", text))


# --- completions


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_have_every_option_and_no_other(commands, shell):
    text = (BUILD / "completions" / SHELLS[shell]).read_text()
    text = re.sub(r"(^|\s)#.*", "", text)
    if shell == "fish":
        found = set(re.findall(r"^complete .*? -l ([a-z0-9-]+)", text, re.MULTILINE))
    else:
        found = long_options(text)
    assert found == options_of(*commands.values()) | {"version"}


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_have_every_command_and_word(commands, shell):
    text = (BUILD / "completions" / SHELLS[shell]).read_text()
    for command in commands.values():
        assert re.search(rf"\b{command['name']}\b", text)
        for option in command["options"]:
            if option["words"]:
                assert " ".join(option["words"]) in text, option["name"]


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_have_every_short_option(commands, shell):
    text = (BUILD / "completions" / SHELLS[shell]).read_text()
    for command in commands.values():
        for option in command["options"]:
            if option["letter"] and shell == "fish":
                assert f"-s {option['letter']} -l {option['name']}" in text
            if option["letter"] and shell == "zsh":
                assert re.search(rf"\{{-{option['letter']}\+?,--{option['name']}\b", text)


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_accepted_by_their_shell(shell):
    """By those that are installed; bash always is."""
    if shutil.which(shell):
        file = BUILD / "completions" / SHELLS[shell]
        subprocess.run([shell, "-n", file], check=True, timeout=60)
    else:
        assert shell != "bash"


def env_of(place):
    """The completions ask the program that is found by its name."""
    return {**place.env, "PATH": f"{CORDON.parent}:{place.env['PATH']}"}


def complete(place, *words):
    """What bash offers for the last of the words."""
    script = f"""
        source {BUILD}/completions/cordon
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _cordon 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    out = subprocess.run(["bash", "-c", script, "bash", *words], cwd=place.ws, env=env_of(place),
                         capture_output=True, text=True, check=True, timeout=60).stdout
    return set(out.split("\n")) - {""}



def test_bash_completes_commands_and_options(place, commands):
    assert complete(place, "cordon", "") >= commands.keys()
    assert complete(place, "cordon", "exp") == {"explain"}
    for name, command in commands.items():
        if name != "help":
            assert complete(place, "cordon", name, "--") == {
                f"--{option}" for option in options_of(command)}


@pytest.mark.parametrize("words, wanted", [
    (["run", "--network", ""], {"restricted", "proxied", "enabled", "host"}),
    (["run", "--network", "e"], {"enabled"}),
    (["run", "--network", "=", "r"], {"restricted"}),
    (["run", "--network", "="], {"restricted", "proxied", "enabled", "host"}),
    (["run", "-n", "r"], {"restricted"}),
    (["run", "--sandbox", ""], {"auto", "require", "disabled", "landlock"}),
    (["run", "--stdin", ""], {"pipe", "null"}),
    (["explain", "--for", ""], {"read", "write"}),
    (["run", "--profile", "w"], {"workspace-write"}),
    (["run", "--profile", "mi"], {"mine"}),
    (["explain", "--diff", "mi"], {"mine"}),
    (["config", "sh"], {"show"}),
    (["rules", "rem"], {"remove"}),
    (["run", "-C", "su"], {"sub"}),
    (["run", "--writable", "fi"], {"file"}),
    (["run", "--timeout", ""], set()),
    (["run", "--with", "np"], {"npm"}),
    (["run", "--with", "npm,uv,ca"], {"npm,uv,cargo"}),
    (["presets", "ccac"], {"ccache"}),
    (["learn", "-n", "enabled", "ls", "fi"], {"file"}),
    (["run", "--json", "--no-t"], {"--no-tty"}),
    (["run", "-n", "enabled", "--", "ls", "fi"], {"file"}),
    (["run", "-n", "enabled", "ls", "fi"], {"file"}),
    (["run", "-n", "=", "enabled", "ls", "fi"], {"file"}),
    (["help", "do"], {"doctor"}),
])
def test_bash_completes_values(place, words, wanted):
    place.config("[permissions.mine.filesystem]\n'~/x' = 'read'\n")
    (place.ws / "sub").mkdir()
    (place.ws / "file").touch()
    assert complete(place, "cordon", *words) == wanted


def test_a_completion_executes_nothing_of_the_directory(place):
    """Nor what a name in a configuration says."""
    for name in ("cordon", "sed", "config"):
        (place.ws / name).write_text("#!/bin/sh\ntouch executed\n")
        (place.ws / name).chmod(0o755)
    (place.ws / "config.toml").write_text("[permissions.theirs]\nextends = ':workspace'\n")
    place.config("[permissions.'$(touch${IFS}executed)']\nextends = ':workspace'\n"
                 "[permissions.'`touch executed`']\nextends = ':workspace'\n")
    assert complete(place, "./cordon", "run", "--profile", "") == {
        "read-only", "workspace-write", "danger-full-access"}
    for begun in ("$(touch executed),", "touch executed;/e;#,"):
        assert complete(place, "cordon", "run", "--with", begun) == set()
    assert not (place.ws / "executed").exists()


def test_bash_completes_the_command_to_run(place):
    assert "env" in complete(place, "cordon", "run", "env")
    assert "env" in complete(place, "cordon", "run", "--json", "--", "env")


def offered_by_fish(place, line):
    """What fish offers at the end of the line."""
    script = f"source {BUILD}/completions/cordon.fish; complete -C '{line}'"
    out = subprocess.run(["fish", "--no-config", "-c", script], cwd=place.ws, env=env_of(place),
                         capture_output=True, text=True, check=True, timeout=60)
    assert out.stderr == ""
    return {row.split("\t")[0] for row in out.stdout.splitlines()}


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes(place, commands):
    assert offered_by_fish(place, "cordon ") == commands.keys()
    for name, command in commands.items():
        wanted = {f"--{option}" for option in options_of(command)}
        assert offered_by_fish(place, f"cordon {name} --") >= wanted - {"--help"}
    assert offered_by_fish(place, "cordon run --network ") == {"restricted", "proxied", "enabled", "host"}
    assert offered_by_fish(place, "cordon log v") == {"verify"}
    place.config("[permissions.mine.filesystem]\n")
    assert offered_by_fish(place, "cordon run --profile mi") == {"mine"}


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_completes(place, commands):
    """What _arguments, which needs a terminal, is given for each command."""
    for name, command in commands.items():
        script = f"""
            _arguments() {{
                if [[ $1 == -C ]]; then state=argument; line=({name}); else print -rl -- "$@"; fi
            }}
            source {BUILD}/completions/_cordon
        """
        out = subprocess.run(["zsh", "-fc", script], cwd=place.ws, env=env_of(place),
                             capture_output=True, text=True, check=True, timeout=60)
        assert out.stderr == ""
        specs = out.stdout.splitlines()
        assert specs[0] == "-S"
        for option in command["options"]:
            takes = option['value'] and not option['optional']
            spelled = rf"--{option['name']}{'=' if takes else ''}\["
            words = " ".join(option["words"] or [])
            assert any(re.search(spelled, spec) and words in spec for spec in specs), option
            if option["letter"]:
                assert any(re.search(rf"-{option['letter']}\+?\[", spec) for spec in specs), option


# --- man pages


def page(name):
    return (TOP / "man" / f"{name}.scd").read_text()


def unmarked(text):
    """scdoc without its backslashes and stars."""
    return re.sub(r"\\(.)", r"\1", text.replace("*", ""))


def test_there_is_a_page_for_everything(commands):
    names = {path.name for path in (TOP / "man").glob("*.scd")}
    assert names == {"cordon.1.scd", "cordon-config.5.scd", "cordon-linux-sandbox.1.scd",
                     *(f"cordon-{name}.1.scd" for name in commands.keys() - NOT_COMMANDS)}
    built = (TOP / "man/meson.build").read_text()
    for name in names:
        assert f"'{name.removesuffix('.scd')}'" in built


@pytest.mark.parametrize("name", ["run", "script", "patch", "explain", "doctor", "serve", "log",
                                  "connect", "config", "learn", "layers", "changes", "diff", "accept", "drop", "undo"])
def test_pages_have_every_option_and_no_other(commands, name):
    text = page(f"cordon-{name}.1")
    headings = set()
    for letter, option, value in re.findall(r"^(?:\*-(\w)\*, )?\*--([a-z0-9-]+)\*(?:\[=| )?(?:_(.*?)_)?\]?(?:\+\+)?$",
                                            text, re.MULTILINE):
        headings.add((option, letter, value))
    wanted = {(option["name"], option["letter"] or "", option["value"] or "")
              for option in commands[name]["options"]} | {("help", "h", "")}
    assert headings == wanted
    gits = {"exit-code", "quiet", "stat", "word-diff"} if name == "diff" else set()  # behind "--"
    assert long_options(unmarked(text)) - gits <= options_of(*commands.values())


def test_pages_have_every_word(commands):
    for name in ("run", "explain"):
        text = unmarked(page(f"cordon-{name}.1"))
        for option in commands[name]["options"]:
            for word in option["words"] or []:
                assert name == "explain" or word in text


def test_the_helpers_page_has_its_flags(place):
    (place.base / "codex-linux-sandbox").symlink_to(CORDON)
    out = place.cordon("--help", program=place.base / "codex-linux-sandbox").stdout
    flags = set(re.findall(r"^  (?:-h, )?--([a-z-]+)", out, re.MULTILINE))
    text = page("cordon-linux-sandbox.1")
    assert set(re.findall(r"^(?:\*-h\*, )?\*--([a-z-]+)\*", text, re.MULTILINE)) >= flags


def test_the_first_page_has_every_command_and_status(commands):
    text = page("cordon.1")
    for name in commands:
        assert re.search(rf"^\*{name}\*", text, re.MULTILINE), name
    assert "*125*" in text


def test_the_config_page_has_every_key():
    """Every key that the program knows stands in cordon-config(5)."""
    source = (TOP / "src/policy/config/config.c").read_text()
    text = unmarked(page("cordon-config.5"))
    for table in ("workspace_keys", "environment_keys", "permission_keys", "network_keys"):
        body = re.search(rf"{table}\[\] = \{{(.*?)NULL", source, re.DOTALL)[1]
        for key in re.findall(r'"(\w+)"', body):
            assert re.search(rf"\b{key}\b", text), key
    general = re.search(r"top_keys\[\] = \{(.*?)\n\n", source, re.DOTALL)[1]
    for key in re.findall(r'"(\w+)"', general):
        assert re.search(rf"\b{key}\b", text), key


def test_the_config_example_is_valid(place):
    example = re.search(r"^# EXAMPLE\n\n```\n(.*?)```", page("cordon-config.5"),
                        re.MULTILINE | re.DOTALL)[1]
    config = place.config(example)
    for profile in ("dev", "offline-reader"):
        ran = place.cordon("explain", "--json", "-p", profile)
        explained = json.loads(ran.stdout)
        assert explained["warnings"] == [] and explained["config"] == str(config)
        assert explained["profile"]["name"] == profile


@pytest.mark.parametrize("file", sorted((TOP / "man").glob("*.scd")), ids=lambda file: file.name)
def test_pages_are_accepted_by_scdoc(file):
    made = subprocess.run(["scdoc"], stdin=file.open(), capture_output=True, text=True, check=False,
                          timeout=60)
    assert made.returncode == 0, made.stderr
    section = pathlib.Path(file.stem).suffix[1:]
    assert f'"{section}"' in made.stdout.split(".TH", 1)[1].split("\n")[0]
