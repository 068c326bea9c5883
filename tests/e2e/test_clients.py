"""`cordon mcp install` and `cordon integrate`: what is written into the files of MCP clients and what of them stays, what is
refused, and what the hooks do with what a model wrote. The clients themselves are in scripts/try-mcp-clients."""
import json
import os
import shutil
import stat
import subprocess
import tomllib

import pytest

from harness import CORDON

JSON = '// mine\n{\n  "theme": "dark", // as I like it\n  "mcpServers": {\n    "git": {"command": "g"}\n  },\n  "n": 1.50\n}\n'
TOML = '# mine\nmodel = "gpt-5"\n\n[mcp_servers.git]\ncommand = "g" # c\n'
FILES = {"claude": (".claude.json", JSON), "codex": (".codex/config.toml", TOML), "cursor": (".cursor/mcp.json", JSON),
         "gemini": (".gemini/settings.json", JSON), "vscode": (".config/Code/User/mcp.json", JSON.replace("mcpServers", "servers"))}
SHELLS = {"claude": (".claude/settings.json", JSON), "cursor": (".cursor/hooks.json", '{"version": 1}\n'), "codex": (".codex/environments.toml", None),
          "gemini": (".gemini/policies/cordon.toml", None)}
WAYS = [*(("mcp install", name) for name in FILES), *(("integrate", name) for name in SHELLS)]


def snapshot(folder):
    """Everything below, with its mode; what cordon itself keeps elsewhere is not looked at."""
    return {str(path): (stat.S_IMODE(path.lstat().st_mode), os.readlink(path) if path.is_symlink() else
                        path.read_bytes() if path.is_file() else None)
            for path in sorted(folder.rglob("*")) if ".cache" not in path.parts}


def call(place, way, name, *options, code=0, **kwargs):
    ran = place.cordon(*way.split(), name, *options, **kwargs)
    assert ran.returncode == code, ran
    return ran.stderr if code else ran.stdout


def file_of(place, way, name):
    file, text = {"mcp install": FILES, "integrate": SHELLS}[way][name]
    path = place.home / file
    if text:  # without it there is no folder of the client's either
        path.parent.mkdir(parents=True, exist_ok=True)
    return path, text


def without_comments(text):
    return json.loads("\n".join(line.split(" //")[0] for line in text.splitlines() if not line.startswith("//")))


def read(path):
    """With the entry of Cordon's taken out: (it, the rest)."""
    whole = tomllib.loads(path.read_text()) if path.suffix == ".toml" else without_comments(path.read_text())
    servers = whole.get("mcp_servers") or whole.get("mcpServers") or whole.get("servers")
    return servers.pop("cordon"), whole


# --- what is written, and what stays ---


@pytest.mark.parametrize("way,name", WAYS)
def test_it_is_written_once_and_taken_out_without_a_trace(place, way, name):
    path, text = file_of(place, way, name)
    if text:
        path.write_text(text)
        path.chmod(0o640)
    before = snapshot(place.home)
    assert "wrote" in call(place, way, name)
    written = snapshot(place.home)
    assert written != before
    assert stat.S_IMODE(path.stat().st_mode) == (0o640 if text else 0o600)
    assert "nothing to do" in call(place, way, name)
    assert snapshot(place.home) == written
    if text:
        assert (path.parent / f"{path.name}.cordon-backup-1").read_text() == text
    assert "took" in (out := call(place, way, name, "--undo")) or "removed" in out
    assert not (place.home / ".config/cordon/clients").exists()
    shutil.rmtree(place.home / ".config/cordon", ignore_errors=True)
    if "Code" not in str(path) and (place.home / ".config").exists():
        (place.home / ".config").rmdir()  # made for Cordon's own
    assert snapshot(place.home) == before
    assert "nothing to do" in call(place, way, name, "--undo")


def test_what_was_empty_stays_as_it_was(place):
    for name, text in (("claude", '{\n  "mcpServers": {}\n}\n'), ("cursor", "{}\n"), ("gemini", '{"mcpServers": {}, "a": 1}')):
        path, _ = file_of(place, "mcp install", name)
        path.write_text(text)
        call(place, "mcp install", name)
        call(place, "mcp install", name, "--undo")
        assert path.read_text() == text and [file for file in path.parent.iterdir() if "backup" in file.name] == []
        call(place, "mcp install", name)
        path.write_text(path.read_text() + "// mine")  # it is not what was written any more
        call(place, "mcp install", name, "--undo")
        assert without_comments(path.read_text().replace("// mine", "")) == json.loads(text)


def test_the_very_bytes_come_back(place):
    """Of texts whose white space an editor of JSON would not find again; also when it was written twice."""
    ways = [("mcp install", "claude"), ("integrate", "claude"), ("integrate", "cursor")] * 9
    for text in ("", "\n\n", "// mine", "/* mine */\n", "{\n}\n", "{ }", "{ /* c */ }", '{ "mcpServers" : { } }', "\ufeff{}", "{\r\n}\r\n",
                 '{"mcpServers": {\n\n}, }', '{"a": [1,2 ,],// c\n}', '{"env":{ },\t"n":1.0e5}'):
        way, name = ways.pop()
        path, _ = file_of(place, way, name)
        path.write_bytes(text.encode())
        call(place, way, name)
        if way == "mcp install":
            call(place, way, name, "--profile", ":read-only")
        call(place, way, name, "--undo")
        assert path.read_bytes() == text.encode(), (way, name)
        for kept in path.parent.glob("*-backup-*"):
            kept.unlink()


def test_what_was_edited_is_kept(place):
    path, _ = file_of(place, "integrate", "gemini")
    call(place, "integrate", "gemini")
    path.write_text(path.read_text().replace("999", "1"))
    edited = path.read_text()
    assert "backup-1" in call(place, "integrate", "gemini", "--undo")
    assert not path.exists() and (path.parent / "cordon.toml.cordon-backup-1").read_text() == edited


@pytest.mark.parametrize("name", FILES)
def test_the_entry_starts_this_cordon(place, name):
    path, text = file_of(place, "mcp install", name)
    path.write_text(text)
    call(place, "mcp install", name, "--profile", "read-only")
    entry, rest = read(path)
    assert (entry["command"], entry["args"]) == (str(CORDON.resolve()), ["mcp", "--profile", "read-only"])
    assert rest == (tomllib.loads(text) if name == "codex" else without_comments(text))
    call(place, "mcp install", name, "--url", "http://127.0.0.1:7778/mcp", "--token-env", "MINE")
    entry, _ = read(path)
    assert "http://127.0.0.1:7778/mcp" in (entry.get("url"), entry.get("httpUrl")) and "command" not in entry
    assert "MINE" in str(entry.get("headers") or entry["bearer_token_env_var"])
    told = json.loads(call(place, "mcp install", name, "--undo", "--json"))
    assert told["done"] == "removed" and told["file"] == str(path)


def test_what_the_server_is_to_get_is_looked_at(place):
    place.config("[permissions.mine]\nextends = ':workspace'\n", "ws/other.toml")
    call(place, "mcp install", "claude", "--config", "other.toml", "--profile", "mine")
    assert read(place.home / ".claude.json")[0]["args"] == ["mcp", "--profile", "mine", "--config", str(place.ws / "other.toml")]
    call(place, "mcp install", "claude", "--layer")
    assert read(place.home / ".claude.json")[0]["args"] == ["mcp", "--layer"]
    call(place, "mcp install", "claude", "--layer=mine")
    assert read(place.home / ".claude.json")[0]["args"] == ["mcp", "--layer=mine"]
    assert "at_end" in call(place, "mcp install", "claude", "--layer", "--at-end=drop", code=125)
    for options in (("--profile", "none-such"), ("--config", "none-such")):
        assert "none-such" in call(place, "mcp install", "codex", *options, code=125)
    assert not (place.home / ".codex").exists()


def test_a_project_has_its_own(place):
    for name, file in (("claude", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("gemini", ".gemini/settings.json"), ("vscode", ".vscode/mcp.json")):
        call(place, "mcp install", name, "--project")
        assert read(place.ws / file)[0]["args"] == ["mcp"]
        call(place, "mcp install", name, "--project", "--undo")
        assert not (place.ws / file).exists()
    assert "leave --project out" in call(place, "mcp install", "codex", "--project", code=125)


def test_where_clients_are_told_to_keep_it(place):
    folders = {"CODEX_HOME": "codex", "CLAUDE_CONFIG_DIR": "claude", "XDG_CONFIG_HOME": "vscode", "GEMINI_CLI_HOME": "gemini"}
    for variable, name in folders.items():
        folder = place.base / name
        folder.mkdir()
        call(place, "mcp install", name, env={variable: str(folder)})
        assert [path.name for path in folder.rglob("*") if path.is_file()] == [FILES[name][0].split("/")[-1]]
        assert "not an absolute path" in call(place, "mcp install", name, env={variable: "here"}, code=125)


def test_an_entry_is_told_of_where_its_client_is_not_found(place):
    """As where the client is on the PATH of another login; Claude Code has its file right in the home directory."""
    call(place, "mcp install", "claude")
    listed = place.cordon("mcp", "install", env={"PATH": "/nowhere"}).stdout
    assert f"claude       {place.home}/.claude.json\n             is there\n" in listed
    assert "cursor       not found on this machine\n" in listed
    assert 'there is "cordon mcp install"' in place.cordon("mcp", "instal").stderr


def test_without_a_client_it_only_tells(place):
    program = place.base / "bin/codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (place.home / ".gemini").mkdir()
    (place.home / ".gemini/settings.json").write_text("{")
    before = snapshot(place.home)
    env = {"PATH": f"{program.parent}:{place.env['PATH']}"}
    for way in (("mcp", "install"), ("integrate",)):
        told = {one["client"]: one for one in place.json(*way, "--json", env=env)}
        assert told["codex"]["found"] and told["codex"]["program"] == str(program) and told["codex"]["state"] == "missing"
        assert told["gemini"]["found"] and told["gemini"]["state"] == ("unreadable" if "mcp" in way else "missing")
        assert not told["cursor"]["found"]
        assert "Nothing was written" in place.cordon(*way, env=env).stdout
    assert told["vscode"]["state"] == "unsupported" and "write_file" in told["gemini"]["does_not_cover"]
    assert snapshot(place.home) == before


# --- what is refused ---


def link(path, place):
    shutil.move(path, place.outside / "real")
    path.symlink_to(place.outside / "real")


def folder_elsewhere(path, place):
    shutil.move(path.parent, place.outside / "folder")
    path.parent.symlink_to(place.outside / "folder")


def second_name(path, place):
    os.link(path, place.outside / "other")


def pipe(path, place):
    path.unlink()
    os.mkfifo(path)


REFUSED = {
    "symlink": (link, "is a symlink"), "folder": (folder_elsewhere, "out of"), "hard link": (second_name, "other names"), "pipe": (pipe, "no regular file"),
    "open folder": (lambda path, place: path.parent.chmod(0o777), "everybody may write"),
    "broken": (lambda path, place: path.write_text(path.read_text() + "]["), "line"),
    "foreign": (lambda path, place: path.write_text('[mcp_servers.cordon]\ncommand = "mine"\n' if path.suffix == ".toml" else
                                                    '{"mcpServers": {"cordon": {"command": "mine"}}}'), "did not write"),
}


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("how", REFUSED)
def test_nothing_is_written_to_what_is_not_as_it_should_be(place, how, name):
    config = place.home / "folder"
    config.mkdir()
    path = config / FILES[name][0].split("/")[-1]
    path.write_text(FILES[name][1])
    spoil, words = REFUSED[how]
    spoil(path, place)
    if how == "folder":
        env = {}  # the user's own folder, which leads elsewhere
        shutil.rmtree(place.home / ".codex", ignore_errors=True)
        (place.home / ".codex").symlink_to(place.outside / "folder")
        name = "codex"
    else:
        env = {"CODEX_HOME": str(config), "CLAUDE_CONFIG_DIR": str(config)}
    before = snapshot(place.base)
    for options in ((), ("--undo",)):
        said = call(place, "mcp install", name, *options, env=env, code=125)
        assert words in said or (how == "broken" and ":" in said), said
    assert snapshot(place.base) == before


def test_the_file_of_another_user_stays(place):
    if os.geteuid() != 0:
        return  # only root can give files away
    path, text = file_of(place, "mcp install", "claude")
    path.write_text(text)
    os.chown(path, 64999, -1)
    assert "run this as that user" in call(place, "mcp install", "claude", code=125)
    assert path.read_text() == text


def test_a_program_that_commands_can_change_is_not_named(place):
    for folder in (place.ws, place.tmp):
        other = folder / "cordon"
        shutil.copy(CORDON, other)
        ran = place.cordon("mcp", "install", "claude", program=other)
        assert ran.returncode == 125 and "install Cordon elsewhere" in ran.stderr
        for words in (("mcp", "install", "claude", "--undo"), ("mcp", "install"), ("integrate",)):
            assert place.cordon(*words, program=other).returncode == 0
    assert not (place.home / ".claude.json").exists()
    call(place, "mcp install", "claude")
    place.config("permissions = nonsense\n")
    call(place, "mcp install", "codex", code=125)
    assert "removed" in call(place, "mcp install", "claude", "--undo"), "what is wrong there is in nobody's way"


def test_what_is_asked_for_wrongly_is_said(place):
    for words, said in ((("claud",), "claude, codex, cursor"), (("claude", "codex"), "one client at a time"), (("--undo",), "of which client"),
                        (("claude", "--undo", "--print"), "contradict"), (("claude", "--url", "x"), "http://"), (("claude", "--approve"), "when it asks"),
                        (("claude", "--listen", "http://127.0.0.1:7778"), "install --url"), (("codex", "--session-idle", "1m"), "install --url"),
                        (("codex", "--token-env", "A"), "needs --url"), (("codex", "--url", "http://h/mcp", "--token-env", "a b"), "no name")):
        assert said in call(place, "mcp install", *words, code=125)
    assert "cordon mcp install" in call(place, "mcp", "--print", code=125)
    assert "no hook for its agent" in call(place, "integrate", "vscode", code=125)


def test_what_is_printed_is_what_is_written(place):
    for way, name in WAYS:
        path, _ = file_of(place, way, name)
        shown = call(place, way, name, "--print")
        assert not path.exists()
        call(place, way, name)
        assert path.read_text() == shown
        call(place, way, name, "--undo")


@pytest.mark.parametrize("is_there", [False, True])
def test_no_command_changes_what_clients_start(place, is_there):
    """Nor where the home directory is the workspace; and so not what is written there by Cordon."""
    paths = [place.home / file for file, _ in (*FILES.values(), *SHELLS.values())] + [place.home / ".config/cordon/clients/claude-shell"]
    for way, name in WAYS if is_there else ():
        call(place, way, name)
    before = snapshot(place.home)
    script = "".join(f"mkdir -p {path.parent}; echo x >{path}; rm -f {path}; mv {path.parent} {path.parent}-2\n" for path in paths)
    place.shell(f"echo yes >{place.home}/can\n{script}", "-C", place.home, "--no-audit")
    assert (place.home / "can").exists()
    after = {path: what for path, what in snapshot(place.home).items() if what[1] is not None and not path.endswith("/can")}
    assert after == {path: what for path, what in before.items() if what[1] is not None}


# --- what a model wrote, in the hands of hooks ---

COMMANDS = ["echo one two", "printf '%s|' \"it's\" 'a \"b\"' `echo c` $((1+2)) \\$x", "cat <<'END'\nhere $HOME 'x'\nEND\n", "# nothing\n\necho after",
            "echo a; (exit 3); echo $?", "for i in 1 2; do echo $i; done | tac", "echo $'a\\tb' \u00e4\U0001f600", "-x 2>/dev/null; echo dash",
            "echo 'unbalanced", "x='; touch ../outside/broken; '; echo \"$x\"", "exit 7", "cat", "echo ${#0}" + "y" * 3000]


def test_cursor_s_terminal_is_refused(place):
    ran = place.cordon("integrate", "hook", "cursor", text=json.dumps({"command": "ls", "cwd": str(place.ws)}))
    answer = json.loads(ran.stdout)
    assert ran.returncode == 0 and answer["permission"] == "deny" and "exec_command" in answer["agent_message"]
    for text in ("", "garbage", "[]", "null", "[" * 100000, '{"command": "a\\u0000b"}'):
        ran = place.cordon("integrate", "hook", "cursor", text=text)
        assert ran.returncode == 2 and ran.stdout == "" and "was not run" in ran.stderr
    assert place.cordon("integrate", "hook", "none", text="{}").returncode == 2


class Claude:
    """Starts what is in the place of a shell as Claude Code 2.1.330 does."""

    def __init__(self, place):
        call(place, "integrate", "claude")
        settings = json.loads((place.home / ".claude/settings.json").read_text())
        self.place, self.shell, self.count = place, settings["env"]["CLAUDE_CODE_SHELL_PREFIX"], 0
        self.cwd = place.ws

    def start(self, text, agent="agent"):
        """By a process in the directory that Claude Code was started in."""
        env = {**self.place.env, "AI_AGENT": f"claude-code_2-1-330_{agent}", "SHELL": "/bin/bash", "TMPDIR": ""}
        return subprocess.run(["sh", "-c", 'd=$1; shift; (cd "$d" && exec "$@")\n(exit $?)', "sh", self.cwd, "sh", "-c",
                               'exec "$@"', "sh", self.shell, *text], cwd=self.place.ws, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=100)

    def bash(self, command):
        self.count += 1
        file = f"/tmp/claude-{os.getpid():x}{self.count:x}-cwd"
        quoted = "'" + command.replace("'", "'\"'\"'") + "'"
        ran = self.start([f"source /none 2>/dev/null || true && eval {quoted} < /dev/null && pwd -P >| {file}"])
        if os.path.exists(file):
            with open(file, encoding="utf-8") as written:
                self.cwd = written.read().strip() or self.cwd
            os.unlink(file)
        return ran


def test_claude_s_commands_run_in_the_sandbox_of_its_directory(place):
    claude = Claude(place)
    (place.ws / "sub").mkdir()
    assert claude.bash("echo it\\'s \"$0\"; pwd").stdout.endswith(f"{place.ws}\n")
    assert claude.bash("cd sub").returncode == 0
    assert claude.cwd == str(place.ws / "sub")
    ran = claude.bash(f"touch ../beside made; touch {place.outside}/made; ls /tmp")
    assert ran.returncode == 0 and (place.ws / "beside").exists() and (place.ws / "sub/made").exists()
    assert not (place.outside / "made").exists() and len(ran.stdout.split()) == 1, "the files of earlier commands are gone"
    assert claude.bash("exit 7").returncode == 7
    claude.bash("cd /etc")
    ran = claude.bash("pwd; touch here && echo made")
    assert ran.stdout == "/etc\n", "a command that went elsewhere does not take the workspace with it"


def test_claude_s_commands_say_the_same_in_a_sandbox(place):
    claude = Claude(place)
    for command in COMMANDS:
        quoted = "'" + command.replace("'", "'\"'\"'") + "'"
        plain = subprocess.run(["bash", "-c", f"eval {quoted} < /dev/null"], cwd=place.ws, env=place.env, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=100)
        inside = claude.bash(command)
        assert (inside.returncode, inside.stdout) == (plain.returncode, plain.stdout), inside
    ran = claude.start(["-x"])
    assert ran.returncode == 127 and "-x" in ran.stderr, "no option of the shell"
    assert not (place.outside / "broken").exists()


@pytest.mark.parametrize("shell", ["trap : EXIT; '{}' \"$0\"", "'{}' \"$0\"; exit $?"])
def test_the_workspace_does_not_follow_a_shell_that_stays_between(place, shell):
    claude = Claude(place)
    (place.ws / "sub").mkdir()
    ran = subprocess.run(["sh", "-c", '(cd sub && exec "$@"); exit $?', "sh", "bash", "-c", shell.format(claude.shell), "pwd; touch ../beside"],
                         cwd=place.ws, env={**place.env, "AI_AGENT": "x"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=100)
    assert ran.stdout == f"{place.ws}/sub\n" and (place.ws / "beside").exists(), ran


def test_claude_s_own_programs_run_as_before(place):
    claude = Claude(place)
    assert claude.start([f"touch {place.outside}/hook; echo ran"], agent="harness").stdout == "ran\n"
    assert (place.outside / "hook").exists()
    for text, agent in ((f"touch {place.outside}/a", "agent"), (f"touch {place.outside}/a; : && pwd -P >| /tmp/x", "harness"),
                        (f"touch {place.outside}/a", "harness_x"), (f"touch {place.outside}/a", "")):
        claude.start([text], agent=agent)
        assert not (place.outside / "a").exists(), agent
    for words in ([], ["a", "b"]):
        assert claude.start(words).returncode == 125


@pytest.mark.parametrize("config", ["default_permissions = ':danger-full-access'\n", "default_permissions = ':read-only'\n",
                                    "default_permissions = 'mine'\n[permissions.mine]\nextends = ':workspace'\ntmp = 'host'\n"])
def test_claude_s_commands_have_the_configured_permissions(place, config):
    claude = Claude(place)
    place.config(config)
    ran = claude.bash(f"touch {place.outside}/made; touch here; mkdir -p /tmp; cd sub 2>/dev/null || cd /usr; pwd")
    assert ran.stdout == "/usr\n" and claude.cwd == "/usr", ran
    assert (place.outside / "made").exists() == ("danger" in config)
    assert (place.ws / "here").exists() == ("read-only" not in config)


def test_claude_s_command_runs_nowhere_else(place):
    """The directory that it was in is gone, or Claude Code is where nobody works."""
    claude = Claude(place)
    (place.ws / "sub").mkdir()
    claude.bash("cd sub")
    gone = f"cd {place.ws}/sub && rmdir ../sub && exec"
    ran = subprocess.run(["sh", "-c", f'({gone} "$@")\n(exit $?)', "sh", claude.shell, "touch here || true && touch there"], cwd=place.ws,
                         env={**place.env, "AI_AGENT": "x"}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
    assert ran.returncode != 0 and sorted(path.name for path in place.ws.iterdir()) == [], ran
    ran = subprocess.run(["sh", "-c", 'cd / && "$@"; exit $?', "sh", claude.shell, "echo ran"], env={**place.env, "AI_AGENT": "x"},
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 125 and "no workspace" in ran.stderr and ran.stdout == ""


def test_claude_s_own_sandbox_is_in_the_way(place):
    path, _ = file_of(place, "integrate", "claude")
    path.write_text('{"sandbox": {"enabled": true}}')
    assert "own sandbox off" in call(place, "integrate", "claude")
    path.write_text('{"sandbox": {"enabled": false}}')
    assert "own sandbox off" not in call(place, "integrate", "claude")


def test_claude_s_shell_is_made_only_where_nothing_else_is(place):
    path = place.home / ".config/cordon/clients/claude-shell"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert "was not made by Cordon" in call(place, "integrate", "claude", code=125)
    assert path.read_text() == "mine" and not (place.home / ".claude").exists()
    path.unlink()
    path.symlink_to("/old/cordon")
    call(place, "integrate", "claude")
    assert os.readlink(path) == str(CORDON.resolve())
