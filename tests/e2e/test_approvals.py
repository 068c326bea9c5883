"""Questions before and after a command: a person at a terminal, and a program as hook."""
import json
import os
import signal
import stat
import unicodedata

import pytest

from harness import WAIT, finish
from person import Person

QUESTION = "run this command?"
AGAIN = "run this once more?"


class Runner(Person):
    def __init__(self, place):
        super().__init__(place)
        self.place = place

    def start(self, *words, **kwargs):
        return self.place.start("run", *words, preexec_fn=self.take_terminal, **kwargs)

    def ask(self, *words, question=QUESTION, **kwargs):
        """Starts a command that has to be asked about; the process, and the whole question."""
        process = self.start(*words, **kwargs)
        self.until(question)
        return process, self.until("\n> ")


@pytest.fixture
def person(place):
    return Runner(place)


def rules(place, text, name="test.rules"):
    file = place.home / ".config/cordon/rules" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def asking(place):
    """A command that has to be asked about."""
    rules(place, 'prefix_rule(pattern=["echo"], decision="prompt", justification="it is loud")\n')
    return ["-a", "on-request", "--", "echo", "hello there"]


# --- the terminal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_at_the_question_is_told_of(place, person, number):
    """Ctrl-C there is in the audit log, as an end of the command that was asked about."""
    process, _ = person.ask(*asking(place))
    if number == signal.SIGINT:
        person.say("\x03")
    else:
        process.send_signal(number)
    out, err = finish(process, 128 + number)
    assert out == b"" and b"before the question was answered" in err and person.is_restored()
    told = place.records()
    assert [event for event, _ in told] == ["begin", "asked", "end"]
    assert "before the question was answered" in told[-1][1]["reason"]


def test_yes(place, person):
    process, question = person.ask(*asking(place))
    assert "echo 'hello there'" in question
    assert f"in:      {place.ws}" in question
    assert "it is loud" in question and "test.rules:1" in question
    assert "a yes covers: this command in its sandbox (profile workspace-write)" in question
    assert "[y]" in question and "[n]" in question and "[u]" not in question
    person.say("y\n")
    out, err = finish(process, 0)
    assert out == b"hello there\n" and err == b""


@pytest.mark.parametrize("key", ["n", "N", "q", "\x04"])
def test_no(place, person, key):
    process, _ = person.ask(*asking(place))
    person.say(key + "\n" if key != "\x04" else key)
    out, err = finish(process, 126)
    assert out == b"" and b"not run: it had to be asked about, and the answer was no" in err


def test_anything_else_asks_again(place, person):
    process, _ = person.ask(*asking(place))
    for text in ("\n", "x\n", "u\n", "a\n", "yikes\n", "y n\n"):  # u and a are not on offer
        person.say(text)
        person.until("\n> ")
    person.say("y\n")
    finish(process, 0)


def test_what_was_typed_before_is_no_answer(place, person):
    person.say("y\n")
    process, _ = person.ask(*asking(place))
    person.say("n\n")
    finish(process, 126)


def test_no_answer_in_time_is_a_no(place, person):
    process = person.start("--approval-timeout", "50ms", *asking(place))
    _, err = finish(process, 126)
    assert b"nobody answered in time" in err


def test_nobody_to_ask_is_a_no(place):
    ran = place.run(*asking(place), start_new_session=True)
    assert ran.returncode == 126 and "nobody to ask" in ran.stderr


def test_always_writes_a_rule_and_is_not_asked_again(place, person):
    words = ["-a", "untrusted", "--", "touch", "file"]
    process, question = person.ask(*words)
    assert "[a] yes, and always allow what begins with: touch" in question
    person.say("a\n")
    finish(process, 0)
    text = (place.home / ".config/cordon/rules/default.rules").read_text()
    assert 'pattern=["touch"' in text and 'decision="allow"' in text and 'sandbox="keep"' in text
    (place.ws / "file").unlink()
    finish(person.start(*words), 0)
    assert (place.ws / "file").exists()
    outside = place.run("-a", "untrusted", "--", "touch", "file", f"{place.outside}/file",
                        start_new_session=True)
    assert outside.returncode != 0  # the sandbox stays
    assert not (place.outside / "file").exists()


def test_untrusted_asks_unless_harmless(place, person):
    finish(person.start("-a", "untrusted", "--", "ls", "/"), 0)
    process, question = person.ask("-a", "untrusted", "--", "sh", "-c", "ls; make x=`date`")
    assert "untrusted" in question and "without a sandbox" not in question
    person.say("n\n")
    finish(process, 126)


def columns(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("padding", [" " * 3000, "x" * 3000, "\u3164" * 1500, " y" * 1500, "\t" * 3000, "\u5831" * 1500,
                                     "e" + "\u0301" * 2000, "\u202e\u2067" * 700, "a\u0430" * 700,
                                     "\u05d0" * 1500, "\U0001f642" * 900])
def test_a_command_cannot_draw_or_scroll_the_question(place, person, padding):
    """The whole question stays on a screen of 24 x 80, and no line of it is the command's."""
    rules(place, 'prefix_rule(pattern=["sh"], decision="prompt")\n')
    person.resize(24, 80)
    script = f"rm -r $(pwd)/x {padding} [y] yes, this once {padding} > /dev/null; ls"
    process, question = person.ask("-a", "on-request", "--", "sh", "-c", script)
    lines = question.split("\n")
    assert len(lines) <= 23 and all(columns(line) <= 80 for line in lines), question
    assert lines[1].startswith("    sh -c 'rm -r $(pwd)/x") and "\u3164" not in question
    assert [line for line in lines if "[y]" in line and not line.startswith("    ")] == ["  [y] yes, this once"]
    if " blanks>" not in question:
        assert "more bytes, press v to see all of it" in question
        person.say("v\n")
        whole = person.until("\n> ")
        assert all(columns(line) <= 80 for line in whole.split("\n")) and "> /dev/null; ls'" in whole.replace("\n    | ", "")
        if padding[0] == "x":
            assert whole.count("x") > 6000
    person.say("n\n")
    finish(process, 126)


def test_lines_are_broken_between_words(place, person):
    """A word longer than a line is not, and nothing of the text is lost or put in."""
    rules(place, 'prefix_rule(pattern=["echo"], decision="prompt")\n')
    person.resize(24, 60)
    words = ["echo", *("word" * (1 + number % 3) for number in range(30)), "x" * 100]
    process, question = person.ask("-a", "on-request", "--", *words)
    assert " ".join(words) in question.replace("\n    | ", "")
    assert all(before.endswith((" ", "x")) for before in question.split("\n  in: ")[0].split("\n    | ")[:-1])
    assert all(columns(line) <= 60 for line in question.split("\n"))
    person.say("n\n")
    finish(process, 126)


def test_letters_that_pass_for_others_are_told(place, person):
    rules(place, 'prefix_rule(pattern=["echo"], decision="prompt")\n')
    process, question = person.ask("-a", "on-request", "--", "echo", "/usr/bin/p\u0430ypal", "\u0441\u0440",
                                   "\u0444\u0430\u0439\u043b.txt", "\u5831\u544a.txt", "g\u0336it", "a\u2215b")
    assert ("echo /usr/bin/p<U+0430>ypal <U+0441><U+0440> \u0444\u0430\u0439\u043b.txt "
            "\u5831\u544a.txt g<U+0336>it a<U+2215>b") in question.replace("\n    | ", "")
    person.say("n\n")
    finish(process, 126)


def test_the_program_and_the_place_are_shown(place, person):
    (place.ws / "bin").mkdir()
    (place.ws / "bin/tool").write_text("#!/bin/sh\n")
    (place.ws / "bin/tool").chmod(0o755)
    rules(place, 'prefix_rule(pattern=["tool"], decision="prompt")\n')
    path = f"{place.ws}/bin:{place.env['PATH']}"
    process, question = person.ask("-a", "on-request", "--", "tool", env={"PATH": path})
    assert f"runs:    tool = {place.ws}/bin/tool (which commands can write)" in question
    assert "a yes covers: this command in its sandbox (profile workspace-write)" in question
    person.say("n\n")
    finish(process, 126)


def test_a_command_cannot_write_over_the_question(place, person):
    rules(place, 'prefix_rule(pattern=["echo"], decision="prompt")\n')
    process, question = person.ask("-a", "on-request", "--", "echo", "\033[1A\rls\n[y] fine")
    assert "\033" not in question and "echo '<U+001B>[1A<U+000D>ls<U+000A>[y] fine'" in question
    person.say("n\n")
    finish(process, 126)


def test_what_a_yes_opens_is_what_it_says(place, person):
    """A link of a hostile repository has one name and opens another place."""
    (place.ws / "vendor").symlink_to(place.outside)
    process, question = person.ask("-a", "on-request", "--profile", "read-only", "--", "sh", "-c",
                                   "echo x > vendor/file", question=AGAIN)
    assert question.count(f"writing {place.outside}\n") == 1
    assert f"writing {place.ws}/vendor\n" not in question
    person.say("n\n")
    finish(process, 2)


def test_a_yes_never_opens_what_rules_the_next_run(place):
    """Nobody is even asked, so that the one who would say yes to all is not."""
    folder = place.home / ".config/cordon"
    (folder / "rules").mkdir(parents=True)
    words = hook(place, "echo '{\"decision\": \"approved\"}'\n")
    for path in (folder / "rules/x.rules", folder / "config.toml"):
        ran = place.shell(f"echo x > {path}", *words, "-a", "on-request", start_new_session=True)
        assert ran.returncode == 2 and not path.exists()


def test_a_rule_means_the_program_of_the_host(place):
    """Not the one that a command in the sandbox has put into a folder of $PATH."""
    rules(place, 'prefix_rule(pattern=["tool"], decision="allow", sandbox="bypass")\n')
    for folder in (place.ws / "bin", place.home / "bin"):
        folder.mkdir()
        (folder / "tool").write_text(f"#!/bin/sh\necho x > {place.outside}/file\n")
        (folder / "tool").chmod(0o755)
    path = place.env["PATH"]
    for words in (["tool"], ["sh", "-c", "tool"]):
        ran = place.run("-a", "never", "--", *words, env={"PATH": f"{place.ws}/bin:{path}"})
        assert ran.returncode == 2 and not (place.outside / "file").exists()
    # nor one that a command of another workspace may have put there, unless it is named
    words = ["-a", "never", "--profile", "read-only", "--", "tool"]
    env = {"PATH": f"{place.home}/bin:{path}"}
    ran = place.run(*words, env=env)
    assert ran.returncode == 2 and not (place.outside / "file").exists()
    rules(place, 'prefix_rule(pattern=["tool"], decision="allow")\n'
                 f'host_executable(name="tool", paths=["{place.home}/bin/tool"])\n')
    ran = place.run(*words, env=env)
    assert ran.returncode == 0 and (place.outside / "file").exists()


@pytest.mark.parametrize("entry, asks", [("bin:{}", True), (".:{}", True), (":{}", True),
                                         ("{}:bin", False), ("/nowhere:{}", False)])
def test_a_relative_entry_of_path_makes_nothing_harmless(place, entry, asks):
    """Its programs are others in each directory that the command changes to."""
    path = {"PATH": entry.format("/usr/bin:/bin")}
    for policy, script, outcome, where in (
            ("untrusted", "cd sub && ls", "ask" if asks else "skip", "sandbox"),
            ("never", "ls", "skip", "sandbox" if asks else "none")):
        rules(place, "" if policy == "untrusted" else
              'prefix_rule(pattern=["ls"], decision="allow", sandbox="bypass")\n')
        requirement = place.json("explain", "--json", "-a", policy, "-C", place.ws, "--",
                                 "sh", "-c", script, env=path)["command"]["requirement"]
        assert (requirement["outcome"], requirement["place"]) == (outcome, where)


def test_what_a_rule_lets_out_starts_nothing_that_was_planted(place):
    """Its $PATH has no folder that commands can write; a shell reads no start-up files, which could add some."""
    rules(place, 'prefix_rule(pattern=["env"], decision="prompt")\nprefix_rule(pattern=["env", "uptime"])\n'
                 'prefix_rule(pattern=["uname"])\n')
    (place.ws / "bin").mkdir()
    for name in ("uptime", "uname"):
        (place.ws / "bin" / name).write_text(f"#!/bin/sh\necho x > {place.outside}/{name}\n")
        (place.ws / "bin" / name).chmod(0o755)
    for name in (".bash_profile", ".profile", ".bashrc"):
        (place.home / name).write_text("PATH=./bin:$PATH\n")
    path = place.env["PATH"]
    for words in (["bash", "-lc", "uname"], ["bash", "-c", "uname"], ["uname"]):
        ran = place.run("-a", "never", "--", *words, env={"BASH_ENV": f"{place.home}/.bashrc"})
        assert ran.returncode == 0 and ran.stdout == "Linux\n", ran
    place.run("-a", "never", "--", "env", "uptime", env={"PATH": f"{path}:{place.ws}/bin"})
    assert list(place.outside.iterdir()) == []


def test_forbidden_is_not_asked(place, person):
    rules(place, 'prefix_rule(pattern=["echo"], decision="forbidden", justification="hush")\n')
    for words in ([], ["-a", "on-request"], ["-a", "never"]):
        ran = place.run(*words, "--", "sh", "-c", "true && echo x", start_new_session=True)
        assert ran.returncode == 126 and ran.stdout == ""
        assert "forbids it: hush" in ran.stderr and "test.rules:1" in ran.stderr


def test_never_refuses_what_would_be_asked(place):
    words = asking(place)
    words[1] = "never"
    ran = place.run(*words)
    assert ran.returncode == 126 and ran.stdout == ""


# --- without a policy


def test_without_a_policy_only_forbidding_rules_count(place):
    rules(place, 'prefix_rule(pattern=["echo"], decision="prompt")\n'
                 'prefix_rule(pattern=["touch"], decision="allow")\n')
    assert place.run("--", "echo", "x").stdout == "x\n"
    assert place.run("--", "touch", f"{place.outside}/file").returncode != 0  # in the sandbox
    assert place.run("--", "rm", "-f", "missing").returncode == 0


def test_a_broken_file_might_have_forbidden_it(place):
    rules(place, "prefix_rule(pattern=[")
    ran = place.run("--", "echo", "x")
    assert ran.returncode == 126 and "test.rules:1" in ran.stderr


def test_a_rule_may_allow_without_a_sandbox(place):
    rules(place, 'prefix_rule(pattern=["touch"], decision="allow")\n')
    assert place.run("-a", "on-request", "--", "touch", f"{place.outside}/file").returncode == 0
    assert (place.outside / "file").exists()


# --- once more


def refused(place):
    """A command that its sandbox refuses something."""
    return ["sh", "-c", f"echo before; echo new > {place.outside}/file && echo after"]


def test_retry_with_the_smallest_grant(place, person):
    (place.outside / "file").write_text("old\n")
    process, question = person.ask("--json", "-a", "on-request", "--", *refused(place),
                                   question=AGAIN)
    assert f"the sandbox refused writing {place.outside}/file" in question
    assert f"and beyond that writing {place.outside}/file\n" in question  # the file, not its folder
    assert "[u]" not in question
    person.say("y\n")
    out, _ = finish(process, 0)
    result = json.loads(out)
    assert (place.outside / "file").read_text() == "new\n"
    assert result["end"] == "exited" and result["stdout"] == "before\nafter\n"
    first, second = result["approval"]["attempts"]
    assert first["place"] == "sandbox" and first["widened"] is None
    assert first["result"]["end"] == "denied" and first["result"]["stdout"] == "before\n"
    assert second["place"] == "widened"
    assert second["widened"] == f"writing {place.outside}/file"
    assert second["result"]["stdout"] == "before\nafter\n"
    [asked] = result["approval"]["questions"]
    assert asked["kind"] == "retry" and asked["answer"]["by"] == "terminal"


def test_a_new_file_needs_its_folder(place, person):
    process, question = person.ask("-a", "on-request", "--", *refused(place), question=AGAIN)
    assert f"and beyond that writing {place.outside}\n" in question
    person.say("y\n")
    out, err = finish(process, 0)
    assert out == b"before\nbefore\nafter\n" and b"once more, with writing" in err
    assert (place.outside / "file").read_text() == "new\n"


def test_no_retry_leaves_the_denial(place, person):
    process, _ = person.ask("--json", "-a", "on-request", "--", *refused(place), question=AGAIN)
    person.say("n\n")
    out, _ = process.communicate(timeout=WAIT)
    result = json.loads(out)
    assert process.returncode == result["shell_exit_code"] != 0
    assert result["end"] == "denied" and len(result["approval"]["attempts"]) == 1
    assert result["approval"]["questions"][0]["answer"]["decision"] == "denied"
    assert not (place.outside / "file").exists()


def test_at_most_one_retry(place, person):
    """What is granted for the first denial does not help against the second."""
    script = f"echo x > {place.outside}/a || exit 1; echo x > {place.home}/b || exit 2"
    process, _ = person.ask("-a", "on-request", "--", "sh", "-c", script, question=AGAIN)
    person.say("y\n")
    _, err = finish(process, 2)
    assert err.count(b"once more") == 1
    assert (place.outside / "a").exists() and not (place.home / "b").exists()


def test_without_a_sandbox_is_only_offered_to_who_wants_that(place, person):
    process, question = person.ask("-a", "granular", "--", *refused(place), question=AGAIN)
    assert "[y]" in question and "[u]" not in question
    person.say("n\n")
    process.communicate(timeout=WAIT)
    process, question = person.ask("--yes-means-unsandboxed", "-a", "granular", "--", *refused(place), question=AGAIN)
    assert "[y]" in question and "[u] yes, this once and without any sandbox" in question
    person.say("u\n")
    _, err = finish(process, 0)
    assert b"once more, with no sandbox" in err
    assert (place.outside / "file").exists()


@pytest.mark.parametrize("policy", ["untrusted", "on-request", "granular"])
def test_words_alone_widen_nothing(place, person, policy):
    """A command that has its caller's yes says that it was refused what it wants."""
    rules(place, 'prefix_rule(pattern=["sh"], decision="prompt")\n')
    for path in (place.home / ".bashrc", place.outside / "x"):
        said = f"touch: cannot touch '{path}': Read-only file system"
        script = f'echo "{said}" >&2; echo x > {path} 2>/dev/null; exit $((1))'
        before = sorted(place.home.rglob("*"))
        process, question = person.ask("-a", policy, "--", "sh", "-c",
                                       script if path.name == ".bashrc" else script.replace("echo x >", "echo"))
        assert "without a sandbox" not in question
        person.say("y\n")
        finish(process, 1)
        assert not path.exists()


def test_the_first_yes_never_reaches_what_belongs_to_cordon(place, person):
    place.config("")
    script = f"echo 'sandbox_mode = \"danger-full-access\"' > {place.home}/.config/cordon/config.toml"
    process, _ = person.ask("-a", "untrusted", "--", "sh", "-c", script)
    person.say("y\n")
    _, err = process.communicate(timeout=WAIT)
    assert process.returncode and b"once more" not in err
    assert (place.home / ".config/cordon/config.toml").read_text() == ""


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".vscode/tasks.json", ".husky/pre-commit"])
def test_what_others_run_is_not_offered(place, name):
    file = place.outside / name
    file.parent.mkdir(parents=True)
    file.write_text("old")
    ran = place.run("-a", "on-request", "--", "sh", "-c", f"echo new > {file}; exit $((1))",
                    start_new_session=True)
    assert ran.returncode == 1 and "asked" not in ran.stderr and file.read_text() == "old"


def test_a_yes_to_a_git_directory_is_none_to_what_git_runs(place):
    """While it runs: the data that a commit writes may be opened, hooks and settings are not asked about."""
    git = place.ws / ".git"
    (git / "hooks").mkdir(parents=True)
    (git / "config").write_text("")
    words = hook(place, f"cat >> {place.base}/questions\necho '{{\"decision\": \"approved\"}}'\n")
    script = "for f in index.lock hooks/pre-commit config config.lock; do echo x > .git/$f; done 2>/dev/null"
    place.run("--watch", "ask", *words, "--", "sh", "-c",  # on-request by itself
              script + "; mv .git/config.lock .git/config", start_new_session=True)
    assert (git / "index.lock").exists() and len((place.base / "questions").read_text().splitlines()) == 1
    assert not list((git / "hooks").iterdir()) and (git / "config").read_text() == ""


def test_the_config_brings_the_originals_yes_back(place, person):
    place.config("yes_means_unsandboxed = true\n")
    process, question = person.ask("-a", "untrusted", "--", *refused(place))
    assert "once more without a sandbox, should it refuse something" in question
    person.say("y\n")
    out, _ = finish(process, 0)
    assert out == b"before\nbefore\nafter\n"
    assert (place.outside / "file").exists()


def test_a_path_that_is_denied_on_purpose_is_not_offered(place):
    (place.ws / "secret").write_text("x")
    ran = place.run("-a", "granular", "--deny", "secret", "--", "cat", "secret",
                    start_new_session=True)
    assert ran.returncode == 1 and "asked" not in ran.stderr


def test_time_and_signals_are_no_reason_to_retry(place):
    script = f"echo x > {place.outside}/file; "
    for end, words, code in (("exec sleep 1000", ["--timeout", "200ms"], 124),
                             ("kill -KILL $$", [], 137)):
        result = place.json("run", "--json", *words, "-a", "granular", "--", "sh", "-c",
                            script + end, code=code, start_new_session=True)
        assert result["end"] in ("timed-out", "signaled", "denied")
        assert result["approval"] is None


def test_network_is_offered(place, person):
    process, question = person.ask(
        "-a", "on-request", "--", "python3", "-c",
        "import socket; socket.create_connection(('192.0.2.1', 9), 1)", question=AGAIN)
    assert "beyond that the network" in question
    person.say("n\n")
    finish(process, 1)


# --- a hook


def hook(place, text):
    file = place.base / "hook"
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return ["--approval-hook", file]


def test_a_hook_says_yes_and_gets_the_question(place):
    words = hook(place, f"cat > {place.base}/question\necho '{{\"decision\": \"approved\"}}'\n")
    ran = place.run(*words, *asking(place), start_new_session=True)
    assert ran.returncode == 0 and ran.stdout == "hello there\n"
    question = json.loads((place.base / "question").read_text())
    assert question["argv"] == ["echo", "hello there"] and question["cwd"] == str(place.ws)
    assert question["kind"] == "command" and "it is loud" in question["reason"]
    assert question["available_decisions"] == ["approved", "denied", "abort"]


@pytest.mark.parametrize("script, message", [
    ("echo '{\"decision\": \"denied\", \"reason\": \"not today\"}'", "no (by hook): not today"),
    ("exit 3", "it ended with 3"),
    ("echo sorry >&2; exit 3", "it ended with 3: sorry"),
    ("echo approved", "line 1"),
    ("true", "line 1"),
    ("echo '{\"decision\": \"maybe\"}'", "not one of the decisions offered: approved, denied, abort"),
    ("echo '{\"decision\": \"approved_without_sandbox\"}'", "not one of the decisions offered"),
    ("echo '{\"decision\": \"approved\"}'; exit 1", "it ended with 1"),
    ("exec sleep 1000", "did not answer within"),
    ("kill -9 $$", "it ended with 137"),
])
def test_whatever_else_a_hook_does_is_a_no(place, script, message):
    words = ["--approval-timeout", "300ms"] if "sleep" in script else []
    ran = place.run(*hook(place, script + "\n"), *words, *asking(place), start_new_session=True)
    assert ran.returncode == 126 and ran.stdout == ""
    assert message in ran.stderr or "nobody answered in time" in ran.stderr


def test_a_command_cannot_change_the_hook(place):
    """It runs outside, and is asked again after the first attempt."""
    words = hook(place, "echo '{\"decision\": \"denied\"}'\n")
    file = place.ws / "hook"
    words[1].rename(file)
    before = file.read_text()
    ran = place.shell("echo 'touch outside' > hook; mv hook x; rm -r hook; false",
                      "--approval-hook", "./hook", "-a", "on-request", start_new_session=True)
    assert ran.returncode == 1 and file.read_text() == before


def test_a_planted_hook_answers_nothing(place):
    """By name it is sought where only the administrator can write; its interpreter is no command's either."""
    (place.ws / "bin").mkdir()
    for name in ("my-hook", "sh", "python3"):
        (place.ws / "bin" / name).write_text('#!/bin/sh\necho \'{"decision": "approved"}\'\n')
        (place.ws / "bin" / name).chmod(0o755)
    env = {"PATH": f"{place.ws}/bin:{place.env['PATH']}"}
    ran = place.run("--approval-hook", "my-hook", *asking(place), env=env, start_new_session=True)
    assert ran.returncode == 125 and "only the administrator can write" in ran.stderr and not ran.stdout
    words = hook(place, "x")
    words[1].write_text('#!/usr/bin/env python3\nprint(\'{"decision": "denied", "reason": "real"}\')\n')
    ran = place.run(*words, *asking(place), env=env, start_new_session=True)
    assert ran.returncode == 126 and "real" in ran.stderr and not ran.stdout
    words[1].write_text(f"#!{place.ws}/bin/sh\n")
    ran = place.run(*words, *asking(place), env=env, start_new_session=True)
    assert ran.returncode == 125 and "which a command may be able to write" in ran.stderr


def test_a_hook_gets_nothing_that_changes_what_runs(place):
    words = hook(place, "pwd >> $0.seen; env >> $0.seen; echo '{\"decision\": \"denied\"}'\n")
    place.run(*words, *asking(place), start_new_session=True,
              env={"PYTHONPATH": "x", "BASH_ENV": "y", "LD_LIBRARY_PATH": "z", "MINE": "1"})
    seen = (place.base / "hook.seen").read_text().splitlines()
    assert seen[0] == "/" and "MINE=1" in seen
    assert not [line for line in seen if line.startswith(("PYTHONPATH", "BASH_ENV", "LD_"))]


def test_a_hook_may_leave_it_to_the_terminal(place, person):
    words = hook(place, "echo '{\"decision\": \"ask\"}'\n")
    process, _ = person.ask(*words, *asking(place))
    person.say("y\n")
    finish(process, 0)


def test_a_hook_that_is_not_there_is_an_error(place):
    ran = place.run("--approval-hook", "/missing/hook", *asking(place), start_new_session=True)
    assert ran.returncode == 125 and "/missing/hook" in ran.stderr


def answering_hook(place, answer):
    """Notes each question in a file, and gives this answer to all."""
    words = hook(place, f"cat >> {place.base}/questions\necho >> {place.base}/questions\n"
                        f"echo '{{\"decision\": \"{answer}\"}}'\n")
    return words, place.base / "questions"


def questions_of(file):
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def test_a_hook_allows_a_prefix_for_good(place):
    words, asked = answering_hook(place, "approved_execpolicy_amendment")
    make = [*words, "-a", "untrusted", "--", "sh", "-c", "touch x; echo made"]
    ran = place.run(*make, start_new_session=True)
    assert ran.returncode == 0 and ran.stdout == "made\n", ran
    [question] = questions_of(asked)
    assert question["proposed_execpolicy_amendment"] == ["touch", "x"]
    assert (place.home / ".config/cordon/rules/default.rules").read_text() == \
        'prefix_rule(pattern=["touch", "x"], decision="allow", sandbox="keep")\n'
    assert place.run(*words, "-a", "untrusted", "--", "touch", "x",
                     start_new_session=True).returncode == 0
    assert len(questions_of(asked)) == 1  # the rule has answered


def test_a_hook_is_offered_the_smallest_grant(place):
    words, asked = answering_hook(place, "approved")
    file = place.outside / "file"
    file.write_text("old\n")
    ran = place.shell(f"echo new > {file}", *words, "-a", "on-request", start_new_session=True)
    assert ran.returncode == 0 and file.read_text() == "new\n"
    [question] = questions_of(asked)
    assert question["kind"] == "retry" and f"writing {file}" in question["covers"]
    words, _ = answering_hook(place, "denied")
    ran = place.shell(f"echo newer > {file}", *words, "-a", "on-request", start_new_session=True)
    assert ran.returncode != 0 and file.read_text() == "new\n"


def test_a_hook_is_not_asked_about_what_is_forbidden(place):
    rules(place, 'prefix_rule(["touch"], decision="forbidden", justification="no")\n')
    words, asked = answering_hook(place, "approved")
    ran = place.run(*words, "-a", "untrusted", "--", "touch", "x", start_new_session=True)
    assert ran.returncode == 126 and "forbids it: no" in ran.stderr
    assert questions_of(asked) == [] and not (place.ws / "x").exists()


def test_one_command_is_a_whole_session(place):
    """So there is nothing to remember a yes for: by a hook, as at the terminal, it is not offered."""
    words, asked = answering_hook(place, "approved_for_session")
    ran = place.run(*words, *asking(place), start_new_session=True)
    assert ran.returncode == 126 and "not one of the decisions offered" in ran.stderr
    assert "approved_for_session" not in questions_of(asked)[0]["available_decisions"]


def test_the_config_file_may_choose_the_policy(place):
    """Every switch counts; the option's word alone means the switches of the file."""
    rules(place, 'prefix_rule(["echo"], decision="prompt")\n')
    words, asked = answering_hook(place, "approved")
    switches = "sandbox_approval = true, mcp_elicitations = true, rules"
    place.config(f"approval_policy = {{ granular = {{ {switches} = false }} }}\n")
    for option in ([], ["-a", "granular"]):
        ran = place.run(*words, *option, "--", "echo", "hi", start_new_session=True)
        assert ran.returncode == 126 and "switched off" in ran.stderr
    place.config(f"approval_policy = {{ granular = {{ {switches} = true }} }}\n")
    ran = place.run(*words, "--", "echo", "hi", start_new_session=True)
    assert ran.returncode == 0 and len(questions_of(asked)) == 1
    place.config('approval_policy = "untrusted"\n')
    assert place.run(*words, "-a", "never", "--", "echo", "hi",
                     start_new_session=True).returncode == 126
    place.config("approval_policy = { granular = { rules = 1 } }\n")
    ran = place.run("--", "true")
    assert ran.returncode == 125 and "config.toml:1: rules should be true or false" in ran.stderr


def test_a_hook_needs_a_policy(place):
    ran = place.run("--approval-hook", "/bin/true", "--", "true")
    assert ran.returncode == 125 and "needs --ask-for-approval" in ran.stderr


# --- the log


def test_questions_and_answers_are_in_the_log(place, person):
    process, _ = person.ask("-a", "on-request", "--", *refused(place), question=AGAIN)
    person.say("y\n")
    finish(process, 0)
    lines = place.cordon("log", "--json").stdout.splitlines()
    records = {record["event"]: record["body"] for record in map(json.loads, lines)}
    assert [json.loads(line)["event"] for line in lines] == [
        "begin", "denied", "asked", "answered", "retried", "output", "output", "end"]
    assert records["asked"]["covers"].endswith(f"writing {place.outside}")
    assert records["answered"] == {"decision": "approved", "by": "terminal", "rule": None}
    assert records["retried"]["grant"] == f"writing {place.outside}"
    place.run(*asking(place), start_new_session=True)
    assert "rejected" in place.cordon("log", "--denied").stdout
