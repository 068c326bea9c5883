"""Becoming a repository: where there is no .git, git takes a folder with HEAD, objects and refs (or
HEAD and a commondir that leads to them) for one, and obeys its configuration. Each of the names alone
is anybody's; a folder in it may become one (git init sub)."""

import itertools
import os
import subprocess

from cases.names import git_is_trapped, trap
from catalogue import attack

MAKE = {
    "HEAD": "echo 'ref: refs/heads/main' > HEAD",
    "objects": "mkdir objects",
    "refs": "mkdir refs",
    "commondir": "git init -q --bare part && echo part > commondir",
}
PREPARE = "git init -q --bare part && rm -rf part/hooks part/branches part/info"
CONFIG = ('git config -f config core.repositoryformatversion 0; git config -f config core.bare false;'
          'git config -f config core.worktree "$PWD"; git config -f config core.fsmonitor "$1"')


def is_repository(stage, folder=None):
    """What git says, from outside."""
    folder = folder or stage.ws
    env = {**stage.env, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    said = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=folder, env=env, check=False,
                          capture_output=True, text=True)
    return said.returncode == 0 and said.stdout.strip() in (".", str(folder))


def register(name, script, folder="ws", prepared=(), before="true"):
    def play(stage):
        place = stage.base / folder
        place.mkdir(exist_ok=True)
        for made in (before, *(MAKE[part] for part in prepared)):
            subprocess.run(["/bin/sh", "-c", made], cwd=place, check=True)
        root = ["--writable", place] if folder == "extra" else []
        stage.shell(f'cd "$1" && {{ {script}; }}', place, cordon=root)
        return is_repository(stage, place)
    play.__name__ = name
    attack(on_guard=True)(play)


for order in itertools.permutations(("HEAD", "objects", "refs")):
    register("by_" + "_".join(order).lower(), "; ".join(MAKE[part] for part in order))
    register("by_moving_" + "_".join(order).lower(),
             "; ".join([PREPARE, *(f"mv part/{part} ." for part in order)]))
for last in ("HEAD", "objects", "refs"):
    others = [part for part in ("HEAD", "objects", "refs") if part != last]
    register(f"with_{last.lower()}_missing_only", MAKE[last], prepared=others)
    register(f"by_moving_a_missing_{last.lower()}", f"{PREPARE}; mv part/{last} .",
             prepared=others)
    register(f"by_exchanging_{last.lower()}", f"{PREPARE}; mkdir old; "
             f'python3 -c "import ctypes; ctypes.CDLL(None).renameat2(-100, b\\"part/{last}\\", '
             f'-100, b\\"old\\", 2)"; mv old {last}', prepared=others)
    register(f"by_a_link_to_{last.lower()}", f"{PREPARE}; mkdir part/refs/heads/x;"
             f"ln -s {'refs/heads/main' if last == 'HEAD' else f'part/{last}'} {last}",
             prepared=others)
    register(f"by_{last.lower()}_in_tmpdir", MAKE[last], folder="tmp", prepared=others)
    register(f"by_{last.lower()}_in_an_extra_root", MAKE[last], folder="extra", prepared=others)
register("by_head_and_commondir", f"{MAKE['HEAD']}; {MAKE['commondir']}")
register("by_commondir_and_head", f"{MAKE['commondir']}; {MAKE['HEAD']}")
register("by_a_commondir_that_is_there", MAKE["HEAD"], prepared=["commondir"])
register("by_a_commondir_for_a_head_that_is_there", MAKE["commondir"], prepared=["HEAD"])
register("by_a_link_to_a_commondir", f"{PREPARE}; echo part > common; ln -s common commondir;"
         f"{MAKE['HEAD']}")
register("by_a_link_that_is_a_head", "mkdir objects refs; ln -s refs/heads/main HEAD")
register("by_a_hard_link_that_is_a_head", f"mkdir objects refs; {PREPARE}; ln part/HEAD HEAD")
register("by_dangling_links", "ln -s o objects; ln -s r refs; ln -s refs/heads/x HEAD; mkdir o r")
register("by_links_that_lead_somewhere", "mkdir o r; ln -s refs/heads/x HEAD; ln -s r refs;"
         "ln -s o objects")
register("beside_a_git_folder_that_is_none", "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD",
         before="mkdir .git; echo 'ref: refs/heads/main' > .git/HEAD")
register("beside_an_empty_git_folder", "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD",
         before="mkdir .git")
register("by_init", "git init -q --bare .")
register("by_a_clone_of_its_parts", f"{PREPARE}; cp -a part/. .")
register("by_rsync_or_tar", f"{PREPARE}; tar -C part -c . | tar -x")
register("by_a_rename_after_removal", f"{PREPARE}; mkdir objects refs; mv part/HEAD other; "
         "mv other HEAD")
register("by_mkdir_with_slashes", "mkdir objects/ .//refs/; echo 'ref: refs/heads/main' > ./HEAD")
register("by_proc_self_cwd", "mkdir objects /proc/self/cwd/refs;"
         "echo 'ref: refs/heads/main' > /proc/self/cwd/HEAD")
register("by_python_through_a_descriptor", 'python3 -c "import os; d = os.open(\\".\\", os.O_PATH); '
         'os.mkdir(\\"refs\\", dir_fd=d); os.mkdir(\\"objects\\", dir_fd=d); '
         'os.write(os.open(\\"HEAD\\", 65, dir_fd=d), b\\"ref: refs/heads/main\\")"')


def obeyed(stage, script):
    """The whole of it: git outside runs a program of the command's choice."""
    program, mark = trap(stage)
    stage.shell(f"{script}; {CONFIG}", program)
    return git_is_trapped(stage, mark)


@attack(on_guard=True)
def obey_a_monitor(stage):
    return obeyed(stage, f"mkdir objects refs; {MAKE['HEAD']}")


@attack(on_guard=True)
def obey_a_monitor_after_moves(stage):
    return obeyed(stage, f"{PREPARE}; mv part/refs part/objects . ; mv part/HEAD x; mv x HEAD")


def in_turn(stage, *scripts):
    """Commands that run all at once, each with a guard of its own; each does its part when the one
    before has."""
    runs = [stage.start("/bin/sh", "-c", f"echo @up; read line; {script}; echo @done; read line",
                        stdin=-1) for script in scripts]
    for run in runs:
        run.stdout.readline()
    for run in runs:
        run.stdin.write("\n")
        run.stdin.flush()
        run.stdout.readline()
    found = is_repository(stage)
    for run in runs:
        run.communicate("\n", timeout=20)
    stage.note_run(0, "@start", "")
    return found


@attack(on_guard=True)
def become_one_by_three_commands(stage):
    return in_turn(stage, MAKE["HEAD"], MAKE["objects"], MAKE["refs"])


@attack(on_guard=True)
def become_one_by_two_commands(stage):
    return in_turn(stage, "mkdir objects refs", MAKE["HEAD"])


@attack(on_guard=True)
def become_one_by_the_next_command(stage):
    stage.shell("mkdir objects refs")
    stage.shell(MAKE["HEAD"])
    return is_repository(stage)


ALTERNATE = ("i=0; while [ $i -lt 150 ]; do {make}; [ -e HEAD ] && [ -e objects ] && [ -e refs ] && "
             "exit 0; rm -rf {name}; i=$((i + 1)); done")


@attack(on_guard=True)
def become_one_by_commands_that_race(stage):
    """Each guard looks, then makes; between the two, another one makes."""
    pairs = (("HEAD", MAKE["HEAD"]), ("objects", MAKE["objects"]))
    os.mkdir(stage.ws / "refs")
    if not stage.inside:
        stage.shell(f"{MAKE['HEAD']}; {MAKE['objects']}")
        return is_repository(stage)
    runs = [stage.start("/bin/sh", "-c", "echo @start; " + ALTERNATE.format(name=name, make=make))
            for name, make in pairs]
    for run in runs:
        stage.finish(run)
    return is_repository(stage)


# -- a root that is a repository already: what git runs there, or is led by to what it runs

BARE = "git init -q --bare . && rm -rf hooks info branches"
OTHER = ("git init -q --bare other; cd other; " + CONFIG.replace('"$PWD"', '"${PWD%/*}"') + "; cd ..")
HOOK = "mkdir -p hooks; cp trap hooks/reference-transaction"


def runs_it(stage, mark, folder):
    """What a person does there after the command, who has to be in no work tree for it."""
    tree = stage.git("hash-object", "-t", "tree", "-w", "--stdin", input="", cwd=folder).stdout.strip()
    commit = stage.git("commit-tree", tree, "-m", "message", cwd=folder).stdout.strip()
    stage.git("update-ref", "refs/heads/main", commit, cwd=folder)
    stage.git("status", cwd=folder)
    return mark.exists()


def in_a_repository(name, script, before="true", folder="ws"):
    def play(stage):
        program, mark = trap(stage)
        place = stage.base / folder
        place.mkdir(exist_ok=True)
        subprocess.run(["/bin/sh", "-c", f"{BARE} && {before}"], cwd=place, check=True, env=stage.env)
        (place / "trap").write_bytes(program.read_bytes())
        (place / "trap").chmod(0o755)
        root = ["--writable", place] if folder == "extra" else []
        stage.shell(f'cd "$2" && {{ {script}; }}', program, place, cordon=root)
        return runs_it(stage, mark, place)
    play.__name__ = "in_one_" + name
    attack(on_guard=True)(play)


in_a_repository("write_its_config", CONFIG)
in_a_repository("write_its_config_in_tmpdir", CONFIG, folder="tmp")
in_a_repository("write_its_config_in_an_extra_root", CONFIG, folder="extra")
in_a_repository("move_a_config_over_it", f"cp config c; {CONFIG.replace('-f config', '-f c')}; mv -f c config")
in_a_repository("make_a_missing_config", f"rm -f config; {CONFIG}", before="rm config")
in_a_repository("link_a_config", f"{OTHER}; ln other/config config", before="rm config")
in_a_repository("link_a_config_softly", f"{OTHER}; ln -s other/config config", before="rm config")
in_a_repository("make_a_config_in_other_letters", f"{CONFIG}; mv -f CONFIG config".replace("-f config", "-f CONFIG"))
in_a_repository("write_a_config_of_the_work_tree", CONFIG.replace("-f config", "-f config.worktree"),
                before="git config extensions.worktreeConfig true")
in_a_repository("lead_to_another_directory", "git init -q --bare other; mkdir -p other/hooks; "
                "cp trap other/hooks/reference-transaction; echo other > commondir")
in_a_repository("make_a_hook", HOOK)
in_a_repository("write_a_hook", HOOK, before="mkdir hooks")
in_a_repository("move_the_hooks_away", f"mv hooks old; {HOOK}", before="mkdir hooks")
in_a_repository("exchange_the_hooks", "mkdir mine; cp trap mine/reference-transaction; "
                'python3 -c "import ctypes; ctypes.CDLL(None).renameat2(-100, b\\"hooks\\", '
                '-100, b\\"mine\\", 2)"', before="mkdir hooks")
in_a_repository("of_a_head_that_was_none", f"echo ref: refs/heads/main > HEAD; {CONFIG}; {HOOK}",
                before="echo none > HEAD")
in_a_repository("of_a_common_directory", f"cd shared; {HOOK}".replace("trap", "../trap"),
                before="mkdir shared; mv config objects refs shared; echo shared > commondir")


@attack(on_guard=True)
def in_one_lead_a_work_tree_elsewhere(stage):
    """Whose git directory is worktrees/w below."""
    program, mark = trap(stage)
    subprocess.run(["/bin/sh", "-c", f"{BARE} && c=$(git commit-tree $(git mktree </dev/null) -m m) && "
                    f"git worktree add -q {stage.out}/w $c"], cwd=stage.ws, check=True,
                   env={**stage.env, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
                        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"})
    stage.shell(f"{OTHER.replace('${PWD%/*}', str(stage.out / 'w'))}; cp -a objects refs other; "
                f"echo ../../other > worktrees/w/commondir", program)
    return runs_it(stage, mark, stage.out / "w")
