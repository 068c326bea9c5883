"""Where the repository is open for commits (--git commit): whatever a command makes of it, git outside runs nothing
of the command's, and no other repository is written."""

from catalogue import attack
from cases.names import git_is_trapped, repository, repository_with_submodule, trap
from cases.repository import CONFIG, is_repository

# Writes to $1 an index with these entries (mode, id of the object, path), however little git would take them.
INDEX = """import hashlib, struct, sys
made = b"DIRC" + struct.pack(">II", 2, (len(sys.argv) - 2) // 3)
for mode, sha, path in zip(*[iter(sys.argv[2:])] * 3):
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, int(mode, 8), 0, 0, 0) + bytes.fromhex(sha)
    entry += struct.pack(">H", len(path)) + path.encode()
    made += entry + bytes(8 - len(entry) % 8)
open(sys.argv[1], "wb").write(made + hashlib.sha1(made).digest())
"""
COMMIT = ("--git", "commit")
WHO = ("export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
       "GIT_COMMITTER_EMAIL=a@b\n")
MONITOR = 'evil() { printf "[core]\\n\\tfsmonitor = %s\\n" "$1"; }\n'


def committed(stage):
    """A repository with a commit; the program of the attack, and its mark."""
    repository(stage)
    stage.git("commit", "-q", "-m", "first")
    return trap(stage)


def try_all(stage, script, *words, cwd=None):
    stage.commits = True
    stage.shell(WHO + MONITOR + script, *words, cordon=COMMIT, cwd=cwd)


@attack()
def a_hook(stage):
    _, mark = committed(stage)
    try_all(stage, "git commit -q --allow-empty -m mine; cp trap .git/hooks/pre-commit; cp trap new; "
                   "mv new .git/hooks/pre-commit; mkdir h; cp trap h/pre-commit; mv .git/hooks .git/old; mv h .git/hooks; "
                   "ln trap .git/hooks/post-index-change; ln -s ../../trap .git/hooks/post-commit")
    return git_is_trapped(stage, mark)


@attack()
def a_monitor_in_the_configuration(stage):
    program, mark = committed(stage)
    try_all(stage, 'evil "$1" >> .git/config; git config core.fsmonitor "$1"; evil "$1" > .git/config.lock; '
                   "mv .git/config.lock .git/config; evil \"$1\" > c; cp c .git/config; rm -f .git/config; mv c .git/config", program)
    return git_is_trapped(stage, mark)


@attack()
def a_configuration_that_is_written_after_it_was_moved(stage):
    """By the descriptor of the lock; and one that is rewritten all the time meanwhile."""
    program, mark = committed(stage)
    try_all(stage, 'cat .git/config > plain; (for i in $(seq 100); do cat plain > .git/config.lock; '
                   'evil "$1" > .git/config.lock; done) 2>/dev/null & '
                   'for i in $(seq 50); do mv .git/config.lock .git/config; done 2>/dev/null; wait; '
                   'exec 9<>.git/config.lock; cat plain >&9; mv .git/config.lock .git/config; evil "$1" >&9', program)
    return git_is_trapped(stage, mark)


@attack()
def another_name_for_the_configuration(stage):
    program, mark = committed(stage)
    try_all(stage, 'ln .git/config mine && evil "$1" >> mine; mv .git/config mine && evil "$1" >> mine && mv mine .git/config; '
                   'mv .git old && evil "$1" >> old/config; mv old .git; '
                   "ln .git/config .git/MINE && evil \"$1\" >> .git/MINE", program)
    return git_is_trapped(stage, mark)


@attack()
def a_remote_that_is_a_folder(stage):
    """Whose hooks `git push` runs."""
    _, mark = committed(stage)
    stage.git("branch", "-M", "main")
    try_all(stage, "git init -q --bare evil; cp trap evil/hooks/pre-receive; git config branch.main.remote ./evil; "
                   "git config branch.main.merge refs/heads/main; printf '[remote \"./evil\"]\\n' > c; cat .git/config >> c; "
                   "mv c .git/config; git config branch.main.remote ./evil; git config remote.origin.url ./evil; "
                   "git config branch.main.remote origin")
    stage.git("push", "-q")
    return mark.exists()


@attack()
def a_repository_of_its_own_as_a_submodule(stage):
    """git enters it at the next `git status`, and a prompt asks for that by itself."""
    program, mark = committed(stage)
    try_all(stage, 'git init -q sub; git -C sub commit -q --allow-empty -m x; evil "$1" >> sub/.git/config; git add sub; '
                   "git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; "
                   "git update-index --split-index; git commit -qm sub; rm .git/index; git add sub", program)
    return git_is_trapped(stage, mark)


@attack()
def an_index_that_is_written_in_place(stage):
    program, mark = committed(stage)
    try_all(stage, 'git init -q sub; git -C sub commit -q --allow-empty -m x; evil "$1" >> sub/.git/config; '
                   'cp .git/index new; GIT_INDEX_FILE=new git update-index --add --cacheinfo '
                   '160000,$(git -C sub rev-parse HEAD),sub; cat new > .git/index; cp new .git/index; '
                   'exec 9<>.git/index.lock; cat .git/index >&9; mv .git/index.lock .git/index; '
                   'cat new > /proc/self/fd/9; mv new .git/index', program)
    return git_is_trapped(stage, mark)


@attack()
def an_index_that_names_a_hook(stage):
    """git writes what the index names, and looks at the names only when one is added."""
    _, mark = committed(stage)
    stage.file("ws/index.py", INDEX)
    try_all(stage, "id=$(git hash-object -w trap); n=.git/index.lock; python3 index.py $n 100755 $id .git/hooks/pre-commit; "
                   "mv $n .git/index; git worktree add -q side; rm .git/worktrees/side/index; "
                   "python3 index.py $n 100755 $id ../../.git/hooks/pre-commit; mv $n .git/worktrees/side/index")
    stage.git("checkout", ".")
    return git_is_trapped(stage, mark)


@attack()
def an_index_that_names_what_is_outside(stage):
    committed(stage)
    stage.file("ws/index.py", INDEX)
    try_all(stage, "id=$(git hash-object -w trap); python3 index.py new 100755 $id ../outside/made; "
                   "mv new .git/index.lock; mv .git/index.lock .git/index")
    stage.git("checkout", ".")
    return (stage.out / "made").exists()


@attack()
def the_lock_of_a_git_outside(stage):
    """What is in it takes the place of the configuration a moment later: it is written to, gets another name, or
    another file its name."""
    program, mark = committed(stage)
    lock = stage.file("ws/.git/config.lock", (stage.ws / ".git/config").read_text())
    try_all(stage, 'cp .git/config new; evil "$1" >> new; evil "$1" >> .git/config.lock; cp new .git/config.lock; '
                   'ln .git/config.lock mine && evil "$1" >> mine; mv .git/config.lock away; cp new .git/config.lock; '
                   'rm -f .git/config.lock; cp new .git/config.lock; cp new other; mv -f other .git/config.lock', program)
    if lock.exists():
        lock.rename(stage.ws / ".git/config")
    return git_is_trapped(stage, mark)


@attack()
def a_head_that_cannot_be_read(stage):
    """Then git takes the workspace itself for the repository. The lock's mode changes while it is moved."""
    program, _ = committed(stage)
    try_all(stage, f'mkdir objects refs; echo ref: refs/heads/x > HEAD; {CONFIG}; cp .git/HEAD plain; '
                   '(until [ -e enough ]; do chmod 0 lock; chmod 600 lock; done) 2>/dev/null & '
                   'for i in $(seq 30); do cp plain lock; mv -f lock .git/HEAD; done 2>/dev/null; : > enough; wait; '
                   'cp plain lock; chmod 0 lock; mv -f lock .git/HEAD', program)
    return not (stage.ws / ".git/HEAD").stat().st_mode & 0o400


@attack()
def what_others_may_write(stage):
    """A configuration that another user of the host can change."""
    committed(stage)
    try_all(stage, "umask 0; for f in config HEAD index; do cp .git/$f lock; chmod 666 lock; mv -f lock .git/$f; done")
    return [name for name in ("config", "HEAD", "index") if (stage.ws / ".git" / name).stat().st_mode & 0o002]


@attack()
def a_workspace_that_is_a_repository_when_git_is_none(stage):
    program, _ = committed(stage)
    try_all(stage, f'mkdir objects refs; echo ref: refs/heads/x > HEAD; {CONFIG}; echo none > .git/HEAD; '
                   "echo none > .git/HEAD.lock; mv .git/HEAD.lock .git/HEAD; chmod 0 .git/HEAD; rm .git/HEAD; "
                   "chmod 0 .git/objects; mv .git/refs .git/old; rm -rf .git/refs", program)
    return is_repository(stage)


@attack()
def the_configuration_of_a_new_worktree(stage):
    program, _ = committed(stage)
    try_all(stage, 'git worktree add -q side; evil "$1" > .git/worktrees/side/config.worktree; evil "$1" > c; '
                   "mv c .git/worktrees/side/config.worktree; mkdir w; evil \"$1\" > w/config.worktree; "
                   "mv .git/worktrees/side .git/worktrees/old; mv w .git/worktrees/side", program)
    return (stage.ws / ".git/worktrees/side/config.worktree").exists()


@attack()
def a_new_worktree_of_another_repository(stage):
    """`git worktree remove` asks for the status in it."""
    program, mark = committed(stage)
    try_all(stage, 'git worktree add -q side; cp -r .git evil; evil "$1" >> evil/config; '
                   'echo "$PWD/evil" > .git/worktrees/side/commondir; rm .git/worktrees/side/commondir; '
                   'echo "$PWD/evil" > .git/worktrees/side/commondir; echo "$PWD/evil" > c; mv c .git/worktrees/side/commondir',
            program)
    stage.git("worktree", "remove", "side")
    return mark.exists()


@attack()
def the_git_directory_of_a_submodule(stage):
    repository_with_submodule(stage)
    program, mark = trap(stage)
    try_all(stage, 'd=.git/modules/part; evil "$1" >> $d/config; evil "$1" > c; mv c $d/config; cp trap $d/hooks/post-index-change; '
                   "mkdir -p .git/modules/more/hooks; cp -r $d .git/modules/more; echo $PWD/evil > $d/commondir", program)
    return git_is_trapped(stage, mark) or (stage.ws / ".git/modules/more").exists()


# What takes the place of what was `$2`.
PLANTED = ('rm -rf "$2/.git" "$2"; git init -q "$2"; git -C "$2" commit -q --allow-empty -m x; evil "$1" >> "$2/.git/config"; '
           'id=$(git -C "$2" rev-parse HEAD); ')


@attack()
def a_submodule_that_is_said_to_be_a_worktree(stage):
    """A linked worktree may go; and what is one the command says itself, by a directory for it."""
    repository_with_submodule(stage)
    program, mark = trap(stage)
    try_all(stage, "mkdir -p .git/worktrees/x; echo $PWD/part/.git > .git/worktrees/x/gitdir; "
                   "echo ../.. > .git/worktrees/x/commondir; cp .git/HEAD .git/worktrees/x/HEAD")
    try_all(stage, PLANTED, program, "part")
    return git_is_trapped(stage, mark)


@attack()
def a_worktree_that_is_made_a_submodule(stage):
    program, mark = committed(stage)
    stage.git("worktree", "add", "-q", "side")
    try_all(stage, "git add side; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),side; " + PLANTED, program, "side")
    return git_is_trapped(stage, mark)


@attack()
def a_worktree_that_is_a_submodule(stage):
    """Since somebody has said `git add .` outside."""
    program, mark = committed(stage)
    stage.git("worktree", "add", "-q", "side")
    stage.git("add", "side")
    try_all(stage, PLANTED, program, "side")
    return git_is_trapped(stage, mark)


@attack()
def the_first_index_of_a_worktree(stage):
    """It is not the command's because it is missing."""
    program, mark = committed(stage)
    side = stage.base / "side"
    stage.git("worktree", "add", "-q", "--no-checkout", str(side))
    try_all(stage, PLANTED + "git update-index --add --cacheinfo 160000,$id,sub", program, "sub", cwd=side)
    stage.git("status", cwd=side)
    return mark.exists()


@attack()
def a_repository_that_is_protected_as_a_worktree(stage):
    """Only when the command has made of it what it wanted."""
    program, mark = committed(stage)
    try_all(stage, PLANTED + "mkdir -p .git/worktrees/x; echo $PWD/sub/.git > .git/worktrees/x/gitdir; "
                             "cp .git/HEAD .git/worktrees/x/HEAD", program, "sub")
    try_all(stage, "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub")
    return git_is_trapped(stage, mark)


@attack()
def an_index_in_the_place_of_a_split_one(stage):
    """Which cannot be read, and so says nothing about what was a submodule."""
    program, mark = committed(stage)
    stage.git("update-index", "--split-index")
    try_all(stage, PLANTED + "GIT_INDEX_FILE=new git update-index --add --cacheinfo 160000,$id,sub; mv new .git/index", program, "sub")
    return git_is_trapped(stage, mark)


@attack()
def the_objects_of_a_clone(stage):
    """They are the same files: `git clone` of a folder makes hard links."""
    committed(stage)
    clone = stage.out / "clone"
    assert stage.git("clone", "-q", str(stage.ws), str(clone), cwd=stage.out).returncode == 0
    objects = {path: path.read_bytes() for path in clone.glob(".git/objects/??/*")}
    try_all(stage, "for o in .git/objects/??/*; do chmod u+w $o; echo 1 > $o; truncate -s 1 $o; ln $o linked; mv $o moved; "
                   "chmod u+w linked moved; echo 1 > linked; echo 1 > moved; rm -f linked moved; done; rm -rf .git/objects/??")
    return [path for path, was in objects.items() if path.read_bytes() != was]


@attack()
def what_git_is_led_to(stage):
    """Attributes, grafts, the objects of others, a link among the branches."""
    committed(stage)
    wanted = ["info/attributes", "info/grafts", "objects/info/alternates", "commondir", "refs/heads/link", "fsmonitor--daemon.ipc"]
    try_all(stage, "g=.git; mkdir -p $g/info $g/objects/info; for f in info/attributes info/grafts commondir fsmonitor--daemon.ipc; do "
                   "echo x > $g/$f; done; echo /var/tmp > $g/objects/info/alternates; "
                   "ln -s /var/tmp $g/refs/heads/link; ln -s /var/tmp l; mv l $g/refs/heads/link")
    return [name for name in wanted if (stage.ws / ".git" / name).is_symlink() or
            ((stage.ws / ".git" / name).exists())]


@attack()
def a_planted_git_file(stage):
    """In a folder that a person makes a workspace of later: it leads to a repository that has nothing to do with it."""
    repository(stage, "outside/other")
    inner = stage.ws / "inner"
    stage.file("ws/inner/.git", f"gitdir: {stage.out}/other/.git\n")
    try_all(stage, "git commit -q --allow-empty -m mine", cwd=inner)
    return stage.git("log", "-1", cwd=stage.out / "other").returncode == 0


@attack()
def a_planted_worktree(stage):
    """Its git directory leads back, but is no part of the repository that it leads on to."""
    repository(stage, "outside/other")
    inner = stage.ws / "inner"
    stage.file("ws/inner/.git", f"gitdir: {stage.ws}/fake/worktrees/x\n")
    stage.file("ws/fake/worktrees/x/gitdir", f"{inner}/.git\n")
    stage.file("ws/fake/worktrees/x/commondir", f"{stage.out}/other/.git\n")
    stage.file("ws/fake/worktrees/x/HEAD", "ref: refs/heads/master\n")
    try_all(stage, "git commit -q --allow-empty -m mine", cwd=inner)
    return stage.git("rev-parse", "master", cwd=stage.out / "other").returncode == 0


@attack()
def a_new_repository_that_is_trapped(stage):
    """`git init` in the workspace itself."""
    fresh = stage.base / "fresh"
    fresh.mkdir()
    program, mark = trap(stage)
    try_all(stage, 'git init -q; cp "$1" trap; evil "$1" >> .git/config; exec 9<>.git/config; evil "$1" >&9; '
                   'git config core.fsmonitor "$1"; ln .git/config mine && evil "$1" >> mine; '
                   "mv .git/config theirs && evil \"$1\" >> theirs; mv theirs .git/config; cp trap .git/hooks/pre-commit; "
                   "cp trap .git/hooks/x.sample; mv .git/hooks/x.sample .git/hooks/pre-commit; mkdir .git/hooks; mv .git old; "
                   'evil "$1" >> old/config; mv old .git', program, cwd=fresh)
    stage.git("status", cwd=fresh)
    stage.git("commit", "-q", "--allow-empty", "-m", "message", cwd=fresh)
    return mark.exists()


@attack()
def a_new_repository_that_is_none_any_more(stage):
    fresh = stage.base / "fresh"
    fresh.mkdir()
    program, _ = trap(stage)
    try_all(stage, f'git init -q; mkdir objects refs; {CONFIG}; truncate -s 0 .git/config; truncate -s 0 .git/HEAD; '
                   "echo none > .git/HEAD; rm -rf .git; echo ref: refs/heads/x > HEAD", program, cwd=fresh)
    return is_repository(stage, fresh)


@attack()
def a_workspace_that_becomes_a_repository_itself(stage):
    fresh = stage.base / "fresh"
    fresh.mkdir()
    program, _ = trap(stage)
    try_all(stage, f"mkdir objects refs; {CONFIG}; echo ref: refs/heads/x > HEAD", program, cwd=fresh)
    return all((fresh / part).exists() for part in ("HEAD", "objects", "refs"))


@attack()
def a_new_repository_that_cannot_be_read(stage):
    """Landlock knows of no modes."""
    fresh = stage.base / "fresh"
    fresh.mkdir()
    program, _ = trap(stage)
    try_all(stage, f'git init -q; chmod 0 .git/HEAD .git/refs; mkdir objects refs; {CONFIG}; echo ref: refs/heads/x > HEAD; '
                   "touch HEAD; exec 9<>HEAD; truncate -s 0 HEAD; git init -q --bare b; cp b/HEAD HEAD; mv b/HEAD HEAD", program, cwd=fresh)
    return all((fresh / part).exists() for part in ("HEAD", "objects", "refs"))


@attack()
def a_new_repository_out_of_a_folder(stage):
    """What is there already is moved to where `git init` would make it."""
    fresh = stage.base / "fresh"
    fresh.mkdir()
    program, mark = trap(stage)
    try_all(stage, 'git init -q sub; evil "$1" >> sub/.git/config; mv sub/.git .git; cp -r sub/.git .git; ln -s sub/.git .git; '
                   "echo gitdir: sub/.git > .git", program, cwd=fresh)
    stage.git("status", cwd=fresh)
    return mark.exists()
