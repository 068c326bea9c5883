"""Attacks of an adversary who had not built the guards, on a yes: somebody said it to a new file in a folder
elsewhere, which opens the folder, and the command goes on to what git, editors and agents run there."""

import subprocess

import pytest

from asking import NAMES, Asking, need_asker, play  # noqa: F401

# Each in the folder, where there is a repository `repo`; what is there then, if it worked.
ATTACKS = {
    "a hook": ("echo x > repo/.git/hooks/pre-commit", "repo/.git/hooks/pre-commit"),
    "a hook of a submodule": ("mkdir -p repo/.git/modules/a/hooks", "repo/.git/modules/a/hooks"),
    "a configuration": ("cp repo/.git/config c; echo x >> c; mv c repo/.git/config; grep x repo/.git/config && : > done", "done"),
    "a commondir": ("echo ../x > repo/.git/commondir", "repo/.git/commondir"),
    "a repository": ("mkdir .git", ".git"),
    "a git file": ("echo gitdir: x > .git", ".git"),
    "a git link": ("ln -s repo .git", ".git"),
    "a folder becomes one": ("mv repo/.git .git", ".git/HEAD"),
    "a prepared one": ("mkdir p && mv p .git", ".git"),
    "one goes": ("mv repo/.git repo/old", "repo/old"),
    "tasks of an editor": ("mkdir .vscode", ".vscode"),
    "tasks of an editor, below": ("mkdir a/b/.idea", "a/b/.idea"),
    "an agent": ("echo {} > .mcp.json", ".mcp.json"),
    "an agent by a link": ("ln -s repo .claude", ".claude"),
    "an agent by a hard link": ("ln file .mcp.json", ".mcp.json"),
    "an agent by a rename": ("echo {} > x; mv x opencode.json", "opencode.json"),
    "hooks": ("mkdir .husky", ".husky"),
    "Cordon's rules": ("mkdir .cordon", ".cordon"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_yes_to_a_folder_is_none_to_what_is_believed_there(name, tools):
    def scene(stage):
        won = []
        for script, made in ATTACKS.values():
            folder = stage.out / "open"
            subprocess.run(["rm", "-rf", folder], check=True)
            stage.file("outside/open/file")
            stage.file("outside/open/a/b/file")
            assert stage.git("init", "-q", "repo", cwd=folder).returncode == 0
            words = ["/bin/sh", "-c", f"cd $0; : > n; [ -e n ] && echo granted; {script}; exit 0", folder]
            if stage.inside:
                asking = Asking(stage, *words)
                written = asking.serve(lambda question: "yes" if question.path == f"{folder}/n" else "no")
                assert "granted" in written, written
            else:
                stage.run(*words)
            won.append((folder / made).exists() or (folder / made).is_symlink())
        return won
    assert all(play(name, tools, scene, inside=False))
    assert dict(zip(ATTACKS, play(name, tools, scene))) == dict.fromkeys(ATTACKS, False)


@pytest.mark.parametrize("name", NAMES)
def test_a_repository_of_the_command_s_own_is_its_own(name, tools):
    """In a folder that it has made since the yes."""
    def scene(stage):
        script = "cd $0; git init -q new; cd new; git config a.b c; : > .git/hooks/h; mkdir .vscode; ls -A . .git/hooks"
        asking = Asking(stage, "/bin/sh", "-c", script, stage.out)
        written = asking.serve(lambda question: "yes" if question.path == f"{stage.out}/new" else "no")
        return sorted(set(written.split()) & {"h", ".vscode", ".git"}), len(asking.all("asked"))
    assert play(name, tools, scene) == ([".git", ".vscode", "h"], 1)
