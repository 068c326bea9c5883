"""Attacks of an adversary who had not built the guards, on what git believes: links in a git directory,
configuration in places of its own, worktrees of an opened `.git`."""

import os

from catalogue import attack
from cases.beliefs import add_submodule, configured, library, replace_git
from cases.names import git_is_trapped, repository, trap


@attack()
def a_link_to_hooks_in_the_workspace(stage):
    """As people do who keep their hooks in the repository."""
    repository(stage)
    _, mark = trap(stage)
    (stage.ws / ".git/hooks").rename(stage.ws / "hooks")
    (stage.ws / ".git/hooks").symlink_to("../hooks")
    stage.shell("cp trap hooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack()
def a_hook_that_is_a_link(stage):
    repository(stage)
    _, mark = trap(stage)
    stage.file("ws/scripts/check", "#!/bin/sh\n", 0o755)
    (stage.ws / ".git/hooks/pre-commit").symlink_to("../../scripts/check")
    stage.shell("cp trap scripts/check; cp trap new; mv new scripts/check; mv scripts old; mkdir scripts; cp trap scripts/check")
    return git_is_trapped(stage, mark)


@attack()
def a_hook_that_is_a_link_to_nothing(stage):
    repository(stage)
    _, mark = trap(stage)
    (stage.ws / ".git/hooks/pre-commit").symlink_to("../../scripts/check")
    stage.shell("mkdir scripts; cp trap scripts/check")
    return git_is_trapped(stage, mark)


@attack()
def a_link_among_configured_hooks(stage):
    stage.file("ws/scripts/check", "#!/bin/sh\n", 0o755)
    stage.file("ws/myhooks/README")
    (stage.ws / "myhooks/pre-commit").symlink_to("../scripts/check")
    return configured(stage, "core.hooksPath", "myhooks", "cp trap scripts/check")


@attack()
def a_configuration_that_is_a_link(stage):
    repository(stage)
    _, mark = trap(stage)
    (stage.ws / ".git/config").rename(stage.ws / "gitconfig")
    (stage.ws / ".git/config").symlink_to("../gitconfig")
    stage.shell('printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> gitconfig', stage.ws / "trap")
    return git_is_trapped(stage, mark)


@attack()
def a_person_s_configuration_that_is_a_link(stage):
    """The workspace is where a person keeps the files of the home directory."""
    repository(stage)
    _, mark = trap(stage)
    stage.file("ws/gitconfig", "[user]\n\tname = a\n")
    (stage.home / ".gitconfig").symlink_to(stage.ws / "gitconfig")
    stage.shell('printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> gitconfig', stage.ws / "trap")
    return git_is_trapped(stage, mark)


@attack()
def a_person_s_configuration_elsewhere(stage):
    repository(stage)
    _, mark = trap(stage)
    stage.file("outside/xdg/git/config", "[core]\n\thooksPath = myhooks\n")
    stage.env["XDG_CONFIG_HOME"] = str(stage.out / "xdg")
    stage.shell("mkdir -p myhooks; cp trap myhooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack()
def hooks_in_the_home_of_an_account(stage):
    """`~name/`, of which git asks the accounts."""
    above = os.path.relpath(stage.ws, os.path.expanduser("~daemon"))
    return configured(stage, "core.hooksPath", f"~daemon/{above}/myhooks", "mkdir -p myhooks; cp trap myhooks/pre-commit")


@attack()
def a_worktree_of_an_opened_git(stage):
    repository(stage)
    program, mark = trap(stage)
    stage.git("commit", "-q", "-m", "first")
    linked = stage.base / "linked"
    assert stage.git("worktree", "add", "-q", str(linked)).returncode == 0
    stage.shell('cp -r .git elsewhere && printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> elsewhere/config && '
                'echo ../../../elsewhere > .git/worktrees/linked/commondir', program, cordon=["--writable", ".git"])
    stage.git("status", cwd=linked)
    return mark.exists()


@attack()
def the_configuration_of_a_worktree_of_an_opened_git(stage):
    repository(stage)
    program, mark = trap(stage)
    stage.git("commit", "-q", "-m", "first")
    stage.git("config", "extensions.worktreeConfig", "true")
    linked = stage.base / "linked"
    assert stage.git("worktree", "add", "-q", str(linked)).returncode == 0
    stage.shell('printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> .git/worktrees/linked/config.worktree', program,
                cordon=["--writable", ".git"])
    stage.git("status", cwd=linked)
    return mark.exists()


@attack()
def a_packer_that_is_in_the_workspace(stage):
    stage.file("ws/tools/pack", "cat\n", 0o755)
    configured(stage, "tar.tar.x.command", "sh tools/pack", "true")
    stage.git("commit", "-q", "-m", "x")
    stage.shell("cp trap tools/pack")
    stage.git("archive", "--format=tar.x", "-o", str(stage.out / "a"), "HEAD")
    return (stage.out / "git-ran-it").exists()


@attack()
def an_update_of_a_submodule_by_a_command(stage):
    repository(stage)
    add_submodule(stage, library(stage))
    _, mark = trap(stage)
    stage.file("ws/tools/update", "#!/bin/sh\n", 0o755)
    stage.git("config", "submodule.part.update", f"!{stage.ws}/tools/update")
    stage.shell("cp trap tools/update")
    stage.git("-C", "part", "commit", "-q", "--allow-empty", "-m", "ahead")
    stage.git("submodule", "update")
    return mark.exists()


@attack()
def a_monitor_with_a_blank_in_its_path(stage):
    stage.file("ws/my tools/monitor", "#!/bin/sh\nexit 1\n", 0o755)
    return configured(stage, "core.fsmonitor", "'my tools/monitor'", "cp trap 'my tools/monitor'")


@attack()
def a_submodule_of_a_repository_with_long_hashes(stage):
    source = stage.out / "library"
    source.mkdir()
    for folder in (source, stage.ws):
        assert stage.git("init", "-q", "--object-format=sha256", cwd=folder).returncode == 0
    stage.git("commit", "-q", "--allow-empty", "-m", "first", cwd=source)
    add_submodule(stage, source)
    stage.git("update-index", "--index-version", "4")
    return replace_git(stage, stage.ws / ".git/modules/part", stage.ws / "part")


@attack(refusal_holds=True, unheld="the first command of it is refused, which the second is not")
def an_index_that_is_a_fifo(stage):
    """What follows a run with `.git` opened must not wait for it, nor go on without it."""
    repository(stage)
    add_submodule(stage, library(stage))
    stage.shell("mv .git/index old; mkfifo .git/index", cordon=["--writable", ".git"])
    program, mark = trap(stage)
    stage.shell('rm -rf part/.git; cp -r .git/modules/part evil; git config -f evil/config core.worktree "$PWD/part"; '
                'git config -f evil/config core.fsmonitor "$1"; echo gitdir: ../evil > part/.git', program)
    (stage.ws / ".git/index").unlink()
    (stage.ws / "old").rename(stage.ws / ".git/index")
    return git_is_trapped(stage, mark)


def of_a_worktree(stage, make):
    """Agents keep worktrees within the repository."""
    main = make(stage)
    stage.file("ws/.gitignore", "tree\n")
    tree = stage.ws / "tree"
    assert stage.git("worktree", "add", "-q", "-f", str(tree), "-b", "side", cwd=main).returncode == 0
    program, mark = trap(stage)
    stage.shell('cp -r "$2" evil && git config -f evil/config core.bare false && git config -f evil/config '
                'core.fsmonitor "$1" && { echo "gitdir: $PWD/evil" > tree/.git; rm -f tree/.git; mv tree old; mkdir tree; '
                'echo "gitdir: $PWD/evil" > tree/.git; }', program, main)
    stage.git("status", cwd=tree)
    return mark.exists()


@attack()
def the_git_file_of_a_worktree_within(stage):
    def make(stage):
        repository(stage)
        stage.git("commit", "-q", "-m", "first")
        return stage.ws / ".git"
    return of_a_worktree(stage, make)


@attack()
def the_git_file_of_a_worktree_beside_a_bare_repository(stage):
    def make(stage):
        source = library(stage)
        assert stage.git("clone", "-q", "--bare", str(source), ".bare").returncode == 0
        stage.file("ws/.git", "gitdir: ./.bare\n")
        return stage.ws / ".bare"
    return of_a_worktree(stage, make)
