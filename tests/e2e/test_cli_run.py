"""`cordon run`: exit statuses, permissions, environment, messages."""
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from harness import CORDON, LAUNCHER, PIDS_OF_ROOT_BY

# --- exit statuses


@pytest.mark.parametrize("script, code", [
    ("exit 0", 0),
    ("exit 3", 3),
    ("exit 125", 125),
    ("kill -KILL $$", 128 + signal.SIGKILL),
    ("kill -TERM $$", 128 + signal.SIGTERM),
    ("kill -SEGV $$", 128 + signal.SIGSEGV),
])
@pytest.mark.no_userns
def test_exit_status_is_the_commands(place, script, code):
    ran = place.shell(script, "--profile", "read-only")
    assert ran.returncode == code
    assert ran.stdout == ""


def test_not_found_is_127(place):
    ran = place.run("--", "there-is-no-such-program")
    assert ran.returncode == 127
    assert "there-is-no-such-program" in ran.stderr
    assert "from PATH: No such file or directory" in ran.stderr
    assert "PATH" not in place.run("--", "./there-is-no-such-program").stderr


def test_not_executable_is_126(place):
    file = place.ws / "data"
    file.write_text("no program\n")
    ran = place.run("--", "./data")
    assert ran.returncode == 126
    assert "Permission denied" in ran.stderr


def test_a_folder_is_not_executable(place):
    assert place.run("--", place.ws).returncode == 126


@pytest.mark.parametrize("words, message", [
    (["--netwrok", "enabled", "--", "true"], "did you mean --network?"),
    (["--network", "enable", "--", "true"], "did you mean enabled?"),
    (["--network"], "--network: needs a value: restricted, proxied, enabled or host"),
    (["--json=yes", "--", "true"], "--json: takes no value"),
    (["-x", "--", "true"], "no option -x"),
    ([], "no command to run"),
    (["--"], "no command to run"),
    (["--timeout", "soon", "--", "true"], "--timeout: "),
    (["--max-memory", "much", "--", "true"], "--max-memory: "),
    (["--profile", "nope", "--", "true"], "no profile \"nope\""),
    (["--config", "missing.toml", "--", "true"], "missing.toml: No such file or directory"),
    (["-C", "missing", "--", "true"], "missing: No such file or directory"),
    (["-C", "/etc/passwd", "--", "true"], "not a directory"),
    (["--writable", "missing", "--", "true"], "missing: No such file or directory"),
    (["--writable", "*.c", "--", "true"], "can only deny"),
    (["--readable", ":everything", "--", "true"], ":everything"),
    (["--env", "=x", "--", "true"], "has no name"),
    (["--env", "NOT_SET_HERE", "--", "true"], "NOT_SET_HERE is not set here"),
    (["--env", "CORDON_LINUX_SANDBOX_EXE=/x", "--", "true"], "never passed on"),
    (["--sandbox", "require", "--profile", "danger-full-access", "--", "true"], "contradicts"),
    (["--sandbox", "disabled", "--deny", "/etc", "--", "true"], "cannot be kept"),
    (["--profile", "danger-full-access", "--network", "restricted", "--", "true"],
     "cannot be kept"),
])
@pytest.mark.no_userns
def test_wrong_calls_are_125_and_say_what_is_right(place, words, message):
    ran = place.run(*words)
    assert ran.returncode == 125
    assert message in ran.stderr
    assert ran.stderr.startswith("cordon: ") and ran.stderr.count("\n") == 1


def test_options_end_at_the_command(place):
    ran = place.run("printf", "%s\n", "--network", "-C", "--")
    assert ran.stdout == "--network\n-C\n--\n"


def test_help_teaches(place):
    """Examples first; --help in a few words, help in all that there are."""
    brief, whole = place.run("--help").stdout, place.cordon("help", "run").stdout
    for text in (brief, whole):
        assert text.startswith("Usage: cordon run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n  cordon run -- make test\n")
        assert max(map(len, text.splitlines())) <= 80
    assert brief.count("\n") < 100 < whole.count("\n")
    assert "\nMore: cordon help run, man cordon-run\n" in brief
    options = [set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", text, re.MULTILINE)) for text in (brief, whole)]
    assert options[0] | {"help"} == options[1]


def test_top_level_calls(place):
    assert "Commands:" in place.cordon("--help").stdout
    assert place.cordon("--version").stdout.startswith("cordon ")
    assert place.cordon().returncode == 125
    ran = place.cordon("rnu")
    assert ran.returncode == 125 and 'did you mean "run"?' in ran.stderr
    ran = place.cordon("--json", "run")
    assert ran.returncode == 125 and "options come behind a command" in ran.stderr


# --- permissions


def test_workspace_write_is_the_default(place):
    ran = place.shell(f'echo in >here; echo t >"$TMPDIR/there"; echo out >{place.outside}/file')
    assert ran.returncode != 0
    assert (place.ws / "here").read_text() == "in\n"
    assert (place.inside_tmp / "there").read_text() == "t\n"
    assert not (place.outside / "file").exists()


def test_a_refused_write_names_path_decider_and_remedy(place):
    ran = place.shell(f"echo out >{place.outside}/file")
    notes = [line for line in ran.stderr.splitlines() if line.startswith("cordon: ")]
    assert f"creating {place.outside}/file" in notes[0]
    assert "a guess" not in notes[0] and "built-in workspace-write" in notes[0]
    assert f"--writable {place.outside}." in notes[0] and len(notes) == 1
    assert place.shell(f"echo out >{place.outside}/file", "--writable",
                       place.outside).returncode == 0
    assert (place.outside / "file").read_text() == "out\n"


def test_a_refused_connection_names_the_option(place):
    script = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=10)"
    ran = place.run("--", "/usr/bin/python3", "-c", script)
    assert ran.returncode == 1
    assert "cordon: refused" in ran.stderr and "network restricted" in ran.stderr
    assert "--network enabled" in ran.stderr


def test_no_note_for_what_the_sandbox_did_not_refuse(place):
    ran = place.shell("cat nothing-here; ls -d /nothing/here; false")
    assert "cordon:" not in ran.stderr
    assert "cordon:" not in place.shell("echo sandbox permission denied >&2").stderr


def test_a_program_that_may_not_be_read_is_a_fact(place):
    ran = place.run("--deny", "/usr/bin/env", "--", "/usr/bin/env")
    assert ran.returncode == 126
    assert "cordon: refused: executing /usr/bin/env (--deny /usr/bin/env)" in ran.stderr


def test_read_only_profile(place):
    ran = place.shell("touch here || touch $HOME/here || cat /etc/passwd", "-p", "read-only")
    assert ran.returncode == 0 and "root:" in ran.stdout
    assert not (place.ws / "here").exists()


def test_writable_under_read_only(place):
    assert place.shell("echo x >sub/file && ! touch here", "-p", "read-only", "--writable", "sub",
                       cwd=make(place.ws / "sub").parent).returncode == 0


def make(path):
    path.mkdir(parents=True)
    return path


def test_deny_a_path_and_open_a_part_again(place):
    (make(place.ws / "vault/open") / "file").write_text("open\n")
    (place.ws / "vault/file").write_text("secret\n")
    ran = place.shell("cat vault/open/file; cat vault/file", "--deny", "vault", "--readable",
                      "vault/open")
    assert ran.stdout == "open\n"
    assert ran.returncode != 0
    assert "(--deny vault)" in place.shell("cat vault/file", "--deny", "vault").stderr


def test_deny_a_glob(place):
    for name in ("a/.env", "b/c/.env"):
        make((place.ws / name).parent)
        (place.ws / name).write_text("secret\n")
    (place.ws / "a/env").write_text("open\n")
    ran = place.shell("cat a/env a/.env b/c/.env", "--deny", "**/.env")
    assert ran.stdout == "open\n" and ran.stderr.count("Permission denied") == 2


def test_readable_of_the_workspace_itself_is_said_to_change_nothing(place):
    ran = place.shell("touch x", "--readable", ".")
    assert ran.returncode == 0 and f"--readable . changes nothing: {place.ws} itself is writable" in ran.stderr
    assert "changes nothing" not in place.shell("true", "--readable", ".", "-p", "read-only").stderr


def test_readable_makes_a_part_of_the_workspace_read_only(place):
    make(place.ws / "docs")
    assert place.shell("! touch docs/x && touch y", "--readable", "docs").returncode == 0


@pytest.mark.parametrize("name", [".git", ".codex", ".agents", ".aws", ".cordon", ".claude", ".vscode"])
def test_protected_names(place, name):
    assert place.shell(f"! mkdir {name}").returncode == 0
    assert not (place.ws / name).exists()
    make(place.ws / name)
    assert place.shell(f"! touch {name}/x").returncode == 0
    assert place.shell(f"touch {name}/x", "--writable", name).returncode == 0
    assert (place.ws / name / "x").exists()


def test_protected_sets_by_flag(place):
    chosen = ("--protect", "hooks,./Makefile,./deep/er")
    ran = place.shell("mkdir .vscode; ! mkdir .husky; ! touch Makefile; ! mkdir -p deep/er; ! mkdir .cordon", *chosen)
    assert ran.returncode == 0, ran.stderr
    assert place.shell("mkdir .idea .git .husky && ! mkdir .cordon", "--protect", "none").returncode == 0
    wrong = place.shell("true", "--protect", "agent")
    assert wrong.returncode == 125 and "git, agents, editors, hooks and shell are" in wrong.stderr


def test_protected_sets_by_config(place):
    config = place.outside / "c.toml"
    config.write_text('protect = ["git", "./Makefile"]\n')
    assert place.shell("mkdir .vscode && ! mkdir .git && ! touch Makefile", "--config", config).returncode == 0
    config.write_text('protect = ["gitt"]\n')
    wrong = place.shell("true", "--config", config)
    assert wrong.returncode == 125 and 'c.toml:1: protect: "gitt" is no set' in wrong.stderr


def test_a_protected_link_may_go_and_not_come_again(place):
    make(place.ws / "real")
    (place.ws / ".claude").symlink_to("real")
    ran = place.shell("ls .claude; ! touch .claude/x; ! touch real/x; rm .claude; ! ln -s real .claude; ! mkdir .claude")
    assert ran.returncode == 0, ran.stderr


def test_a_home_as_the_workspace(place):
    ran = place.shell("touch x; ! touch .bashrc; ! mkdir .ssh; ! mkdir -p .local/bin", env={"HOME": str(place.ws)})
    assert ran.returncode == 0 and "is your home directory" in ran.stderr
    below = place.ws / "home"
    make(below / ".config")
    ran = place.shell("mkdir .ssh; ! touch home/.zshenv; ! mkdir home/.config/autostart", env={"HOME": str(below)})
    assert ran.returncode == 0 and "contains your home directory" in ran.stderr


def test_directory_option(place):
    make(place.ws / "sub")
    ran = place.shell("pwd; touch x; ! touch ../y", "-C", "sub")
    assert ran.returncode == 0
    assert ran.stdout == f"{place.ws}/sub\n"
    assert (place.ws / "sub/x").exists() and not (place.ws / "y").exists()


def test_relative_paths_count_from_the_directory(place):
    make(place.ws / "sub/in")
    (place.ws / "sub/in/file").write_text("x")
    assert place.shell("! cat in/file", "-C", "sub", "--deny", "in").returncode == 0


def test_the_root_folder_is_no_workspace_by_itself(place):
    ran = place.shell(f"! touch {place.outside}/x", cwd="/")
    assert ran.returncode == 0
    assert "nothing of it is writable by itself" in ran.stderr
    assert place.shell(f"! touch {place.outside}/x", "-C", "/").returncode == 0
    assert place.shell("true", "-p", "read-only", cwd="/").stderr == ""


@pytest.mark.parametrize("name", ["cordon-server", "cordon-log", "cordon-files", "cordon-http"])
def test_a_build_in_the_workspace_is_read_only(place, name):
    """Its programs run outside the next time."""
    build = place.ws / "build"
    build.mkdir()
    for file in (CORDON, LAUNCHER):
        shutil.copy(file, build)
    (build / name).write_text("mine\n")
    ran = place.shell(f"! echo x > build/{name}; ! mv build/{name} x", program=build / CORDON.name)
    assert ran.returncode == 0, ran.stderr
    assert (build / name).read_text() == "mine\n"


def test_tmpdir_is_the_callers_own(place):
    ran = place.shell('! touch "$TMPDIR/x"', "--env", f"TMPDIR={place.outside}")
    assert ran.returncode == 0, ran.stderr
    assert not (place.outside / "x").exists()


@pytest.mark.no_userns
def test_danger_full_access_runs_bare_and_says_so(place):
    ran = place.shell(f"echo out >{place.outside}/file", "-p", "danger-full-access")
    assert ran.returncode == 0
    assert ran.stderr == "cordon: no sandbox: the profile is danger-full-access (from --profile)\n"
    assert (place.outside / "file").exists()
    assert place.shell("true", "-p", "danger-full-access", "-q").stderr == ""


@pytest.mark.no_userns
def test_sandbox_disabled_runs_bare_and_says_so(place):
    ran = place.shell(f"echo out >{place.outside}/file; echo $CORDON_SANDBOX",
                      "--sandbox", "disabled")
    assert ran.stderr == "cordon: no sandbox: --sandbox disabled\n"
    assert ran.stdout == "\n" and (place.outside / "file").exists()


def test_sandbox_require_is_content_with_every_layer(place):
    assert place.shell("true", "--sandbox", "require").stderr == ""


# --- without user namespaces (these run in that pass only for real; elsewhere they simulate nothing)


def has_user_namespaces(place):
    verdict = place.json("doctor", "--json", code=place.cordon("doctor").returncode)
    return verdict["layers"].get("user-namespace", {}).get("state") == "enforced"


@pytest.mark.no_userns
def test_degradation_is_said_in_one_line(place):
    ran = place.shell("echo out", "-p", "read-only")
    assert ran.stdout == "out\n" and ran.returncode == 0
    if has_user_namespaces(place):
        assert ran.stderr == ""
        return
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("cordon: the sandbox is weaker than it should be: ")
    assert "cordon doctor" in ran.stderr
    assert place.shell("true", "-p", "read-only", "-q").stderr == ""
    assert place.shell("! touch x", "-p", "read-only", "-q").returncode == 0


@pytest.mark.no_userns
def test_what_cannot_be_expressed_is_refused_with_the_remedy(place):
    ran = place.shell("touch ran")
    if has_user_namespaces(place):
        assert ran.returncode == 0
        return
    assert ran.returncode == 125
    assert "without namespaces" in ran.stderr and "cordon doctor" in ran.stderr
    assert not (place.ws / "ran").exists()


@pytest.mark.no_userns
def test_require_refuses_what_is_degraded(place):
    ran = place.shell("touch ran", "-p", "read-only", "--sandbox", "require")
    if has_user_namespaces(place):
        assert "weaker" not in ran.stderr
        return
    assert ran.returncode == 125
    assert "--sandbox require" in ran.stderr and "cordon doctor" in ran.stderr


# --- environment


def variables(place, *options, env=None):
    ran = place.run("-p", "read-only", *options, "--", "env", env=env)
    assert ran.returncode == 0
    return dict(line.split("=", 1) for line in ran.stdout.splitlines())


SECRETS = {"API_KEY": "1", "MY_SECRET": "2", "GH_TOKEN": "3", "PGPASSWORD": "4",
           "GOOGLE_CREDENTIALS": "5", "PLAIN": "6"}


@pytest.mark.no_userns
def test_secrets_are_left_out(place):
    seen = variables(place, env=SECRETS)
    assert seen["PLAIN"] == "6" and seen["HOME"] == str(place.home)
    assert not seen.keys() & (SECRETS.keys() - {"PLAIN"})


@pytest.mark.no_userns
def test_env_passes_and_sets(place):
    seen = variables(place, "--env", "GH_TOKEN", "-e", "NEW=a=b", "--env=EMPTY=", env=SECRETS)
    assert (seen["GH_TOKEN"], seen["NEW"], seen["EMPTY"]) == ("3", "a=b", "")
    assert "API_KEY" not in seen


@pytest.mark.no_userns
def test_env_inherit(place):
    core = variables(place, "--env-inherit", "core", env=SECRETS)
    assert "PLAIN" not in core and core["PATH"] == place.env["PATH"]
    none = variables(place, "--env-inherit=none", "--env", f"PATH={place.env['PATH']}")
    assert none.keys() <= {"PATH", "CORDON_SANDBOX", "CORDON_SANDBOX_NETWORK_DISABLED",
                           "CODEX_SANDBOX_NETWORK_DISABLED", "BUNDLE_RETRY", "CARGO_NET_RETRY", "PIP_RETRIES",
                           "UV_HTTP_RETRIES", "npm_config_fetch_retries"}


@pytest.mark.no_userns
def test_env_include_and_exclude(place):
    seen = variables(place, "--env-include", "PL*", "--env-include", "path", "--env", "X=1",
                     env=SECRETS)
    assert {"PLAIN", "PATH", "X"} <= seen.keys() and "HOME" not in seen
    assert "PLAIN" not in variables(place, "--env-exclude", "pl?in", env=SECRETS)


@pytest.mark.no_userns
def test_markers(place):
    seen = variables(place)
    assert seen["CORDON_SANDBOX"] == "linux"
    assert seen["CORDON_SANDBOX_NETWORK_DISABLED"] == seen["CODEX_SANDBOX_NETWORK_DISABLED"] == "1"
    open_seen = variables(place, "--network", "enabled")
    assert open_seen["CORDON_SANDBOX"] == "linux"
    assert not [name for name in open_seen if name.endswith("NETWORK_DISABLED")]


# --- config file


def test_config_is_found_by_itself(place):
    place.config('sandbox_mode = "read-only"\n')
    assert place.shell("! touch x").returncode == 0
    assert place.shell("touch x", "--profile", "workspace-write").returncode == 0
    place.config("", name="other/config.toml")
    assert place.shell("touch y", env={"CORDON_HOME": str(place.base / "other")}).returncode == 0


def test_profiles_of_the_config(place):
    config = place.config(f'''
default_permissions = "dev"
[permissions.dev]
extends = ":workspace"
[permissions.dev.filesystem]
"{place.outside}/open" = "write"
"{place.outside}/vault" = "deny"
[permissions.bare.filesystem]
":minimal" = "read"
":workspace_roots" = "read"
[shell_environment_policy]
set = {{ FROM_CONFIG = "yes" }}
''', name="my.toml")
    make(place.outside / "open")
    (make(place.outside / "vault") / "file").write_text("x")
    ran = place.shell(f"echo $FROM_CONFIG; touch {place.outside}/open/x && "
                      f"cat {place.outside}/vault/file", "--config", config)
    assert ran.stdout == "yes\n"
    assert f"({config}:7 [permissions.dev.filesystem])" in ran.stderr
    assert (place.outside / "open/x").exists()
    ran = place.shell(f"ls /usr >list || ls {place.outside}", "--config", config, "-p", "bare")
    assert ran.returncode != 0 and "open" not in ran.stdout
    ran = place.shell(f"ls {place.outside}", "--config", config, "-p", "bare", "--readable",
                      place.outside)
    assert ran.stdout == "open\nvault\n"


@pytest.mark.no_userns
def test_a_mistaken_key_is_named_with_line_and_nearest(place):
    """It could leave something open, so nothing runs; in a file of Codex's it is told."""
    text = 'sandbox_mode = "read-only"\nsandbox_mod = "x"\n'
    config = place.config(text)
    said = ':2: unknown key "sandbox_mod", did you mean "sandbox_mode"?'
    ran = place.shell("echo ran")
    assert ran.returncode == 125 and ran.stderr == f"cordon: {config}{said}\n" and not ran.stdout
    config.unlink()
    config = place.config(text, name="home/.codex/config.toml")
    ran = place.shell("true", "--config", config)
    assert ran.returncode == 0 and f"cordon: {config}{said}" in ran.stderr
    assert "unknown" not in place.shell("true", "-q", "--config", config).stderr


def test_what_is_denied_and_not_there_is_said(place):
    """Somebody thinks that it protects something."""
    (place.outside / "key").write_text("k\n")
    read_only = ("-p", "read-only")
    for deny in (".ssh", "$HOME/.ssh", "*.pem"):
        ran = place.shell("true", *read_only, "--deny", deny)
        path = f"{place.ws}/{deny}"
        assert ran.returncode == 0
        assert f"cordon: --deny {deny} matches nothing: there is no {path}\n" in ran.stderr
    ran = place.shell("true", *read_only, "--readable", place.outside / "none")
    assert f"--readable {place.outside}/none matches nothing" in ran.stderr
    (place.ws / "a.pem").write_text("k\n")
    ran = place.shell("true", *read_only, "--deny", "*.pem", "--deny", place.outside / "key")
    assert ran.returncode == 0 and "matches nothing" not in ran.stderr


@pytest.mark.no_userns
def test_a_home_that_is_not_there_is_not_made(place):
    home = place.base / "nowhere/home"
    env = {"HOME": str(home)}
    assert place.cordon("run", "-p", "read-only", "--", "true", env=env).returncode == 0
    added = place.cordon("rules", "add", "allow", "--", "ls", env=env)
    assert added.returncode != 0 and str(home) in added.stderr
    assert not home.parent.exists()


@pytest.mark.parametrize("text, message", [
    ('sandbox_mode = "read-nothing"\n', ":1: "),
    ("x = [1,\n", ":"),
    ('\n[permissions.a]\nextends = "b"\n[permissions.b]\nextends = "a"\n', "permissions"),
])
@pytest.mark.no_userns
def test_a_wrong_config_is_125_with_file_and_line(place, text, message):
    config = place.config(text)
    words = ["-p", "a"] if "permissions" in text else []
    ran = place.run(*words, "--", "true")
    assert ran.returncode == 125
    assert f"{config}:" in ran.stderr and message in ran.stderr


@pytest.mark.no_userns
def test_a_profile_for_the_proxy_wants_namespaces(place):
    place.config('''
[permissions.net.filesystem]
":root" = "read"
[permissions.net.network]
enabled = true
[permissions.net.network.domains]
"example.org" = "allow"
''')
    ran = place.shell("true", "-p", "net")
    if subprocess.run(["unshare", "-Urn", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        assert (ran.returncode, ran.stderr) == (0, "")
    else:
        assert ran.returncode == 125 and "proxied" in ran.stderr, ran
    assert place.shell("true", "-p", "net", "-n", "restricted").returncode == 0


def test_the_config_cannot_be_written_from_inside(place):
    folder = place.config("# mine\n").parent
    script = f"! touch {folder}/new && ! sh -c 'echo x >{folder}/config.toml'"
    assert place.shell(script, "--no-audit", "-C", place.home).returncode == 0
    (folder / "config.toml").unlink()
    folder.rmdir()
    assert place.shell(f"! mkdir {folder}", "-C", place.home).returncode == 0


def test_a_config_behind_a_link_that_the_command_could_turn_is_refused(place):
    make(place.home / ".config")
    (place.home / ".config/cordon").symlink_to(make(place.home / "dotfiles"))
    ran = place.shell("true", "-C", place.home)
    assert ran.returncode == 125
    assert str(place.home / ".config/cordon") in ran.stderr


# --- limits


def limits_of(place, *options, script="exit 0", code=0):
    return place.json("run", "--json", *options, "--", "sh", "-c", script, code=code)["limits"]


def test_limits_say_who_keeps_them(place):
    limits = limits_of(place, "--max-memory", "512M", "--max-pids", "1000", "--max-cpu-time", "10s",
                       "--max-file-size", "1M")
    assert limits.keys() == {"memory", "pids", "cpu-time", "file-size", "files"}
    assert limits["memory"]["value"] == 512 << 20
    assert limits["cpu-time"] == {"value": 10 * 10**9, "by": "rlimit", "hit": False, "default": False}
    assert limits["files"] == {"value": 65536, "by": "rlimit", "hit": None, "default": True}


def test_limits_that_nobody_asked_for(place):
    """In a sandbox only; and 0 and none, here or in the configuration, are no limit."""
    place.config("[limits]\nfiles = 'none'\nfile_size = '3G'\n"
                 "[permissions.small]\nextends = ':workspace'\nlimits = { pids = 99 }\n")
    limits = limits_of(place)
    assert {name: (limit["value"], limit["default"]) for name, limit in limits.items()} == {
        "pids": (4096, True), "file-size": (3 << 30, False)}
    assert limits_of(place, "--max-pids", "0", "--max-file-size", "none") == {}
    assert limits_of(place, "-p", "small")["pids"]["value"] == 99
    assert limits_of(place, "--sandbox", "disabled").keys() == {"file-size"}
    shown = place.json("explain", "--json", "-p", "small")["limits"]
    assert shown == {"pids": {"value": 99, "default": False},
                     "file-size": {"value": 3 << 30, "default": False}}
    assert "limits   pids 4096 (by default), file-size 3G" in place.cordon("explain").stdout


def test_a_few_files_whatever_is_on_its_way_elsewhere(place):
    """What a user's processes have sent through sockets, and nobody has received, counts against the least limit
    among their senders (unix(7)): a command with few files starts all the same."""
    here, there = socket.socketpair()
    socket.send_fds(here, [b"x"], [here.fileno()] * 100)
    done = place.run("--max-files", "16", "--", "sh", "-c", "ulimit -n")
    assert (done.returncode, done.stdout) == (0, "16\n"), done.stderr
    here.close()
    there.close()


def test_the_kernel_keeps_what_is_said(place):
    """Lower than what there is, never higher; and what only its process may have stays its own."""
    shown = place.shell("ulimit -Sn; ulimit -Hn; ulimit -f; ulimit -v", "--max-files", "100",
                        "--max-file-size", "1M", "--max-address-space", "3G",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)))
    assert shown.stdout.split() == ["64", "100", "2048", str(3 << 20)]


def test_what_reserves_memory_runs_with_a_limit_of_what_it_uses(place):
    """E9: it was a limit of address space, of which node takes gigabytes, and Java."""
    for program in (["node", "-e", "console.log(1)"], ["java", "-version"]):
        if shutil.which(program[0]):
            assert place.run("--max-memory", "1G", "-q", "--", *program).returncode == 0


def test_memory_that_is_used_up_is_said(place):
    """E9: hit is true when the kernel killed for it, and never false where nobody can tell."""
    script = "exec /usr/bin/python3 -c 'b\"x\" * (256 << 20)'"
    result = json.loads(place.shell(script, "--max-memory", "64M", "--json").stdout)
    memory = result["limits"]["memory"]
    assert result["exit_code"] != 0
    assert (memory["by"], memory["hit"]) in (("cgroup", True), ("rlimit", None))
    about_it = [line for line in result["warnings"] if "--max-memory" in line]
    assert len(about_it) == (memory["by"] == "rlimit")
    ran = place.shell(script, "--max-memory", "64M")
    for line in about_it:
        assert line in ran.stderr
    assert ("the limit --max-memory was reached" in ran.stderr) == (memory["by"] == "cgroup")


def test_the_kernel_counts_processes_by_default(place):
    """4096 of a command, by its user namespace, and root by its pid namespace, whose numbers below 300 are given out
    once; a cgroup does when it is asked for. That what is counted ends there: tests/escape, limits; and
    tests/unit/sandbox/test_launch.c."""
    host = Path("/proc/sys/kernel/pid_max").read_text()
    by = limits_of(place)["pids"]["by"]
    shown = place.shell("grep 'Max processes' /proc/self/limits; cat /proc/sys/kernel/pid_max").stdout.split()
    assert by == (PIDS_OF_ROOT_BY if os.getuid() == 0 else "rlimit")
    assert (shown[2:4] == ["4096", "4096"]) == (by == "rlimit")
    assert (shown[-1] == "4395") == (by == "pid-namespace")
    assert Path("/proc/sys/kernel/pid_max").read_text() == host
    assert place.shell("echo 100000 > /proc/sys/kernel/pid_max").returncode != 0
    by = limits_of(place, "--max-pids", "4000")["pids"]["by"]
    command = place.start("run", "--max-pids", "4000", "--", "sh", "-c", "echo on; read -r _")
    assert command.stdout.readline() == b"on\n"
    kept = [file.read_text() for file in Path("/sys/fs/cgroup").rglob(f"cordon-{command.pid}-*/pids.max")]
    assert kept == (["4000\n"] if by == "cgroup" else [])


def test_a_bomb_ends_with_the_command_that_began_it(place):
    """Without any option. 254: its first shell, which forks twice, got its second turn when there were 4096 already."""
    ran = place.run("--", "bash", "-c", ":(){ :|:& };:")
    assert ran.returncode in (0, 254)


def test_what_no_program_could_start_in_is_refused(place):
    for option, least in (("--max-memory=1K", "1M"), ("--max-pids=1", "2"), ("--max-files=3", "16")):
        ran = place.run(option, "--", "true")
        assert ran.returncode == 125
        assert f"no program can start with that: at least {least}, or 0 for no limit" in ran.stderr
        assert place.run(f"{option.split('=')[0]}={least}", "--", "true").returncode in (0, 137)


def test_a_file_size_limit_is_said(place):
    ran = place.shell("exec head -c 2M /dev/zero >large", "--max-file-size", "1M")
    assert ran.returncode == 128 + signal.SIGXFSZ
    assert "cordon: the limit --max-file-size was reached (kept by rlimit)" in ran.stderr
    assert (place.ws / "large").stat().st_size == 1 << 20


def test_a_cpu_limit_is_said(place):
    ran = place.shell("while :; do :; done", "--max-cpu-time", "1s")
    assert ran.returncode in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)
    assert "the limit --max-cpu-time was reached" in ran.stderr


def test_root_is_told_when_processes_are_not_counted(place):
    """E9: in JSON, too. By Linux 6.14 they always are where there is a pid namespace."""
    result = place.json("run", "--json", "--max-pids", "100", "--", "true")
    ran = place.shell("true", "--max-pids", "100")
    is_unkept = result["limits"]["pids"]["by"] == "none"
    assert not is_unkept or os.getuid() == 0
    for lines in (result["warnings"], [ran.stderr]):
        assert any("--max-pids is not enforced" in line for line in lines) == is_unkept


# --- JSON


RESULT_KEYS = {"end", "exit_code", "signal", "signal_number", "timed_out", "shell_exit_code",
               "wall_time_ns", "failure", "usage", "limits", "tty", "stdout", "stdout_bytes",
               "stdout_omitted_bytes", "stderr", "stderr_bytes", "stderr_omitted_bytes", "order",
               "order_omitted_bytes", "output_cut", "denials", "sandbox", "warnings", "approval"}


def test_json_of_a_success(place):
    result = place.json("run", "--json", "--", "sh", "-c", "echo out; echo err >&2")
    assert result.keys() == RESULT_KEYS
    assert (result["end"], result["exit_code"], result["signal"]) == ("exited", 0, None)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")
    assert result["denials"] == [] and result["warnings"] == []
    sandbox = result["sandbox"]
    assert sandbox["mode"] == "auto" and sandbox["profile"] == "workspace-write"
    assert sandbox["profile_from"] == "the default" and sandbox["network"] == "restricted"
    assert sandbox["degraded"] is False and sandbox["degradation"] is None
    assert len(sandbox["layers"]) == 13


def test_json_of_a_denial(place):
    path = f"{place.outside}/file"
    ran = place.run("--json", "--", "sh", "-c", f"echo x >{path}; exit 4")
    assert ran.returncode == 4 and ran.stderr == ""
    result = place.json("run", "--json", "--", "sh", "-c", f"echo x >{path}; exit 4", code=4)
    assert result["end"] == "denied" and result["exit_code"] == 4
    denial = result["denials"][0]
    assert denial["path"] == path and denial["operation"] == "write"
    assert denial["evidence"] == "fact" and denial["source"] == "sandbox"
    assert denial["errno"] == "EROFS" and "--writable" in denial["remedy"]


@pytest.mark.parametrize("script, code, end, name", [
    ("kill -9 $$", 137, "signaled", "SIGKILL"),
    ("exit 7", 7, "exited", None),
])
def test_json_of_other_ends(place, script, code, end, name):
    result = place.json("run", "--json", "--", "sh", "-c", script, code=code)
    assert (result["end"], result["signal"]) == (end, name)
    assert result["shell_exit_code"] == code


def test_json_of_a_program_that_is_not_there(place):
    result = place.json("run", "--json", "--", "nowhere", code=127)
    assert result["end"] == "failed-to-start"
    assert result["failure"]["stage"] == "exec" and result["failure"]["errno"] == "ENOENT"


@pytest.mark.no_userns
def test_json_when_cordon_fails(place):
    result = place.json("run", "--json", "-p", "nope", "--", "true", code=125)
    assert result["end"] == "failed-to-start" and result["shell_exit_code"] == 125
    assert result["failure"]["stage"] == "cordon" and "nope" in result["failure"]["message"]


@pytest.mark.no_userns
def test_json_holds_the_warnings(place):
    result = place.json("run", "--json", "--sandbox", "disabled", "--", "true")
    assert "no sandbox: --sandbox disabled" in result["warnings"]
    assert result["sandbox"]["mode"] == "disabled"


def test_json_keeps_beginning_and_end_of_the_output(place):
    result = place.json("run", "--json", "--max-output", "100", "--", "seq", "1000")
    assert result["stdout"].startswith("1\n2\n") and result["stdout"].endswith("\n999\n1000\n")
    assert result["stdout_bytes"] == 3893 and result["stdout_omitted_bytes"] == 3793
    assert re.search(r"3793", result["stdout"])


def test_json_of_much_output_takes_little_memory(place):
    """What is kept beyond 1M waits on disk, and only the document has all of it."""
    script = "import sys; sys.stdout.buffer.write('\u00e9\\n'.encode() * 8_000_000)"
    process = place.start("run", "--json", "--max-output", "20M", "--", "python3", "-c", script, stdout=subprocess.PIPE)
    document = process.stdout.read(10 << 20)
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:  # it is in the midst of writing
        [peak] = [int(line.split()[1]) for line in status if line.startswith("VmHWM:")]
    result = json.loads(document + process.stdout.read())
    assert result["shell_exit_code"] == 0 and result["stdout_bytes"] == 24_000_000
    omitted = f"\n... {result['stdout_omitted_bytes']} bytes omitted ...\n"
    kept = result["stdout"].encode().replace(omitted.encode(), b"")
    assert result["stdout_omitted_at"] == 20 << 20 and len(kept) + result["stdout_omitted_bytes"] >= 24_000_000
    assert process.wait(60) == 0 and result["warnings"] == [] and peak < 12_000, peak


def test_json_of_much_output_says_what_the_disk_does_not_take(place):
    ran = place.cordon("run", "--json", "--max-output", "3M", "--", "head", "-c", "4M", "/dev/zero",
                       env={**place.env, "TMPDIR": "/nowhere"})
    result = json.loads(ran.stdout)
    assert result["stdout_bytes"] == 4 << 20 and result["stdout_omitted_bytes"] == 3 << 20
    assert any("stdout could not be kept on disk" in warning for warning in result["warnings"])
    assert "stdout could not be kept on disk" in ran.stderr


def test_json_of_bytes_that_are_no_text(place):
    result = place.json("run", "--json", "--", "printf", r"a\377b")
    assert result["stdout"] == "a\ufffdb" and result["stdout_base64"] == "Yf9i"


def test_nothing_is_left_of_a_background_child(place):
    mark = f"mark-{os.getpid()}"
    ran = place.shell(f"setsid sh -c 'sleep 1000; : {mark}' >/dev/null 2>&1 & echo started")
    assert ran.returncode == 0 and ran.stdout == "started\n"
    assert mark not in subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE,
                                      text=True, check=True).stdout
