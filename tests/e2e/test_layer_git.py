"""Commits in a change layer (--layer-git), and how they come out of it: as branches, whole, and nothing else of a git
directory. What somebody does who may write anything there is tried in tests/unit/layer/test_commits.c."""
import json
import subprocess

import pytest
from harness import let_age


@pytest.fixture
def repo(place):
    def git(*words, check=True):
        ran = subprocess.run(["git", *words], cwd=place.ws, env=place.env, capture_output=True, text=True)
        assert not check or ran.returncode == 0, ran
        return ran.stdout.strip()

    git("config", "--global", "user.name", "somebody")
    git("config", "--global", "user.email", "somebody@example.org")
    git("init", "-q", "-b", "main")
    (place.ws / "file").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    let_age(place.ws)
    place.git = git
    return place


def inside(place, script, *options):
    return place.shell(script, "--layer=work", "--layer-git", "--at-end", "keep", "-q", *options)


def test_commits_become_a_branch(repo):
    ran = inside(repo, "echo 2 > file && git commit -qam second && git switch -qc topic && git commit -q --allow-empty -m t && "
                       "git switch -q main && git log --format=%s | head -1")
    assert ran.returncode == 0 and ran.stdout == "second\n", ran
    assert repo.git("log", "--format=%s", "--all") == "first" and (repo.ws / "file").read_text() == "1\n"
    # the next command goes on there
    assert inside(repo, "git log --format=%s -1 && echo 3 > file && git commit -qam third").stdout == "second\n"
    ran = repo.cordon("changes", "work")
    assert "  changed  file" in ran.stdout and ".git" not in ran.stdout and "commits  main" in ran.stdout, ran
    dry = repo.cordon("accept", "work", "--commits", "--dry-run")
    assert dry.returncode == 0 and "would be accepted: commits of main, as the branch cordon/work/main" in dry.stdout
    assert repo.git("branch", "--list", "cordon/*") == ""
    ran = repo.cordon("accept", "work", "--commits")
    assert ran.returncode == 0 and f"  to look at (2): git -C {repo.ws} log -p main..cordon/work/main" in ran.stdout, ran
    assert repo.git("log", "--format=%s", "main..cordon/work/main") == "third\nsecond"
    assert repo.git("status", "--porcelain") == "" and repo.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert json.loads(repo.cordon("accept", "work", "--commits", "--json").stdout)["commits"]["branches"]
    # merged, the files in the layer are as the real ones
    repo.git("merge", "-q", "cordon/work/main")
    assert json.loads(repo.cordon("changes", "work", "--json").stdout)["changes"] == []
    repo.git("fsck", "--strict")


def test_nothing_else_comes_out(repo):
    """The guard holds hooks and configuration in the layer as it does outside; files by name are not taken either."""
    ran = inside(repo, "echo x > .git/hooks/pre-commit; git config core.fsmonitor /bin/false; "
                       "echo 2 > file; git commit -qam second; test ! -e .git/hooks/pre-commit")
    assert ran.returncode == 0, ran

    def of_git():
        return {path: path.read_bytes() for path in (repo.ws / ".git").rglob("*")
                if path.is_file() and "objects" not in path.parts and "cordon" not in path.parts}

    before = of_git()
    for path in (".git", ".git/refs/heads/main", ".git/index"):
        ran = repo.cordon("accept", "work", path)
        assert ran.returncode in (0, 3) and "accepted" not in ran.stdout.replace("nothing accepted", ""), ran
    ran = repo.cordon("accept", "work", "--all", "--marked")
    assert ran.returncode == 0 and (repo.ws / "file").read_text() == "2\n", ran
    assert of_git() == before  # but objects, and a branch of ours
    assert repo.cordon("accept", "work", "--commits").returncode == 0
    assert repo.git("log", "--format=%s", "-1", "cordon/work/main") == "second"


def test_what_does_not_go_together(repo):
    ran = repo.shell("true", "--layer=other", "--git", "commit")
    assert ran.returncode == 125 and "--layer-git" in ran.stderr, ran
    assert repo.shell("true", "--layer=plain", "--at-end", "keep").returncode == 0
    assert repo.shell("echo 2 > file", "--layer=plain", "--at-end", "keep").returncode == 0
    ran = repo.cordon("accept", "plain", "--commits")
    assert ran.returncode == 125 and "--layer-git" in ran.stderr, ran


def test_dropped_with_the_rest(repo):
    assert inside(repo, "echo 2 > file; git commit -qam second").returncode == 0
    assert repo.cordon("drop", "work", "--all").returncode == 0
    assert inside(repo, "git log --format=%s").stdout == "first\n"


def test_nothing_of_a_layer_runs_outside(repo):
    repo.config('prefix_rule(["touch"], decision = "allow")\n', "home/.config/cordon/rules/default.rules")
    for options, remedy in (
        (["--sandbox", "disabled"], "leave the layer out"),
        (["--sandbox", "landlock"], "leave the layer out"),
        (["--profile", "danger-full-access"], "leave the layer out"),
        (["--ask-for-approval", "on-request"], "without a layer"),
    ):
        ran = repo.run("--layer=w", *options, "--", "touch", "made")
        assert ran.returncode in (125, 126) and remedy in ran.stderr, (options, ran)
        assert not (repo.ws / "made").exists()


def test_explained(repo):
    found = repo.json("explain", "--layer", "--layer-git", "--json")
    assert found["layer"] == {"name": None, "git": True, "in_memory": False,
                              "roots": [{"path": str(repo.ws), "direct": False, "near": found["layer"]["roots"][0]["near"]}]}
    assert {"op": "layer", "path": str(repo.ws)} in found["plan"] and found["git"] == "commit"
    assert f"         {repo.ws}  (" in repo.cordon("explain", "--layer").stdout
    assert repo.json("explain", "--json")["layer"] is None
    assert str(repo.ws) not in repo.cordon("layers").stdout
    state = repo.env.get("XDG_STATE_HOME", repo.home / ".local/state")
    assert repo.cordon("explain", "--path", f"{state}/cordon/layers").returncode == 1
