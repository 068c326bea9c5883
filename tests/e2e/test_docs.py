"""Documentation is run before it is believed: every shell block of the README and of docs/*.md.

A block is fenced as `sh`, and may say what it exits with: ```sh exit=124. The blocks of one file run
in their order, in one folder of their own, as a person would follow them. TOML blocks have to be
configurations without a warning.
"""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CORDON_BUILD", TOP / "build"))
FENCE = re.compile(r"^```(sh|toml)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]


def blocks(document, language):
    for kind, options, text in FENCE.findall(document.read_text()):
        if kind == language:
            code = re.search(r"exit=(\d+)", options)
            yield text, int(code.group(1)) if code else 0


@pytest.fixture
def environment():
    """A home is not in /tmp, which every command may write."""
    path = f"{BUILD / 'src/cli'}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="cordon-home-", dir=os.environ["CORDON_TESTS"]) as home:
        yield {**os.environ, "PATH": path, "HOME": home, "CORDON_HOME": f"{home}/cordon"}


def bare_machine(environment, _runtime, _stack):
    """No more than a login on a console, or a container, has."""
    return {name: environment[name] for name in ("HOME", "PATH", "CORDON_HOME")}


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


SURROUNDINGS = {"bare": bare_machine, "desktop": desktop}


@pytest.fixture(params=SURROUNDINGS)
def surroundings(request, environment):
    """Where a user may be: the environment, with all that it names."""
    with contextlib.ExitStack() as stack:
        runtime = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))  # a socket's path may have 107 bytes
        yield SURROUNDINGS[request.param](environment, pathlib.Path(runtime), stack)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_shell_blocks_run(document, tmp_path, surroundings):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    (folder / "README.md").write_text("a project\n")
    for text, code in blocks(document, "sh"):
        ran = subprocess.run(["sh", "-e", "-c", text], cwd=folder, env=surroundings,
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
