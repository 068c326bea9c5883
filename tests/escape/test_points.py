"""Watchpoints: who reads what a profile asks about is held while somebody is asked; a yes opens just
that place, for reading, until the command ends. (What they hold without a yes: cases/points.py.)"""

import errno
import json
import os
import select
import signal
import subprocess

import pytest

import identity
from asking import ASKER, Asking
from events import wait_for_end
from stage import CORDON, WAIT, Stage

PLACES = 32


def can_watch(name):
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return os.geteuid() != 0 or name == "root" or os.stat("/dev/fuse").st_mode & 0o006 == 0o006


WHOLE = [name for name in identity.here() if identity.is_whole(name)]
WATCHING = [name for name in WHOLE if can_watch(name)]
MASKING = [name for name in WHOLE if name not in WATCHING]

watched = pytest.mark.parametrize("name", WATCHING)


@pytest.fixture(autouse=True)
def need_asker(lack):
    if not ASKER.exists() or not CORDON.exists():
        lack(f"{ASKER} is not built")


def play(name, tools, scene):
    def whole():
        with Stage(name, True, tools) as stage:
            stage.file("outside/vault/secret", "the-secret\n")
            stage.file("outside/vault/deep/secret", "the-deep-secret\n")
            stage.file("outside/vault/tool", "#!/bin/sh\necho the-tool\n", 0o755)
            stage.file("outside/key", "the-key\n", 0o600)
            return scene(stage)
    return identity.play(name, whole)


def start(stage, *argv, words=(), **kwargs):
    vault, key = stage.out / "vault", stage.out / "key"
    return Asking(stage, *argv, words=[f"ask={vault}", f"ask={key}", *words], **kwargs)


def ask(stage, script, judge=lambda question: "yes", words=()):
    """A shell script beside the vault; what it wrote, and what was said."""
    asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; {script}", words=words)
    return asking.serve(judge), asking


def no(_question):
    return "no"


# --- every kind of access: script, what it writes after a yes, what is looked at, by which call

ACCESSES = {
    "cat": ("cat vault/secret", "the-secret\n", "vault/secret"),
    "by its whole path": ('cat "$PWD/vault/secret"', "the-secret\n", "vault/secret"),
    "stat": ("stat -c %s vault/secret", "11\n", "vault/secret"),
    "deeper": ("cat vault/deep/secret", "the-deep-secret\n", "vault/deep"),
    "execute": ("vault/tool", "the-tool\n", "vault/tool"),
    "run": ("sh vault/tool", "the-tool\n", "vault/tool"),
    "list": ("ls vault", "deep\nsecret\ntool\n", "vault"),
    "change into": ("cd vault && cat secret", "the-secret\n", "vault"),
    "change below": ("cd vault/deep && cat ../secret", "the-secret\n", "vault/deep"),
    "test -r": ("test -r vault && echo yes", "yes\n", "vault"),
    "test -r below": ("test -r vault/secret && echo yes", "yes\n", "vault/secret"),
    "test -e below": ("test -e vault/none || echo none", "none\n", "vault/none"),
    "readlink -f": ("readlink -f vault/deep/../secret | sed 's|.*/outside|X|'", "X/vault/secret\n", "vault/deep"),
    "through a link": ("ln -s $PWD/vault ../ws/l; cat ../ws/l/secret", "the-secret\n", "vault/secret"),
    "find": ("find vault -name 's*' | wc -l", "2\n", "vault"),
    "a file": ("cat key", "the-key\n", "key"),
    "a file in a pipe": ("wc -c < key", "8\n", "key"),
    "test -r of a file": ("test -r key && cat key", "the-key\n", "key"),
    "map": ("python3 -c 'import mmap; f = open(\"key\"); print(mmap.mmap(f.fileno(), 0, prot=1)[:].decode(), end=\"\")'",
            "the-key\n", "key"),
}


@watched
@pytest.mark.parametrize("what", ACCESSES)
def test_a_yes_opens(name, tools, what):
    script, wanted, path = ACCESSES[what]

    def scene(stage):
        said, asking = ask(stage, script)
        assert (asking.process.returncode, said) == (0, wanted), asking.said
        question, = asking.all("asked")
        assert question.path == f"{stage.out}/{path}"
        assert question.covers[0] == f"{stage.out}/{path.split('/')[0]}"
        assert [done.path for done in asking.all("done")] == [question.path]
        assert not asking.all("denied") and stage.appeared == []
    play(name, tools, scene)


@watched
@pytest.mark.parametrize("what", ACCESSES)
def test_a_no_is_a_fact(name, tools, what):
    script, wanted, path = ACCESSES[what]

    def scene(stage):
        said, asking = ask(stage, script, no)
        assert wanted not in said or wanted == "none\n", asking.said
        assert len(asking.all("asked")) == 1 and not asking.all("done"), asking.said
        denied = asking.all("denied")
        assert denied[0].path == f"{stage.out}/{path}" and denied[0].numbers == (13,), asking.said
    play(name, tools, scene)


@watched
def test_what_does_not_ask(name, tools):
    """A list of the folder above, and what walks past."""
    def scene(stage):
        said, asking = ask(stage, "ls -la . >/dev/null; stat vault key >/dev/null; test -e vault; "
                           "test -d vault && test -f key; cd vault/..; df >/dev/null 2>&1; "
                           "cat /proc/mounts >/dev/null; ls -d vault; getfattr -d vault 2>/dev/null; true")
        assert (said, asking.all("asked"), asking.all("denied")) == ("vault\n", [], []), asking.said
    play(name, tools, scene)


@watched
def test_a_yes_is_for_the_place_and_for_the_rest_of_the_command(name, tools):
    def scene(stage):
        said, asking = ask(stage, "cat vault/secret vault/secret; (cat vault/deep/secret); sh vault/tool; "
                           "cat key")
        assert said == "the-secret\nthe-secret\nthe-deep-secret\nthe-tool\nthe-key\n"
        assert len(asking.all("asked")) == 2
        _, asking = ask(stage, "cat vault/secret")
        assert len(asking.all("asked")) == 1  # the next command
    play(name, tools, scene)


@watched
def test_a_no_is_for_the_rest_of_the_command(name, tools):
    def scene(stage):
        said, asking = ask(stage, "cat vault/secret; ls vault; cat vault/deep/secret; cat key",
                           lambda question: "yes" if question.path.endswith("key") else "no")
        assert "the-key" in said and "secret\n" not in said.replace("/secret", "")
        assert len(asking.all("asked")) == 2
        assert [fact.path.split("outside/")[1] for fact in asking.all("denied")] == \
            ["vault/secret", "vault", "vault/deep"]
    play(name, tools, scene)


@watched
@pytest.mark.parametrize("program", ["grep -r the .", "find . -type f -exec cat {} +", "tar -c . | tar -t"])
def test_a_program_that_looks_everywhere_asks_once(name, tools, program):
    def scene(stage):
        _, asking = ask(stage, f"rm -f key; {program}", no)
        assert len([one for one in asking.all("asked") if "vault" in one.path]) == 1, asking.said
    play(name, tools, scene)


@watched
def test_all_who_wait_wait_for_one_answer(name, tools):
    """50 readers, all at once."""
    def scene(stage):
        readers = "for i in $(seq 50); do cat vault/secret & done; wait"
        asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; {readers}")
        asking.answer("yes", asking.until("asked").id)
        said = asking.serve(no)
        assert said.count("the-secret") == 50 and len(asking.all("asked")) == 1
    play(name, tools, scene)


@watched
def test_a_yes_opens_reading_alone(name, tools):
    """What the profile denies otherwise stays so: by the mounts, and by Landlock where it can."""
    def scene(stage):
        stage.file("ws/vault/secret", "the-secret\n")
        change = ("echo x > $p/secret; echo x > $p/new; rm -f $p/secret; mkdir $p/d; chmod 777 $p; "
                  "ln $p/secret hard; python3 -c 'import os, sys; os.rename(sys.argv[1], \"other\")' $p")
        said, asking = ask(stage, f"cat vault/secret {stage.ws}/vault/secret; cd {stage.ws}; "
                           f"for p in vault {stage.out}/vault; do {change}; done; exit 0",
                           words=[f"ask={stage.ws}/vault"])
        assert said.count("the-secret") == 2, (said, asking.said)
        for place in (stage.ws, stage.out):
            assert (place / "vault/secret").read_text("utf-8") == "the-secret\n"
            assert not (place / "vault/new").exists() and not (place / "vault/d").exists()
            assert (place / "vault/secret").stat().st_nlink == 1
        assert not (stage.ws / "other").exists()
    play(name, tools, scene)


@watched
def test_what_is_denied_in_it_stays_so(name, tools):
    def scene(stage):
        said, asking = ask(stage, "cat vault/secret; ls vault/deep; cat vault/deep/secret",
                           words=[f"deny={stage.out}/vault/deep"])
        assert "the-secret" in said and "the-deep-secret" not in said, asking.said
        said, asking = ask(stage, "cat vault/secret; cat vault/deep/secret",
                           words=[f"ask={stage.out}/vault/deep"])
        assert "the-secret" in said and "the-deep-secret" not in said, asking.said
    play(name, tools, scene)


@watched
def test_many_places(name, tools):
    """As many as there may be, and one that is masked."""
    def scene(stage):
        places = [stage.out / f"place{i:02}" for i in range(PLACES - 1)]  # between the key and the vault
        for place in places:
            stage.file(f"outside/{place.name}/f", "here\n")
        said, asking = ask(stage, "cat place*/f key vault/secret", words=[f"ask={place}" for place in places])
        assert said.count("here\n") == PLACES - 1 and "the-key" in said and "the-secret" not in said
        assert len(asking.all("asked")) == PLACES
    play(name, tools, scene)


def say(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def is_waiting(asking):
    """Nothing was said, and the command goes on."""
    return not select.select([asking.talk], [], [], 0.2)[0] and asking.process.poll() is None


@watched
@pytest.mark.parametrize("number", ["TERM", "KILL"])
def test_who_waits_can_be_killed(name, tools, number):
    """Then the question is taken back; and the next one asks anew."""
    def scene(stage):
        script = (f"cat vault/secret & pid=$!; read line; kill -{number} $pid; wait $pid; echo $?; "
                  "cat vault/secret; echo end")
        asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; {script}", stdin=subprocess.PIPE)
        first = asking.until("asked")
        say(asking.process, "go")
        assert asking.until("withdrawn").id == first.id
        second = asking.until("asked")
        assert second.id > first.id
        asking.answer("yes", first.id)  # to a question that is none any more
        assert is_waiting(asking)
        asking.answer("yes", second.id)
        said = asking.serve(no)
        assert said.endswith(f"{128 + getattr(signal, 'SIG' + number)}\nthe-secret\nend\n")
    play(name, tools, scene)


@watched
def test_the_end_of_the_command(name, tools):
    """Its host is killed while somebody waits: it ends, and nothing is left."""
    def scene(stage):
        asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; cat vault/secret")
        asking.until("asked")
        asking.kill()
        asking.process.wait(WAIT)
        with open("/proc/mounts", encoding="utf-8") as mounts:
            assert str(stage.base) not in mounts.read()
    play(name, tools, scene)


@watched
@pytest.mark.parametrize("when", ["before", "while"])
def test_a_dead_guard_opens_nothing(name, tools, when):
    """The command goes on without it, because its host, who would end it, is stopped meanwhile."""
    script = """
print('here', flush=True)
input()
for path in ('vault/secret', 'vault/secret', 'vault/deep/secret', 'key'):
    try:
        print(open(path).read(), end='')
    except OSError as error:
        print(error.errno)
print('end', flush=True)
"""

    def scene(stage):
        asking = start(stage, "/bin/sh", "-c", f'cd {stage.out}; exec python3 -c "$0"', script,
                       stdin=subprocess.PIPE)
        process = asking.process
        assert process.stdout.readline() == "here\n"  # one that dies before it has the command is replaced
        if when == "while":
            say(process, "go")
            question = asking.until("asked")
        pidfd = os.pidfd_open(asking.guard())
        stage.cleanup.callback(os.close, pidfd)
        asking.kill(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        assert wait_for_end(pidfd, WAIT)
        if when == "while":
            asking.answer("yes", question.id)
        else:
            say(process, "go")
        read = list(iter(process.stdout.readline, "end\n"))
        asking.kill(signal.SIGCONT)
        asking.serve(lambda question: "yes")
        closed = {errno.ENOTCONN} if when == "before" else {errno.ENOTCONN, errno.ECONNABORTED}  # as the guard dies
        assert len(read) == 4 and {int(line) for line in read} <= closed, read
        assert asking.all("unguarded") and process.returncode == 1, asking.said
    play(name, tools, scene)


@watched
def test_a_stopped_guard_opens_nothing(name, tools):
    """Who reads waits; when it goes on, it is as ever."""
    def scene(stage):
        asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; cat vault/secret; cat key")
        question = asking.until("asked")
        guard = asking.guard()
        os.kill(guard, signal.SIGSTOP)
        asking.answer("yes", question.id)
        waits = is_waiting(asking)
        os.kill(guard, signal.SIGCONT)
        assert waits
        assert asking.serve(lambda one: "yes" if one is not None else None) == "the-secret\nthe-key\n"
    play(name, tools, scene)


@watched
def test_answers_to_other_numbers(name, tools):
    def scene(stage):
        asking = start(stage, "/bin/sh", "-c", f"cd {stage.out}; cat vault/secret")
        question = asking.until("asked")
        for number in (0, question.id - 1, question.id + 1, 2 ** 63, 2 ** 64 - 1):
            asking.answer("yes", number)
        assert is_waiting(asking)
        asking.answer("no", question.id)
        asking.answer("yes", question.id)  # too late
        assert "the-secret" not in asking.serve(no)
    play(name, tools, scene)


@watched
def test_a_descriptor_from_before_the_yes(name, tools):
    """It keeps what it is of: the watchpoint, which nobody can look into."""
    script = """
import os
at = os.open('vault', os.O_PATH)
print(open('vault/secret').read(), end='')
for how in (lambda: os.open('secret', os.O_RDONLY, dir_fd=at), lambda: os.fchdir(at),
            lambda: os.listdir(f'/proc/self/fd/{at}')):
    try:
        how(); print('opened')
    except OSError as error:
        print(error.errno)
"""

    def scene(stage):
        asking = start(stage, "/bin/sh", "-c", f'cd {stage.out}; exec python3 -c "$0"', script)
        assert asking.serve(lambda question: "yes") == "the-secret\n116\n116\n116\n"  # ESTALE
    play(name, tools, scene)


@watched
def test_the_mount_is_gone_after_a_yes(name, tools):
    def scene(stage):
        said, _ = ask(stage, "cat vault/secret; grep -c ' fuse ' /proc/mounts")
        assert said == "the-secret\n1\n"  # that of the key
    play(name, tools, scene)


@watched
def test_two_commands_of_one_host(name, tools):
    """A yes to one is none to the other."""
    def scene(stage):
        first = start(stage, "/bin/sh", "-c", f"cd {stage.out}; cat vault/secret; read l; cat vault/secret")
        second = start(stage, "/bin/sh", "-c", f"cd {stage.out}; cat vault/secret")
        first.answer("yes", first.until("asked").id)
        second.answer("no", second.until("asked").id)
        assert "the-secret" not in second.serve(no)
        assert "the-secret" in first.serve(no)
    play(name, tools, scene)


def profile(stage):
    config = stage.file("home/ask.toml", "[permissions.asks]\nextends = \":workspace\"\n"
                        f"[permissions.asks.filesystem]\n\"{stage.out}/vault\" = \"ask\"\n")
    return ["--config", str(config), "--profile", "asks"]


def explain(stage):
    return subprocess.run([CORDON, "explain", "--all", *profile(stage)], cwd=stage.ws, env=stage.env, text=True,
                          capture_output=True, check=True, timeout=WAIT).stdout


@watched
def test_without_anybody_to_ask_it_is_a_fact_at_once(name, tools):
    def scene(stage):
        ran = stage.run("/bin/sh", "-c", 'cat "$1/secret"; ls "$1/deep/er"; exit 3', "sh", stage.out / "vault",
                        cordon=[*profile(stage), "--json"])
        told = [(one["operation"], one["evidence"], one["path"].replace(f"{stage.out}/", ""), one["program"])
                for one in json.loads(ran.out)["denials"]]
        return told, f"\n  watchpoint {stage.out}/vault " in explain(stage), stage.appeared
    assert play(name, tools, scene) == ([("read", "fact", "vault/secret", "cat"),
                                         ("read", "fact", "vault/deep", "ls")], True, [])


@pytest.mark.parametrize("name", MASKING)
def test_without_fuse_it_is_masked_and_said(name, tools):
    def scene(stage):
        said, asking = ask(stage, "cat vault/secret; ls vault; cat key; ls -l key")
        assert "the-" not in said and not asking.all("asked"), asking.said
        explained = explain(stage)
        assert "reads: masked; /dev/fuse cannot be opened" in explained
        assert f"\n  mask {stage.out}/vault folder\n" in explained
    play(name, tools, scene)
