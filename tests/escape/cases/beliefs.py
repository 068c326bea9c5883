"""What git is led to from a workspace: by the repository around it, `.git` files, submodules of any
kind, and its configuration. Each time git itself, outside, is who obeys."""

from catalogue import attack
from cases.names import git_is_trapped, repository, trap

EVIL = ('cp -r "$2" "$3" && git config -f "$3"/config core.worktree "$4" && '
        'git config -f "$3"/config core.fsmonitor "$1" && echo "gitdir: $3" > "$4"/.git')


def library(stage, name="library"):
    path = repository(stage, f"outside/{name}")
    stage.git("commit", "-q", "-m", "first", cwd=path)
    return path


def add_submodule(stage, source, name="part", cwd=None):
    added = stage.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), name, cwd=cwd)
    assert added.returncode == 0, added.stderr
    stage.git("commit", "-q", "-m", "submodule", cwd=cwd)


def replace_git(stage, module, part, **run):
    """The `.git` of the submodule becomes one of the command's, with a monitor."""
    program, mark = trap(stage)
    evil = stage.ws / "evil"
    stage.shell(f'rm -rf "$4"/.git; {EVIL}', program, module, evil, part, **run)
    return git_is_trapped(stage, mark)


@attack()
def a_submodule_where_the_workspace_is_a_subfolder(stage):
    """The repository is around the workspace."""
    repository(stage)
    add_submodule(stage, library(stage), "sub/part")
    program, mark = trap(stage)
    inside = stage.ws / "sub"
    stage.shell(f'rm -rf "$4"/.git; {EVIL}', program, stage.ws / ".git/modules/sub/part", inside / "evil",
                inside / "part", cwd=inside, cordon=["-C", inside])
    return git_is_trapped(stage, mark)


@attack()
def a_submodule_in_a_linked_worktree(stage):
    main = repository(stage, "outside/main")
    stage.git("commit", "-q", "-m", "first", cwd=main)
    assert stage.git("worktree", "add", "-q", "-f", str(stage.ws), cwd=main).returncode == 0
    add_submodule(stage, library(stage))
    return replace_git(stage, main / ".git/worktrees/ws/modules/part", stage.ws / "part")


@attack()
def a_submodule_of_a_submodule(stage):
    repository(stage)
    outer = library(stage, "outer")
    add_submodule(stage, library(stage, "inner"), "deep", cwd=outer)
    add_submodule(stage, outer)
    got = stage.git("-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    assert got.returncode == 0, got.stderr
    return replace_git(stage, stage.ws / ".git/modules/part/modules/deep", stage.ws / "part/deep")


@attack()
def a_submodule_that_was_not_fetched(stage):
    """Only the index tells of it, once the first command has removed .gitmodules."""
    made = repository(stage, "outside/made")
    add_submodule(stage, library(stage), cwd=made)
    assert stage.git("clone", "-q", str(made), ".").returncode == 0
    stage.shell("rm -f .gitmodules")
    program, mark = trap(stage)
    stage.shell('mkdir -p part; git init -q part && git -C part config core.fsmonitor "$1"', program)
    return git_is_trapped(stage, mark)


@attack()
def a_submodule_of_a_split_index(stage):
    repository(stage)
    add_submodule(stage, library(stage))
    assert stage.git("update-index", "--split-index").returncode == 0
    stage.shell("rm -f .gitmodules")
    return replace_git(stage, stage.ws / ".git/modules/part", stage.ws / "part")


def configured(stage, key, value, script, *words):
    repository(stage)
    _, mark = trap(stage)
    assert stage.git("config", key, value).returncode == 0
    stage.shell(script, stage.ws / "trap", *words)
    return git_is_trapped(stage, mark)


@attack()
def hooks_that_the_configuration_names(stage):
    return configured(stage, "core.hooksPath", "myhooks", 'mkdir -p myhooks; cp trap myhooks/pre-commit')


@attack()
def hooks_of_husky(stage):
    stage.file("ws/.husky/_/pre-commit", "#!/bin/sh\nexec sh .husky/pre-commit\n", 0o755)
    return configured(stage, "core.hooksPath", ".husky/_", "cp trap .husky/pre-commit")


@attack()
def configuration_that_is_included(stage):
    return configured(stage, "include.path", "../.gitconfig",
                      'printf "[core]\\n\\tfsmonitor = %s\\n" "$1" > .gitconfig')


@attack()
def configuration_that_is_included_by_what_is_included(stage):
    stage.file("ws/a.conf", "[includeIf \"gitdir:/\"]\n\tpath = b.conf # more\n")
    return configured(stage, "include.path", str(stage.ws / "a.conf"),
                      'printf "[core]\\n\\tfsmonitor = %s\\n" "$1" > b.conf')


@attack()
def a_monitor_that_is_in_the_workspace(stage):
    stage.file("ws/tools/monitor", "#!/bin/sh\nexit 1\n", 0o755)
    return configured(stage, "core.fsmonitor", "tools/monitor", "cp trap tools/monitor")


@attack()
def a_filter_that_is_in_the_workspace(stage):
    stage.file("ws/clean.sh", "cat\n")
    stage.file("ws/.gitattributes", "* filter=x\n")
    repository(stage)
    _, mark = trap(stage)
    assert stage.git("config", "filter.x.clean", "sh ./clean.sh").returncode == 0
    stage.shell('printf "touch %s; cat\\n" "$1" > clean.sh; echo more >> file', mark)
    stage.git("add", "file")
    return mark.exists()


@attack()
def hooks_that_the_person_s_own_configuration_names(stage):
    repository(stage)
    _, mark = trap(stage)
    (stage.home / ".gitconfig").write_text("[core]\n\thooksPath = myhooks\n", encoding="utf-8")
    stage.shell("mkdir -p myhooks; cp trap myhooks/pre-commit")
    return git_is_trapped(stage, mark)


@attack()
def a_hook_below_an_opened_git(stage):
    repository(stage)
    _, mark = trap(stage)
    stage.shell("cp trap .git/hooks/pre-commit", cordon=["--writable", ".git"] if stage.inside else [])
    return git_is_trapped(stage, mark)


@attack()
def a_monitor_below_an_opened_git(stage):
    repository(stage)
    program, mark = trap(stage)
    stage.shell('cp .git/config c; printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> c; cp c .git/config; '
                'mv c .git/config || { mv .git/config .git/old; mv c .git/config; }', program,
                cordon=["--writable", ".git"])
    return git_is_trapped(stage, mark)


@attack()
def a_commondir_below_an_opened_git(stage):
    repository(stage)
    program, mark = trap(stage)
    stage.shell('cp -r .git elsewhere && printf "[core]\\n\\tfsmonitor = %s\\n" "$1" '
                '>> elsewhere/config && echo ../elsewhere > .git/commondir', program, cordon=["--writable", ".git"])
    return git_is_trapped(stage, mark)


@attack()
def a_module_below_an_opened_git(stage):
    repository(stage)
    add_submodule(stage, library(stage))
    program, mark = trap(stage)
    stage.shell('printf "[core]\\n\\tfsmonitor = %s\\n" "$1" >> .git/modules/part/config', program,
                cordon=["--writable", ".git"])
    return git_is_trapped(stage, mark)


@attack()
def a_repository_between_two_roots(stage):
    """The workspace has none; git looks further up, where the command may write."""
    place = stage.tmp / "a/b"
    place.mkdir(parents=True)
    program, mark = trap(stage)
    stage.shell('cd .. && git init -q . && git config core.fsmonitor "$1"', program, cwd=place, cordon=["-C", place])
    stage.git("status", cwd=place)
    return mark.exists()
