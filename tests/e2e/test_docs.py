"""Documentation is run before it is believed: every shell block of the README and of docs/*.md.

A block is fenced as `sh`, and may say what it exits with: ```sh exit=124. The blocks of one file run
in their order, in one folder of their own, as a person would follow them. TOML blocks have to be
configurations without a warning.
"""
import os
import pathlib
import re
import subprocess

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
def environment(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    path = f"{BUILD / 'src/cli'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(home), "CORDON_HOME": str(home / "cordon")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_shell_blocks_run(document, tmp_path, environment):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Makefile").write_text("test:\n\ttrue\n")
    (folder / "README.md").write_text("a project\n")
    for text, code in blocks(document, "sh"):
        ran = subprocess.run(["sh", "-e", "-c", text], cwd=folder, env=environment,
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
