"""git inside: reading everywhere, committing only where `.git` was opened again."""
import pytest

from tools import GIT_SETTINGS, GIT_WHO, Sides, need, passes

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
    place.env.update(GIT_WHO)
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


# What a day with a repository is made of; each begins in a new folder, in which `work` is a clone of
# `origin.git` with three commits.
DAYS = {
    "clone": "git clone -q work second; git clone -q --bare work bare.git; git clone -q --shared work "
             "third; git clone -q --depth 1 file://$PWD/work shallow; git -C shallow log --oneline",
    "commit": "cd work; for i in 1 2 3; do echo $i > file$i; git add .; git commit -m $i; done; "
              "git commit --amend -m 4; git log --stat --format='%h %s %an %cd'",
    "branches": "cd work; git checkout -b topic; git branch -m topic other; git switch -c more; "
                "git branch -d other; git branch -a; git tag -a v1 -m one; git describe; git tag -d v1",
    "merge": "cd work; git checkout -qb topic; echo t > t; git add t; git commit -m t; "
             "git checkout main; echo m > m; git add m; git commit -m m; git merge -m merged topic; "
             "git log --graph --format=%s",
    "conflict": "cd work; git checkout -qb topic; echo t > a; git commit -qam t; git checkout -q main; "
                "echo m > a; git commit -qam m; git merge topic && exit 1; git status --short; "
                "echo both > a; git add a; git commit -qm solved; git rerere; git log --format=%s -1",
    "rebase": "cd work; git checkout -qb topic HEAD~2; echo t > t; git add t; git commit -qm t; "
              "git rebase main; git log --format='%h %s'; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' "
              "git rebase -i HEAD~2; git rebase --continue; git rebase --continue; git status",
    "cherry-pick": "cd work; git checkout -qb topic HEAD~2; echo c > c; git add c; git commit -qm c; "
                   "git checkout -q main; git cherry-pick topic; git revert --no-edit HEAD; git log "
                   "--format=%s; git reset -q --hard HEAD~2; git reflog",
    "bisect": "cd work; for i in $(seq 20); do echo $i > n; git add n; git commit -qm n$i; done; "
              "git bisect start HEAD HEAD~19; git bisect run sh -c 'test $(cat n) -lt 7'; git bisect reset",
    "stash": "cd work; echo x > a; echo new > new; git stash push -u; git stash list; git status --short; "
             "git stash pop; git stash; git stash apply; git stash drop",
    "worktree": "cd work; git worktree add -b side ../side; cd ../side; echo s > s; git add s; "
                "git commit -qm s; git worktree list --porcelain; cd ../work; git worktree move ../side "
                "../moved; git worktree remove ../moved; git worktree prune; git branch",
    "submodule": "git init -q outer; cd outer; git submodule add ../origin.git lib; git commit -qm sub; "
                 "cd ..; git clone -q --recurse-submodules outer again; cd again; git submodule status; "
                 "git submodule foreach 'git log --format=%s -1'; git submodule deinit -f lib; "
                 "git submodule update --init; git mv lib moved; git commit -qm moved; ls -a moved",
    "remote": "cd work; echo p > p; git add p; git commit -qm p; git push; cd ..; git clone -q origin.git "
              "second; cd second; echo q > q; git add q; git commit -qm q; git push origin HEAD:topic; "
              "cd ../work; git fetch; git pull --rebase origin topic; git remote -v; git remote prune "
              "origin; git push origin :topic; git ls-remote",
    "patches": "cd work; git format-patch -2 -o ../patches; git checkout -qb topic HEAD~2; git am "
               "../patches/*; git diff HEAD~1 > ../diff; git reset -q --hard HEAD~1; git apply --index "
               "../diff; git commit -qm applied; git range-diff main~2..main topic~2..topic",
    "keeping": "cd work; for i in $(seq 30); do echo $i > f$i; git add .; git commit -qm $i; done; "
               "git repack -adfq; git gc -q --prune=now; git fsck --full; git commit-graph write; "
               "git multi-pack-index write; git count-objects -v; git pack-refs --all; git verify-pack "
               ".git/objects/pack/*.idx; git maintenance run --task=gc --quiet",
    "bundle": "cd work; git bundle create ../all.bundle --all; git bundle verify ../all.bundle; cd ..; "
              "git clone -q all.bundle copy; cd copy; git archive --format=tar -o ../a.tar HEAD; "
              "git archive HEAD | tar -t",
    "history": "cd work; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --tree-filter 'echo x > x' "
               "HEAD~1.. >/dev/null; git blame a; git log -S1 --format=%s; git shortlog -s HEAD; "
               "git fast-export --all > ../export; git init -q ../in; cd ../in; git fast-import --quiet "
               "< ../export; git log main --format=%s",
    "hooks": "cd work; for h in pre-commit commit-msg post-commit; do printf '#!/bin/sh\\necho %s\\n' $h "
             "> .git/hooks/$h; chmod +x .git/hooks/$h; done; echo h > h; git add h; git commit -m h; "
             "git config core.hooksPath hooks; git config --list --local",
    "files": "cd work; git mv a moved; git rm -q b; mkdir -p deep/er; echo d > deep/er/d; ln -s d "
             "deep/er/link; chmod +x moved; git add -A; git commit -m files; git ls-files -s; git clean "
             "-fdx; echo ignored > .gitignore; git check-ignore ignored; git grep -n d; git sparse-checkout "
             "set deep; ls; git sparse-checkout disable; git update-index --chmod=-x moved; git diff --raw",
    "shared": "git init -q --shared=group shared; git init -q --bare --shared=all all.git; cd work; git push -q "
              "../all.git main; git config core.sharedRepository group; echo s > s; git add s; git commit -qm s; "
              "git -C ../shared fetch -q ../work; umask 077; git clone -q -c core.sharedRepository=0660 . ../third",
    "notes": "cd work; git notes add -m note; git log -1 --format=%N; git replace --graft HEAD HEAD~2; "
             "git log --format=%s; git replace -d $(git replace); git symbolic-ref HEAD; git update-ref "
             "refs/x/y HEAD; git for-each-ref; git update-ref -d refs/x/y; git hash-object -w a; git "
             "cat-file -p HEAD; echo commit | git cat-file --batch-check; git var GIT_AUTHOR_IDENT",
}

ORIGIN = ("git init -q first; cd first; for i in 1 2 3; do echo $i > a; echo $i > b; git add .; "
          "git commit -qm $i; done; cd ..; git clone -q --bare first origin.git; "
          "git clone -q origin.git work; rm -rf first; ")


@pytest.mark.parametrize("day", DAYS)
def test_a_nested_repository_as_outside(place, day):
    """In a folder of the workspace a repository may be made, and all of git works in it."""
    need("git")
    (place.home / ".gitconfig").write_text(GIT_SETTINGS)
    sides = Sides(place, env=GIT_WHO, unlike=["*/index", "*.idx", "*/rerere*", "*/rr-cache/*", "*.rev"])
    sides.is_alike("set -e\n" + ORIGIN + DAYS[day])
    assert not (place.ws / ".git").exists()


def test_all_of_git_in_a_reopened_repository(repository):
    """The repository of the workspace itself, where it was opened again."""
    sides = Sides(repository, env=GIT_WHO, unlike=["*/index"])
    sides.is_alike("git add -A; git commit -m 2; git checkout -b topic; git stash list; echo 3 > file; "
                   "git stash; git stash pop; git commit -am 3; git checkout main; git merge topic; "
                   "git branch -d topic; git rebase HEAD~1; git gc -q; git fsck; git log --stat",
                   "--writable", ".git", "--writable", ".git/config", "--writable", ".git/info")
