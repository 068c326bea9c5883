"""The environment: secrets that reach the command, and variables of a request that reach programs
outside the sandbox. A program that ran outside leaves a mark there."""

import subprocess

from catalogue import attack


def marker(stage):
    """A file that only a program outside the sandbox can make."""
    return stage.out / "ran-outside"


def library(stage):
    """A shared object whose constructor leaves the mark."""
    source = stage.file("ws/evil.c", f"""
#include <fcntl.h>
__attribute__((constructor)) static void run(void)
{{
    open("{marker(stage)}", O_WRONLY | O_CREAT, 0644);
}}
""")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", stage.ws / "evil.so", source], check=True)
    return stage.ws / "evil.so"


def requested(stage, setting, *command):
    """A command whose request names a variable; it is for the command alone."""
    bare = ["env", setting]
    return stage.run(*command, bare=bare, cordon=["--env", setting])


@attack(holes=(11,), silent=True)
def preload_a_library_in_a_helper(stage):
    requested(stage, f"LD_PRELOAD={library(stage)}", "/bin/true")
    return marker(stage).exists()


@attack(holes=(11,), silent=True)
def preload_an_auditor_in_a_helper(stage):
    """LD_AUDIT is another way to say LD_PRELOAD."""
    requested(stage, f"LD_AUDIT={library(stage)}", "/bin/true")
    return marker(stage).exists()


@attack(holes=(11,), silent=True)
def start_a_script_by_bash_env(stage):
    script = stage.file("ws/evil.sh", f"touch {marker(stage)}\n")
    requested(stage, f"BASH_ENV={script}", "/bin/bash", "-c", "true")
    return marker(stage).exists()


@attack(holes=(11,), silent=True)
def plant_programs_on_the_path(stage):
    """The workspace's bin is first on the PATH of the person; Cordon must start nothing by it."""
    for name in ("bwrap", "cordon-linux-sandbox", "codex-linux-sandbox", "sh", "bash", "git",
                 "newuidmap", "ip", "mount", "true"):
        stage.file(f"ws/bin/{name}", f"#!/bin/bash\ntouch {marker(stage)}\n", 0o755)
    stage.run("true", env={"PATH": f"{stage.ws}/bin:{stage.env['PATH']}"})
    return marker(stage).exists()


@attack(holes=(11,), silent=True, refusal_holds=True)
def plant_a_launcher_in_the_workspace(stage):
    """Found in the current folder, or named by the request's environment."""
    fake = stage.file("ws/cordon-linux-sandbox",
                      f"#!/bin/bash\ntouch {marker(stage)}\nexec \"$@\"\n", 0o755)
    setting = f"CORDON_LINUX_SANDBOX_EXE={fake}"
    if stage.inside:
        requested(stage, setting, "/bin/true")
    else:
        stage.run("env", setting, "sh", "-c", '"$CORDON_LINUX_SANDBOX_EXE" true')
    return marker(stage).exists()


@attack()
def read_a_secret(stage):
    env = {"MY_SECRET": "value-one", "GITHUB_TOKEN": "value-two", "AWS_ACCESS_KEY": "value-three",
           "DB_PASSWORD": "value-four", "APP_CREDENTIALS": "value-five"}
    out = stage.run("/bin/sh", "-c", "echo @start; env", env=env).out
    return [value for value in env.values() if value in out]


@attack()
def read_a_secret_in_lower_case(stage):
    out = stage.run("/bin/sh", "-c", "echo @start; env", env={"npm_config_authtoken": "value"}).out
    return "authtoken=value" in out


@attack(silent=True)
def configure_cordon_from_the_workspace(stage):
    """CVE-2025-61260: a project's own configuration decides about the sandbox."""
    config = 'sandbox_mode = "danger-full-access"\ndefault_permissions = ":danger-full-access"\n'
    for name in (".codex/config.toml", ".cordon/config.toml", "config.toml", "cordon.toml",
                 ".config/cordon/config.toml"):
        stage.file(f"ws/{name}", config)
    file = stage.victim_file()
    stage.attack("write", file)
    return stage.is_changed(file)


@attack()
def configure_git_for_a_helper(stage):
    """GIT_* variables of the request make git run programs; Cordon's own git calls must not."""
    stage.git("init", "-q", ".")
    script = stage.file("ws/evil.sh", f"#!/bin/sh\ntouch {marker(stage)}\n", 0o755)
    flags = ["--env", "GIT_CONFIG_COUNT=1", "--env", "GIT_CONFIG_KEY_0=core.fsmonitor",
             "--env", f"GIT_CONFIG_VALUE_0={script}"]
    bare = ["env", *flags[1::2]]
    stage.shell("git status", bare=bare, cordon=flags)
    return marker(stage).exists()


@attack()
def obey_the_repository_when_starting(stage):
    """CVE-2026-19592: the workspace's own git configuration names a program; whoever asks git
    about the workspace outside runs it."""
    stage.git("init", "-q", ".")
    script = stage.file("ws/evil.sh", f"#!/bin/sh\ntouch {marker(stage)}\n", 0o755)
    stage.git("config", "core.fsmonitor", str(script))
    stage.shell("git status")
    return marker(stage).exists()
