"""Documentation is run before it is believed: every shell block of the README and of docs/*.md.

A block is fenced as `sh`, and may say what it exits with: ```sh exit=124. The blocks of one file run
in their order, in one folder of their own, as a person would follow them; those of network.md where
there is an internet with the hosts that it names (tests/world.py). TOML blocks have to be
configurations without a warning.

What cannot be run here (the network, a terminal, another system) is indented and not fenced. Every line of it that
calls cordon, as every such piece of code in the text, in man pages and in --help, is held against the options that
there are; the examples of man pages and --help are run, with programs in the place of make, npm and so on.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile

import pytest

import host
from harness import LAUNCHER, Place
from world import World

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CORDON_BUILD", TOP / "build"))
FENCE = re.compile(r"^```(sh|toml)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
PAGES = sorted((TOP / "man").glob("*.scd"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(document, language):
    for kind, options, text in FENCE.findall(document.read_text()):
        if kind == language:
            code = re.search(r"exit=(\d+)", options)
            yield text, int(code.group(1)) if code else 0


@pytest.fixture
def environment():
    """A home is not in /tmp, which every command may write; nor is what `cordon diff` makes for a moment, since the tests
    beside this one look for what is called after us in /tmp. Of what is installed there is the library as it was built."""
    path = f"{BUILD / 'src/cli'}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="cordon-home-", dir=os.environ["CORDON_TESTS"]) as home:
        pathlib.Path(home, "cordon.pc").write_text(
            f"Name: cordon\nDescription: here\nVersion: 0\nCflags: -I{TOP}/include\n"
            f"Libs: {BUILD}/src/libcordon/libcordon.a -levent_core -ljansson -lvterm {' '.join(host.sanitizers())}\n")
        pathlib.Path(home, "tmp").mkdir()
        yield {**os.environ, "PATH": path, "HOME": home, "TMPDIR": f"{home}/tmp", "CORDON_HOME": f"{home}/cordon", "CORDON_LINUX_SANDBOX_EXE": str(LAUNCHER),
               "PKG_CONFIG_PATH": home}


def bare_machine(environment, _runtime, _stack):
    """No more than a login on a console, or a container, has."""
    return {name: environment[name] for name in ("HOME", "PATH", "TMPDIR", "CORDON_HOME", "PKG_CONFIG_PATH", "CORDON_LINUX_SANDBOX_EXE")}


def desktop(environment, runtime, stack):
    """A session of a desktop, under systemd, of somebody who builds with ccache; whose sockets answer nobody."""
    for name in ("bus", "wayland-0", "ssh-agent", "systemd/private", "systemd/notify"):
        (runtime / name).parent.mkdir(exist_ok=True)
        end = stack.enter_context(socket.socket(socket.AF_UNIX))
        end.bind(str(runtime / name))
        end.listen()
    units = pathlib.Path(environment["HOME"]) / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / "other.service").write_text("[Service]\nExecStart=/bin/true\n")
    return {**environment, "PATH": f"{BUILD / 'src/cli'}:/usr/lib/ccache:{os.environ['PATH']}", "TERM": "xterm-256color",
            "LANG": "en_US.UTF-8", "LC_TIME": "de_DE.UTF-8", "DISPLAY": ":7", "WAYLAND_DISPLAY": "wayland-0",
            "XDG_RUNTIME_DIR": str(runtime), "XDG_SESSION_TYPE": "wayland", "XDG_CURRENT_DESKTOP": "GNOME",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus", "SSH_AUTH_SOCK": str(runtime / "ssh-agent"),
            "NOTIFY_SOCKET": str(runtime / "systemd/notify"), "INVOCATION_ID": "0" * 32, "JOURNAL_STREAM": "8:1",
            "EDITOR": "vi", "PAGER": "less", "COLORTERM": "truecolor"}


@contextlib.contextmanager
def internet(folder):
    """The words before a command that is to have it, and to trust its servers."""
    place = Place()
    with place.cleanup:
        place.ws = folder
        world = World(place)
        world.names |= {"www.example.org": ["11.0.0.1"], "ads.example.org": ["11.0.0.2"], "download.example.com": ["11.0.0.3"],
                        "api.example.org": ["11.0.0.3"], "intra.example.net": ["10.0.0.1"]}
        with world:
            yield [*world.enter(), "env", f"SSL_CERT_FILE={world.ca}"]


@contextlib.contextmanager
def servers_of(folder):
    """A page that starts one keeps its pid, and ends it; also when it goes wrong before."""
    try:
        yield
    finally:
        for pid in folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGTERM)


SURROUNDINGS = {"bare": bare_machine, "desktop": desktop}


@pytest.fixture(params=SURROUNDINGS)
def surroundings(request, environment):
    """Where a user may be: the environment, with all that it names."""
    with contextlib.ExitStack() as stack:
        runtime = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))  # a socket's path may have 107 bytes
        yield SURROUNDINGS[request.param](environment, pathlib.Path(runtime), stack)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_shell_blocks_run(document, surroundings):
    """In a project in the home directory, as people have them: /tmp is the command's own."""
    folder = pathlib.Path(surroundings["HOME"], "project")
    folder.mkdir()
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    (folder / "README.md").write_text("a project\n")
    with internet(folder) if document.name == "network.md" else contextlib.nullcontext([]) as enter, servers_of(folder):
        for text, code in blocks(document, "sh"):
            ran = subprocess.run([*enter, "sh", "-e", "-c", text], cwd=folder, env=surroundings,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            assert ran.returncode == code, f"{text}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_configurations_are_valid(document, tmp_path, environment):
    for text, _ in blocks(document, "toml"):
        config = tmp_path / "config.toml"
        config.write_text(text)
        ran = subprocess.run(["cordon", "explain", "--config", str(config)], cwd=tmp_path,
                             env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        assert "unknown" not in ran.stderr, ran.stderr


# --- what cannot be forgotten: pages, links, findings


def test_every_page_is_in_the_index_and_every_link_leads_somewhere():
    index = (TOP / "docs/README.md").read_text()
    for page in DOCUMENTS[1:]:
        assert page.name == "README.md" or f"]({page.name})" in index, f"{page.name} is not in docs/README.md"
    for document in [*DOCUMENTS, *sorted((TOP / "docs/decisions").glob("*.md"))]:
        for target in LINK.findall(document.read_text()):
            path, _, anchor = target.partition("#")
            there = document.parent / path if path else document
            if "://" not in target:
                assert there.exists(), f"{document.name} leads to {target}"
                assert not anchor or anchor in anchors(there), f"{document.name} leads to {target}"


def anchors(document):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_packages_are_called_as_they_are_made():
    """By scripts/dist, of this version; what is typed to install them is tried by scripts/test-packages."""
    version = re.search(r"^  version: '(.*)'", (TOP / "meson.build").read_text(), re.MULTILINE)[1]
    forms = {f"cordon-{version}-linux-x86_64", f"cordon_{version}_amd64.deb", f"cordon-{version}-npm-", f"cordon-{version}-"}
    shown = {name for page in DOCUMENTS for name in re.findall(r"cordon[-_]\d[\w.-]*", page.read_text())}
    assert shown and {name.removesuffix(".tar.gz") for name in shown} <= forms


def test_troubleshooting_has_every_finding_of_doctor():
    source = (TOP / "src/cli/remedies.c").read_text()
    calls = re.findall(r"[^*]remedies_add\(\s*ret,([^,]*),", source)
    findings = {name for call in calls for name in re.findall(r'"([a-z0-9-]+)"', call)}
    headings = set(re.findall(r"^### (.*)$", (TOP / "docs/troubleshooting.md").read_text(), re.MULTILINE))
    assert len(calls) == source.count("remedies_add(") - 1 and len(findings) > 10
    assert findings == headings


def test_the_picture_of_a_terminal_shows_what_is_seen():
    subprocess.run([TOP / "scripts/terminal-picture", "--check"], check=True)


# --- commands that are shown


def commands_shown(text):
    """Words of each call of cordon in code: indented lines, fences, and pieces between backquotes or stars."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^(?:    |  |\t)(?:\$ )?(.*)$", text, re.MULTILINE)
    for piece in code + [line for _, _, block in FENCE.findall(text) for line in block.splitlines()]:
        for call in re.findall(r"(?:^|[|;&(] ?|\$ ?|- run: )((?:[A-Z_]+=\S+ )*cordon [a-z-].*)", piece):
            with contextlib.suppress(ValueError):  # a line that goes on in the next one
                words = shlex.split(call, comments=True)
                yield words[words.index("cordon") + 1:]


@pytest.fixture(scope="module")
def table():
    said = subprocess.run([BUILD / "src/cli/cordon", "help", "--json"], capture_output=True, check=True).stdout
    return {command["name"]: command for command in json.loads(said)["commands"]}


def mistake(words, table):
    """What is wrong with a call; None when nothing is."""
    at_a_server = {"ps", "attach", "logs", "kill", "cp", "publish"}
    while words and words[0].startswith("--"):  # cordon --connect URL ps, cordon --version
        words = words[2:] if words[0] == "--connect" else words[1:]
    if not words or not re.fullmatch(r"[a-z-]+", words[0]):
        return None
    name = "connect" if words[0] in at_a_server else words[0]
    if name not in table:
        return f"there is no command {words[0]}"
    options = {option["name"]: option for option in table[name]["options"]} | {"help": {"value": None, "words": None}}
    letters = {option["letter"]: option for option in options.values() if option.get("letter")} | {"h": options["help"]}
    rest = iter(words[1:])
    for word in rest:
        if word == "--" or re.search(r"[|;<>&]", word):
            return None
        found = re.fullmatch(r"--([a-z0-9-]+)(?:=(.*))?", word, re.DOTALL)
        if found or re.fullmatch(r"-\w.*", word):
            option = options.get(found[1]) if found else letters.get(word[1])
            if not option:
                return f"{name} has no option {word}"
            value = found[2] if found else word[2:] or None
            if option["value"] and value is None and not option.get("optional"):
                value = next(rest, None)
            if option["words"] and value and value.islower() and value not in option["words"]:
                return f"{value} is no word for {word}"
        elif name in ("run", "learn", "explain"):
            return None  # the command begins
    return None


@pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=lambda path: path.name)
def test_commands_that_are_shown_are_commands(document, table):
    text = document.read_text()
    if document.suffix == ".scd":
        text = re.sub(r"\\(.)", r"\1", text).replace("++\n", "\n")
    for words in commands_shown(text):
        wrong = mistake(words, table)
        assert not wrong, f"cordon {shlex.join(words)}: {wrong}"


def test_mistakes_would_be_found(table):
    for call, wrong in (("run --writeable x", "no option"), ("rnu -- x", "no command"), ("run --network none -- x", "no word"),
                        ("run -Z", "no option"), ("ps --jsn", "no option"), ("rules check --jsn -- x", "no option")):
        assert wrong in mistake(shlex.split(call), table), call
    for call in ("run --network host -- rm --force", "--connect URL ps", "run -n enabled x --y", "help run"):
        assert mistake(shlex.split(call), table) is None, call
    shown = list(commands_shown("x `cordon run --a` or\n\n    $ cordon log\n\n```sh\ntrue | cordon patch\n```\n"))
    assert shown == [["run", "--a"], ["log"], ["patch"]]


# --- examples of --help and of man pages

STAND_INS = ("make", "npm", "pytest", "cmake", "nano", "less", "jq", "agent-step", "check", "claude", "codex")  # what is tried is Cordon
APART = (" -i", "--follow", "EDITOR", "connect", "serve", "--listen", "codex exec")  # until Ctrl-C, or at a server: test_cli_log.py, test_connect.py


@pytest.fixture
def scene(environment):
    """What the examples speak of. Not in /tmp, of which commands have their own."""
    home = pathlib.Path(environment["HOME"])
    project, programs, other = home / "project", home / "bin", home / "other"
    for folder in (programs, other, project / "build", pathlib.Path(environment["CORDON_HOME"]),
                   home / ".ssh", home / ".codex"):
        folder.mkdir(parents=True)
    for name in STAND_INS:
        for file in (programs / name, project / name):
            file.write_text('#!/bin/sh\n[ -t 0 ] || cat\n')
            file.chmod(0o755)
    for folder in (project, other):
        (folder / "a.txt").write_text("one\n")
    (project / "fix.patch").write_text("*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** End Patch\n")
    (project / "conversation.jsonl").write_text('{"exec_command": {"cmd": "true"}}\n')
    (project / "project.rules").write_text('prefix_rule(pattern=["make"], match=["make x"])\n')
    (project / "list").write_text("a\nb\n")
    (home / ".codex/config.toml").write_text("")
    pathlib.Path(environment["CORDON_HOME"], "config.toml").write_text("[permissions.dev]\nextends = ':workspace'\n")
    subprocess.run(["git", "init", "-q", project], check=True)
    return project, {**environment, "PATH": f"{programs}:{environment['PATH']}"}


def examples_of_help(name):
    text = subprocess.run([BUILD / "src/cli/cordon", "help", *name], capture_output=True, text=True, check=True).stdout
    block = re.search(r"Examples:\n((?:  .*\n)+)" if not name else r"\n\n((?:  .*\n)+)", text)[1]
    return [re.split(r" {3,}", line.strip())[0] for line in block.splitlines()]


def examples_of_page(page):
    block = re.search(r"^# EXAMPLES\n\n```\n(.*?)```", re.sub(r"\\(.)", r"\1", page.read_text()), re.MULTILINE | re.DOTALL)
    text = block[1] if block else ""
    return [text] if "<<" in text else text.splitlines()


WITH_LAYER = re.compile(r"^cordon (layers|changes|diff|accept|drop|undo)\b")
LAYER_MAKERS = ["cordon run -q --layer=agent -- sh -c 'mkdir -p src build; date +%N > src/main.c; date > build/x'"] * 2


def play(lines, scene):
    project, env = scene
    for line in lines:
        if any(word in line for word in APART):
            continue
        for before in LAYER_MAKERS + ["cordon accept agent --all"] * ("undo" in line) if WITH_LAYER.match(line) else []:
            subprocess.run(["sh", "-c", before], cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
        ran = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=project, env=env, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, errors="replace", timeout=60)
        taken = ran.returncode not in (125, 126, 127) or "config init" in line and "is there" in ran.stderr
        assert taken, f"{line}\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("name", ["", "run", "script", "patch", "explain", "learn", "doctor", "log", "rules", "config", "presets", "mcp", "integrate",
                                  "version", "help", "layers", "changes", "diff", "accept", "drop", "undo"])
def test_examples_of_help_run(name, scene):
    lines = examples_of_help([name] if name else [])
    assert lines
    play(lines, scene)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_examples_of_pages_run(page, scene):
    play(examples_of_page(page), scene)
