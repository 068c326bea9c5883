"""What Cordon has to look at before it can protect, and a command can make hard to look at."""

from catalogue import attack
from cases.names import git_is_trapped, repository, repository_with_submodule, trap


@attack()
def read_by_a_pattern_in_a_folder_without_search(stage):
    """The pattern finds the name by listing, and cannot look at it."""
    secret = stage.file("ws/dir/.env", "the secret")
    stage.shell("chmod 444 dir", cordon=["--deny", "**/.env"])
    ran = stage.shell("chmod 755 dir; cat dir/.env", cordon=["--deny", "**/.env"])
    secret.parent.chmod(0o755)
    return "the secret" in ran.out


@attack(refusal_holds=True)
def read_by_name_in_a_folder_without_rights(stage):
    secret = stage.file("ws/dir/secret", "the secret")
    stage.shell("chmod 000 dir", cordon=["--deny", "dir/secret"])
    ran = stage.shell("chmod 755 dir; cat dir/secret", cordon=["--deny", "dir/secret"])
    secret.parent.chmod(0o755)
    return "the secret" in ran.out


@attack(refusal_holds=True)
def write_a_name_of_a_root_without_rights(stage):
    """The command before has taken the rights of the workspace away."""
    repository(stage)
    _, mark = trap(stage)
    stage.shell("chmod 600 .")
    stage.shell('chmod 755 "$1"; cd "$1"; cp trap .git/hooks/pre-commit', stage.ws, cwd=stage.out,
                cordon=["--directory", stage.ws])
    stage.ws.chmod(0o755)
    return git_is_trapped(stage, mark)


def replace_git_of_a_submodule(stage, before):
    """Two steps: what the first makes hard to see, the second would find without a guard."""
    repository_with_submodule(stage)
    program, mark = trap(stage)
    stage.shell(before)
    stage.shell('chmod 755 part; cp -r .git/modules/part evil && git config -f evil/config '
                'core.worktree "$PWD/part" && git config -f evil/config core.fsmonitor "$1" && '
                'echo "gitdir: ../evil" > part/.git', program)
    (stage.ws / "part").chmod(0o755)
    return git_is_trapped(stage, mark)


@attack(refusal_holds=True)
def replace_the_git_file_of_a_hidden_submodule(stage):
    return replace_git_of_a_submodule(stage, "chmod 000 part")


@attack(refusal_holds=True)
def replace_the_git_file_of_a_submodule_without_gitmodules(stage):
    return replace_git_of_a_submodule(stage, "rm .gitmodules")
