"""git inside: reading everywhere, committing only where `.git` was opened again."""
import pytest

from tools import need, passes

IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org"}

OPEN_AGAIN = """
default_permissions = "dev"
[permissions.dev]
extends = ":workspace"
[permissions.dev.filesystem]
":workspace_roots/.git" = "write"
"""


@pytest.fixture
def repository(place):
    """A place whose workspace is a repository with one commit and one change."""
    need("git")
    place.env.update(IDENTITY)
    passes(place.run("--sandbox", "disabled", "--", "git", "init", "-q", "-b", "main", "."))
    (place.ws / "file").write_text("one\n")
    passes(place.shell("git add file && git commit -qm first", "--sandbox", "disabled"))
    (place.ws / "file").write_text("two\n")
    (place.ws / "new").write_text("new\n")
    return place


def test_status_and_diff(repository):
    out = passes(repository.shell("git status --short && git diff && git stash list"))
    assert out.startswith(" M file\n?? new\n")
    assert "-one\n+two\n" in out


@pytest.mark.no_userns
def test_log_in_read_only(repository):
    out = passes(repository.run("-p", "read-only", "--", "git", "log", "--format=%an %s", "--stat"))
    assert out.startswith("A first\n")
    assert "1 file changed" in out


def test_commit_is_refused(repository):
    ran = repository.shell("git commit -qam second")
    assert ran.returncode == 128
    assert "Unable to create" in ran.stderr and "index.lock" in ran.stderr
    assert passes(repository.run("--", "git", "log", "--format=%s")) == "first\n"


@pytest.mark.parametrize("how", ["option", "config"])
def test_commit_with_git_reopened(repository, how):
    options = ["--writable", ".git"]
    if how == "config":
        repository.config(OPEN_AGAIN)
        options = []
    out = passes(repository.shell("git add -A && git commit -qm second && git log --format=%s",
                                  *options))
    assert out == "second\nfirst\n"
    committed = passes(repository.run("--", "git", "show", "--format=", "--name-only"))
    assert committed == "file\nnew\n"  # and nothing of ours
    passes(repository.shell("git checkout -qb topic && git reset -q --hard HEAD~ && git gc -q && "
                            "git fsck && git worktree list", *options))
    assert (repository.ws / "file").read_text() == "one\n"
    log = repository.run("--sandbox", "disabled", "--", "git", "log", "--format=%s", "main")
    assert passes(log) == "second\nfirst\n"


def test_hooks_stay_closed_in_a_reopened_repository(repository):
    repository.config(OPEN_AGAIN + '":workspace_roots/.git/hooks" = "read"\n')
    ran = repository.shell("git commit -qam second && echo committed; "
                           "echo exit >.git/hooks/pre-commit")
    assert ran.stdout == "committed\n"
    assert "Read-only file system" in ran.stderr
    assert not (repository.ws / ".git/hooks/pre-commit").exists()


def test_clone_inside(repository):
    out = passes(repository.shell(
        "git clone -q . $TMPDIR/copy && cd $TMPDIR/copy && echo 3 >file && git commit -qam third "
        "&& git log --format=%s"))
    assert out == "third\nfirst\n"


def test_a_folder_of_a_repository_above(repository):
    """What keeps .git out of the workspace must not hide the repository above it."""
    sub = repository.ws / "sub"
    sub.mkdir()
    (sub / "inner").write_text("x")
    out = passes(repository.run("--", "git", "status", "--short", cwd=sub))
    assert " M ../file" in out or " M file" in out
    assert not (sub / ".git").exists()
