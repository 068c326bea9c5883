"""git as people use it, in the repository of the workspace, with --git commit: as outside, side by side. (`git = "commit"`
in a profile, and every other face, come to the same profile.)"""
import os
import shutil
import subprocess

import pytest

from harness import CORDON
from tools import GIT_SETTINGS, GIT_WHO, Sides, need, passes, where

SETTINGS = GIT_SETTINGS + """[user]
    name = A
    email = a@example.org
"""

# The workspace is a clone of ../outside/origin.git with three commits, and has the submodule lib.
ORIGIN = ("set -e; cd ../outside; git init -q lib; git -C lib commit -q --allow-empty -m lib; git clone -q --bare lib "
          "lib.git; git init -q first; cd first; git remote add origin $PWD/../first.git; for i in 1 2 3; do echo $i > a; echo $i > b; git add .; git commit -qm $i; "
          "done; git submodule --quiet add ../lib.git lib; git commit -qm sub; cd ..; git clone -q --bare first origin.git; "
          "rm -rf first lib; git clone -q --recurse-submodules origin.git ../ws; git -C origin.git update-ref refs/heads/more main~1; cd ../ws; git branch topic HEAD~2")

# What a day is made of; each begins anew.
DAYS = {
    "commit": "for i in 1 2 3; do echo $i > file$i; git add .; git commit -m $i; done; git commit --amend -m 4; git rm -q b; "
              "git mv a c; git commit -qam moved; git log --stat --format='%h %s %an'; echo x > file1; git commit -m part file1",
    "branches": "git checkout -b more; git branch -m more other; git switch -c next; git branch -d other; git tag -a v1 -m one; "
                "git describe; git tag -d v1; git switch -c follows origin/main; git branch -vv; git branch --unset-upstream",
    "stash": "echo x > a; echo new > new; git stash push -u; git stash list; git status --short; git stash pop; git stash; "
             "git stash apply; git stash drop",
    "merge": "git checkout -q topic; echo t > t; git add t; git commit -qm t; git checkout main; git merge -m merged topic; "
             "git log --graph --format=%s; git reset -q --hard HEAD~1; git merge --squash topic; git commit -qm squashed",
    "conflict": "git checkout -q topic; echo t > a; git commit -qam t; git checkout -q main; git merge topic && exit 1; "
                "git status --short; git merge --abort; git cherry-pick topic && exit 1; echo both > a; git add a; "
                "git -c core.editor=true cherry-pick --continue; git revert --no-edit HEAD; git reflog",
    "rebase": "git checkout -q topic; echo t > t; git add t; git commit -qm t; git rebase main; "
              "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -i HEAD~2; git commit -q --amend -m edited; "
              "git rebase --continue; git rebase --continue; git rebase -q --exec 'git log -1 --format=%s' HEAD~2; git log --format=%s",
    "worktree": "git checkout -q topic; git worktree add -q -b side ./side;"
                "  cd side; echo s > s; git add s; git commit -qm s; git worktree list --porcelain; "
                "cd ..; git worktree lock side; git worktree unlock side; git worktree remove side; git worktree prune; git branch",
    "submodule": "cd lib; git commit -q --allow-empty -m more; cd ..; git add lib; git commit -qm lib; git submodule update; "
                 "git checkout -q HEAD~1; git submodule update; git submodule status; git checkout -q topic; git checkout -q main; "
                 "git submodule foreach 'git log --format=%s -1'",
    "remote": "git fetch; git pull -q --rebase origin more; "
              "git ls-remote; git branch -r; git fetch --prune --depth 1; git fetch --unshallow -q",
    "keeping": "for i in $(seq 9); do echo $i > f$i; git add .; git commit -qm $i; done; git repack -adfq; git gc -q --prune=now; "
               "git fsck --full; git commit-graph write; git multi-pack-index write; git count-objects -v; git pack-refs --all; "
               "git maintenance run --task=gc --quiet; git update-server-info",
    "patches": "git format-patch -q -2 -o $TMPDIR; git checkout -q topic; git am $TMPDIR/*; git diff HEAD~1 > $TMPDIR/diff; "
               "git reset -q --hard HEAD~1; git apply --index $TMPDIR/diff; git notes add -m note; git bisect start -q HEAD HEAD~1; "
               "git bisect reset; git update-ref refs/x/y HEAD; git symbolic-ref HEAD",
}


def workspace(place, script):
    need("git")
    (place.home / ".gitconfig").write_text(SETTINGS)
    shutil.rmtree(place.ws)
    made = subprocess.run(["sh", "-c", f"mkdir ../ws; {script}"], cwd=place.outside, env={**place.env, **GIT_WHO}, check=False,
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-500:]


@pytest.mark.parametrize("day", DAYS)
def test_a_repository_as_outside(place, day):
    workspace(place, ORIGIN)
    sides = Sides(place, loose=[("Device or resource busy", "Directory not empty")], env=GIT_WHO,
                  unlike=["*/index", "*.idx", "*.rev", "*/rr-cache/*"])
    sides.is_alike("set -e\n" + DAYS[day] + "\ngit fsck; git status --short; git log --all --format=%h%d", "--git", "commit")


def test_init_as_outside(place):
    """A folder that is no repository becomes one, with all that git's templates have; and so does one in it."""
    workspace(place, "true")
    sides = Sides(place, env=GIT_WHO, unlike=["*/index"])
    sides.is_alike("set -e; git init; git init -q; echo a > a; git add a; git init sub; rm -rf sub; git commit -m a; git config user.name B; "
                   "git branch -m other; rm a; echo b > b; mv b c; git add -A; git commit -qm b; git gc -q; git fsck; git log; "
                   "mkdir d; mv d e; rmdir e; : > c; truncate -s 9 c; git stash -q; git worktree add -q side; "
                   "git worktree remove side; cat .git/config", "--git", "commit")


def test_a_worktree_of_a_repository_elsewhere(place):
    """Neither lies in the other: what has to be writable is outside of the workspace."""
    workspace(place, "cd ../outside; git init -q main; cd main; git commit -q --allow-empty -m 1; rmdir ../../ws; "
                     "git worktree add -q ../../ws")
    out = passes(place.shell("echo x > x; git add x && git commit -qm 2 && git tag t && git stash list && git log --format=%s",
                             "--git", "commit", env=GIT_WHO))
    assert out == "2\n1\n"
    refused = place.shell("git commit -q --allow-empty -m 3", env=GIT_WHO)
    assert refused.returncode and "Allow it with --git commit," in refused.stderr
    main = place.outside / "main/.git"
    ran = place.shell("cd ../outside/main/.git; echo x > hooks/pre-commit; echo x >> config; echo x > ../file; "
                      "echo x > worktrees/ws/config.worktree; echo x > worktrees/ws/gitdir", "--git", "commit")
    assert ran.stderr.count("Read-only file system") == 5, ran
    assert not (main / "hooks/pre-commit").exists()


@pytest.mark.parametrize("what", ["git init", "git commit --allow-empty -m x", "git tag t"])
def test_the_denial_names_what_helps(place, what):
    """Once, exactly, and nothing wider: and it does help."""
    workspace(place, "true" if "init" in what else ORIGIN)
    (place.ws / "a").write_text("x")
    ran = place.run("--", *what.split(), env=GIT_WHO)
    assert ran.returncode
    assert ran.stderr.count("Allow it with --git commit, or in config.toml under [permissions.NAME]: git = \"commit\"") == 1
    assert "--writable" not in ran.stderr
    passes(place.run("--git", "commit", "--", *what.split(), env=GIT_WHO))


@pytest.mark.parametrize("script", ["echo x > .git/hooks/pre-commit", "git config core.fsmonitor x", "echo x > .git/info/exclude",
                                    "echo /x > .git/objects/info/alternates"])
def test_what_stays_closed_is_not_said_to_open(place, script):
    workspace(place, ORIGIN)
    for options in ([], ["--git", "commit"]):
        ran = place.shell(script, *options)
        assert ran.returncode and "cordon: refused" in ran.stderr
        assert "--git commit" not in ran.stderr
    assert "--writable" not in ran.stderr and "yourself, outside" in ran.stderr


def test_the_words_of_every_face(place):
    workspace(place, ORIGIN)
    place.config('default_permissions = "dev"\n[permissions.dev]\nextends = ":workspace"\ngit = "commit"\n')
    passes(place.run("--", "git", "tag", "by-profile"))
    assert place.run("--git", "read", "--", "git", "tag", "no").returncode
    assert place.json("explain", "--json")["git"] == "commit"
    place.config('default_permissions = "dev"\n[permissions.dev]\nextends = ":workspace"\ngit = "push"\n')
    assert 'git: "push"' in place.run("--", "true").stderr
    place.config("")
    refused = place.run("--git", "commit", "--watch", "off", "--", "true")
    assert refused.returncode == 125 and "watch" in refused.stderr


def test_the_user_s_own_word_stays(place):
    workspace(place, ORIGIN)
    assert place.run("--git", "commit", "--readable", ".git", "--", "git", "tag", "no").returncode


@where("ssh-keygen", "ssh-agent", "ssh-add", wants_account=True)
def test_signing_by_the_agent(place):
    """Where its socket is allowed: the key itself is denied."""
    workspace(place, ORIGIN)
    key, socket = place.home / "key", place.home / "agent"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, text=True)
    place.cleanup.callback(agent.wait)
    place.cleanup.callback(agent.terminate)
    agent.stdout.readline()
    env = {**GIT_WHO, "SSH_AUTH_SOCK": str(socket)}
    subprocess.run(["ssh-add", "-q", key], env={**place.env, **env}, check=True)
    key.unlink()
    sign = ["--", "git", "-c", "gpg.format=ssh", "-c", f"user.signingKey={key}.pub", "commit", "-S", "--allow-empty", "-qm", "signed"]
    passes(place.run("--git", "commit", "--socket", str(socket), *sign, env=env))
    said = passes(place.run("--", "git", "cat-file", "commit", "HEAD"))
    assert "BEGIN SSH SIGNATURE" in said
    assert place.run("--git", "commit", *sign, env=env).returncode


@where("git")
def test_a_repository_on_an_overlay_of_two_file_systems(place):
    """As in a container: each file has a device of its own there, its directory another."""
    script = ('set -e; mount -t tmpfs t "$1"; mkdir "$1/u" "$1/w" "$1/m"; '
              'mount -t overlay o -o "lowerdir=$2,upperdir=$1/u,workdir=$1/w" "$1/m"; mkdir "$1/m/p"; cd "$1/m/p"; '
              '"$3" run --git commit -- sh -ec "git init -q; echo 1 >a; git add a; git commit -qm one; ln a b; git mv a c; git commit -qm two"; '
              'git log --format=%s')
    (place.outside / "over").mkdir()
    (place.outside / "under").mkdir()
    private = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    ran = subprocess.run(["unshare", *private, "sh", "-c", script, "sh", place.outside / "over", place.outside / "under", CORDON],
                         env={**place.env, **GIT_WHO}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "two\none\n"), ran
