"""Protected names: what git, the agent and Cordon read later, outside, must not be written inside -
present or missing, folder, file or link. Where git is the one who would obey, git is asked."""

import os
import subprocess

from catalogue import attack

HOOK = "#!/bin/sh\ntouch {}\n"


def repository(stage, folder="ws"):
    path = stage.base / folder
    path.mkdir(parents=True, exist_ok=True)
    assert stage.git("init", "-q", ".", cwd=path).returncode == 0
    stage.file(f"{folder}/file")
    stage.git("add", "file", cwd=path)
    return path


def trap(stage):
    """A program that git may be led to run, and the file by which we know that it did."""
    mark = stage.out / "git-ran-it"
    return stage.file("ws/trap", HOOK.format(mark), 0o755), mark


def repository_with_submodule(stage):
    """In the directory `part`."""
    repository(stage, "outside/library")
    stage.git("commit", "-q", "-m", "first", cwd=stage.out / "library")
    repository(stage)
    added = stage.git("-c", "protocol.file.allow=always", "submodule", "add", "-q",
                      str(stage.out / "library"), "part")
    assert added.returncode == 0, added.stderr
    stage.git("commit", "-q", "-m", "first")


def git_is_trapped(stage, mark):
    """What a person does after the command."""
    stage.git("status")
    stage.git("commit", "-q", "--allow-empty", "-m", "message")
    return mark.exists()


@attack(holes=(5,))
def write_a_hook(stage):
    repository(stage)
    _, mark = trap(stage)
    stage.shell("cp trap .git/hooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def configure_a_monitor(stage):
    """CVE-2026-19592: git status outside obeys core.fsmonitor."""
    repository(stage)
    program, mark = trap(stage)
    stage.shell('printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> .git/config', program)
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def plant_a_commondir(stage):
    """One new file moves hooks and config elsewhere."""
    repository(stage)
    program, mark = trap(stage)
    stage.shell('cp -r .git elsewhere && printf "[core]\\n\\tfsmonitor = %s\\n" "$1" '
                '>> elsewhere/config && echo ../elsewhere > .git/commondir', program)
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def rewrite_a_git_file(stage):
    repository(stage, "outside/store")
    stage.file("ws/.git", f"gitdir: {stage.out}/store/.git\n")
    program, mark = trap(stage)
    stage.shell('cp -r "$1" elsewhere; printf "[core]\\n\\tfsmonitor = %s\\n" "$2" '
                '>> elsewhere/config; echo "gitdir: elsewhere" > .git',
                stage.out / "store/.git", program)
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def replace_a_git_file(stage):
    repository(stage, "outside/store")
    file = stage.file("ws/.git", f"gitdir: {stage.out}/store/.git\n")
    stage.shell('echo "gitdir: elsewhere" > new && mv -f new .git')
    return "elsewhere" in file.read_text()


@attack(holes=(5,))
def write_below_the_target_of_a_git_file(stage):
    """The folder that .git points to lies in the workspace under an innocent name."""
    repository(stage, "ws/store")
    stage.file("ws/.git", "gitdir: store/.git\n")
    _, mark = trap(stage)
    stage.shell("cp trap store/.git/hooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def write_below_the_target_of_a_git_file_with_another_name(stage):
    repository(stage, "ws/store")
    (stage.ws / "store/.git").rename(stage.ws / "plain")
    stage.file("ws/.git", "gitdir: plain\n")
    _, mark = trap(stage)
    stage.shell("cp trap plain/hooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def write_below_the_common_folder_of_a_worktree(stage):
    """CVE-2026-55607: .git -> worktrees/x -> commondir -> hooks, all inside the workspace."""
    repository(stage, "ws/main")
    stage.git("commit", "-q", "-m", "first", cwd=stage.ws / "main")
    stage.git("worktree", "add", "-q", str(stage.ws / "tree"), cwd=stage.ws / "main")
    (stage.ws / "main/.git").rename(stage.ws / "plain")
    stage.file("ws/plain/worktrees/tree/commondir", f"{stage.ws}/plain\n")
    stage.file("ws/tree/.git", f"gitdir: {stage.ws}/plain/worktrees/tree\n")
    _, mark = trap(stage)
    stage.shell("cp trap plain/hooks/pre-commit",
                cordon=["-C", stage.ws / "tree", "--writable", stage.ws], cwd=stage.ws)
    stage.git("commit", "-q", "--allow-empty", "-m", "m", cwd=stage.ws / "tree")
    return mark.exists()


@attack(holes=(5,))
def make_a_missing_repository(stage):
    program, mark = trap(stage)
    stage.shell('git init -q . && git config core.fsmonitor "$1"', program)
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def make_a_bare_repository(stage):
    """Where there is no .git, git takes the folder itself for a repository if it has HEAD,
    objects and refs."""
    program, mark = trap(stage)
    stage.shell('git init -q --bare new && mv new/* . && git config -f config core.bare false &&'
                ' git config -f config core.worktree "$PWD" && '
                'git config -f config core.fsmonitor "$1"', program)
    return git_is_trapped(stage, mark)


@attack(holes=(5,))
def replace_the_missing_head_beside_another_command(stage):
    """Another command runs already, with a guard of its own for the same folder."""
    ready = stage.start("/bin/sh", "-c", "echo @up; read line", stdin=subprocess.PIPE)
    ready.stdout.readline()
    stage.shell("rm -rf HEAD; mkdir -p objects refs/heads; echo 'ref: refs/heads/main' > HEAD;"
                " printf '[core]\\nbare = true\\n' > config")
    ready.communicate("\n", timeout=20)
    git = subprocess.run(["git", "-C", stage.ws, "rev-parse", "--git-dir"], check=False,
                         capture_output=True, text=True, env={**stage.env, "GIT_CEILING_DIRECTORIES": str(stage.ws.parent)})
    return git.returncode == 0


@attack()
def make_a_missing_git_file(stage):
    stage.shell('echo "gitdir: elsewhere" > .git')
    return os.path.isfile(stage.ws / ".git") and "elsewhere" in (stage.ws / ".git").read_text()


@attack()
def make_a_missing_git_link(stage):
    stage.shell("mkdir elsewhere; ln -s elsewhere .git")
    return (stage.ws / ".git").is_symlink()


@attack()
def rename_a_folder_to_a_missing_name(stage):
    stage.shell("mkdir new && echo hooks > new/hooks && mv -T new .git")
    return (stage.ws / ".git/hooks").exists()


def missing_name(stage, name, folder="ws", **kwargs):
    """CVE-2026-25725: what is protected only while it exists can be made."""
    place = stage.base / folder
    stage.shell('mkdir -p "$1/$2" && echo planted > "$1/$2/config.toml"', place, name, **kwargs)
    return (place / name / "config.toml").exists()


@attack()
def make_a_missing_codex_folder(stage):
    return missing_name(stage, ".codex")


@attack()
def make_a_missing_agents_folder(stage):
    return missing_name(stage, ".agents")


@attack()
def make_a_missing_aws_folder(stage):
    return missing_name(stage, ".aws")


@attack()
def make_a_missing_cordon_folder(stage):
    return missing_name(stage, ".cordon")


@attack()
def make_a_missing_name_in_tmpdir(stage):
    return missing_name(stage, ".codex", "tmp")


@attack()
def make_a_missing_name_in_an_extra_root(stage):
    (stage.base / "extra").mkdir()
    return missing_name(stage, ".git", "extra", cordon=["--writable", stage.base / "extra"])


@attack(private_tmp=True)
def make_a_missing_name_in_tmp(stage):
    stage.shell("mkdir -p /tmp/.git && echo planted > /tmp/.git/config")
    return os.path.exists("/tmp/.git/config")


@attack(private_tmp=True, holes=(3,))
def write_to_a_present_name_in_tmp(stage):
    os.mkdir("/tmp/.agents")
    stage.shell("echo planted > /tmp/.agents/skill")
    return os.path.exists("/tmp/.agents/skill")


@attack()
def write_to_a_present_name(stage):
    file = stage.file("ws/.agents/skill")
    stage.attack("write", file)
    return stage.is_changed(file)


@attack()
def fill_an_empty_name(stage):
    (stage.ws / ".codex").mkdir()
    stage.shell("echo planted > .codex/config.toml")
    return (stage.ws / ".codex/config.toml").exists()


@attack()
def write_to_a_name_that_is_a_file(stage):
    file = stage.file("ws/.cordon")
    stage.attack("write", file)
    return stage.is_changed(file)


@attack()
def move_a_name_away(stage):
    file = stage.file("ws/.codex/config.toml")
    stage.shell("mv .codex old; mkdir .codex; echo planted > .codex/config.toml")
    return not file.exists() or stage.is_changed(file)


@attack()
def exchange_a_name(stage):
    file = stage.file("ws/.codex/config.toml")
    stage.file("ws/mine/config.toml", "planted\n")
    stage.attack("exchange", stage.ws / "mine", stage.ws / ".codex")
    return stage.is_changed(file)


@attack()
def write_by_a_hard_link_made_inside(stage):
    file = stage.file("ws/.codex/config.toml")
    stage.attack("link-write", file, stage.ws / "link")
    return stage.is_changed(file)


@attack()
def change_the_mode_of_a_name(stage):
    file = stage.file("ws/.git/hooks/pre-commit", "#!/bin/sh\n", 0o644)
    stage.attack("chmod", file, "0755")
    return os.access(file, os.X_OK)


@attack(refusal_holds=True)
def rename_the_folder_of_a_nested_root(stage):
    """The inner root's names are protected; moving the root itself would free them."""
    file = stage.file("ws/inner/.git/config")
    stage.shell("mv inner other; echo planted > other/.git/config; mkdir -p inner/.git;"
                "echo planted > inner/.git/config", cordon=["--writable", stage.ws / "inner"])
    return not file.exists() or stage.is_changed(file)


@attack(refusal_holds=True)
def make_the_missing_target_of_a_git_file(stage):
    """The pointer is protected, and leads to a folder that is not there yet."""
    stage.file("ws/.git", "gitdir: later\n")
    program, mark = trap(stage)
    stage.shell('git init -q other && mv other/.git later && git --git-dir=later config '
                'core.fsmonitor "$1"', program)
    return git_is_trapped(stage, mark)


@attack(refusal_holds=True)
def retarget_a_link_in_a_git_pointer(stage):
    """.git -> link/.git, and the link lies in the workspace."""
    repository(stage, "ws/store")
    (stage.ws / "link").symlink_to("store")
    stage.file("ws/.git", "gitdir: link/.git\n")
    program, mark = trap(stage)
    stage.shell('cp -r store evil; printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> evil/.git/config;'
                'ln -sfn evil link', program)
    return git_is_trapped(stage, mark)


@attack(refusal_holds=True)
def rewrite_the_git_file_of_a_submodule(stage):
    """git status outside goes into every submodule, and obeys the configuration there."""
    repository_with_submodule(stage)
    program, mark = trap(stage)
    stage.shell('cp -r .git/modules/part evil && git config -f evil/config core.worktree '
                '"$PWD/part" && git config -f evil/config core.fsmonitor "$1" && '
                'echo "gitdir: ../evil" > part/.git', program)
    return git_is_trapped(stage, mark)


@attack()
def rename_the_workspace_in_tmpdir(stage):
    """The workspace lies in another writable root; moved away, its names would be free."""
    project = stage.tmp / "project"
    project.mkdir()
    stage.shell('cd .. && mv project other; mkdir -p project/.git && echo planted > '
                'project/.git/config', cordon=["-C", project], cwd=project)
    return (project / ".git/config").exists()


def planted_link(stage, target, name=".codex", folder="ws"):
    """CVE-2026-87766, CVE-2026-39861: a launcher that makes its mount points by path follows the
    link and makes folders outside. Bare, mkdir stands for that launcher."""
    (stage.base / folder / name).symlink_to(target)
    if stage.inside:
        stage.run("/bin/true")
    else:
        stage.shell('mkdir -p "$1/made"', stage.base / folder / name)
    return sorted(path.name for path in stage.out.iterdir())


@attack(holes=(3,), refusal_holds=True, silent=True)
def plant_a_link_to_a_folder(stage):
    return planted_link(stage, stage.out)


@attack(holes=(3,), refusal_holds=True, silent=True)
def plant_a_relative_link(stage):
    return planted_link(stage, "../outside", ".git")


@attack(holes=(3,), refusal_holds=True, silent=True)
def plant_a_link_by_proc(stage):
    return planted_link(stage, f"/proc/self/root{stage.out}", ".agents")


@attack(holes=(3,), refusal_holds=True, silent=True)
def plant_a_link_in_tmpdir(stage):
    return planted_link(stage, stage.out, ".aws", "tmp")


@attack(holes=(3,), refusal_holds=True, silent=True)
def plant_a_dangling_link(stage):
    """What the link names does not exist yet."""
    (stage.ws / ".codex").symlink_to(stage.out / "missing")
    if stage.inside:
        stage.run("/bin/true")
    else:
        stage.shell('mkdir "$(readlink .codex)"')
    return (stage.out / "missing").exists()


@attack(holes=(3,), refusal_holds=True)
def plant_a_link_through_the_launchers_old_root(stage):
    """bubblewrap kept the host under /oldroot while it made mount points."""
    (stage.ws / ".codex").symlink_to(f"/oldroot{stage.out}")
    if stage.inside:
        stage.shell("true")
    else:
        stage.shell('mkdir -p "$1$(readlink .codex)/made" && mv "$1/oldroot$2/made" "$2"',
                    stage.ws, stage.out)
    return sorted(path.name for path in stage.out.iterdir())


@attack(refusal_holds=True)
def write_through_a_planted_link_inside(stage):
    """A link inside the workspace under a protected name: its target is writable."""
    (stage.ws / "store").mkdir()
    (stage.ws / ".codex").symlink_to("store")
    stage.shell("echo planted > store/config.toml")
    return (stage.ws / ".codex/config.toml").exists()


@attack(refusal_holds=True)
def retarget_a_link_above_a_denied_path(stage):
    """A denied path that crosses a link inside a writable root: the link can be changed."""
    stage.file("ws/real/secret")
    (stage.ws / "link").symlink_to("real")
    file = stage.ws / "link/secret"
    return "original" in stage.attack("read", stage.ws / "real/secret",
                                      cordon=["--deny", file]).won


@attack()
def make_a_missing_name_after_another_run_ended(stage):
    """Two runs hold the same missing name; the end of one must not open it for both."""
    first = stage.start("/bin/sh", "-c", "echo up; read line", stdin=-1)
    assert not stage.inside or first.stdout.readline() == "up\n"
    second = stage.start("/bin/sh", "-c", "echo '@start'; read line; mkdir .codex;"
                         "echo planted > .codex/config.toml", stdin=-1)
    stage.note_run(0, second.stdout.readline(), "")
    first.communicate("\n")
    stage.finish(second, "\n")
    return (stage.ws / ".codex/config.toml").exists()


@attack()
def make_a_missing_name_after_another_run_was_killed(stage):
    """The same when the first is killed, and a third one comes and goes."""
    first = stage.start("/bin/sh", "-c", "echo up; read line", stdin=-1)
    assert not stage.inside or first.stdout.readline() == "up\n"
    second = stage.start("/bin/sh", "-c", "echo '@start'; read line; mkdir .codex;"
                         "echo planted > .codex/config.toml", stdin=-1)
    stage.note_run(0, second.stdout.readline(), "")
    first.kill()
    first.wait()
    stage.run("/bin/true")
    stage.finish(second, "\n")
    return (stage.ws / ".codex/config.toml").exists()
