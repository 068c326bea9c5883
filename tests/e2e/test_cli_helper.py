"""The helper with Codex's flags: `codex-linux-sandbox`, by each of its names."""
import json
import os
import signal
import subprocess

import pytest

from harness import CORDON, LAUNCHER, finish, read_until

READ_ONLY = {"type": "managed", "network": "restricted", "file_system": {
    "type": "restricted",
    "entries": [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}
WORKSPACE = {"type": "managed", "network": "restricted", "file_system": {
    "type": "restricted",
    "entries": [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                {"path": {"type": "special", "value": {"kind": "project_roots"}},
                 "access": "write"}]}}


@pytest.fixture(params=["link", "launcher"])
def helper(request, place):
    """Calls the helper: `cordon` under Codex's name, or the launcher program."""
    link = place.base / "codex-linux-sandbox"
    link.symlink_to(CORDON)
    program = {"link": link, "launcher": LAUNCHER}[request.param]

    def call(profile, *command, flags=(), **kwargs):
        words = ["--sandbox-policy-cwd", place.ws, "--command-cwd", place.ws,
                 "--permission-profile", profile if isinstance(profile, str)
                 else json.dumps(profile), *flags, "--", *command]
        return place.cordon(*words, program=program, **kwargs)

    call.program = program
    return call


@pytest.mark.no_userns
def test_read_only(helper, place):
    ran = helper(READ_ONLY, "sh", "-c", "echo out; echo err >&2; ! touch here")
    assert ran.returncode == 0 and ran.stdout == "out\n" and "err\n" in ran.stderr
    assert not (place.ws / "here").exists()


def test_project_roots_are_the_policy_cwd(helper, place):
    (place.ws / "sub").mkdir()
    ran = helper(WORKSPACE, "sh", "-c", f"pwd; touch here; ! touch {place.outside}/x; ! mkdir ../.git",
                 flags=["--command-cwd", place.ws / "sub"])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{place.ws}/sub\n"
    assert (place.ws / "sub/here").exists()


@pytest.mark.no_userns
@pytest.mark.parametrize("profile", [
    {"type": "read-only"},
    {"type": "readOnly", "networkAccess": False},
    {"network": {"enabled": False}, "file_system": {"read": ["/"], "write": []}},
    {"type": "managed", "network": "restricted", "a_new_key": 1,
     "file_system": READ_ONLY["file_system"]},
])
def test_every_shape_of_a_profile(helper, place, profile):
    ran = helper(profile, "sh", "-c", "cat /etc/passwd >/dev/null && ! touch here")
    assert ran.returncode == 0, ran.stderr
    assert ("$.a_new_key" in ran.stderr) == ("a_new_key" in profile)


@pytest.mark.parametrize("profile", [
    {"type": "workspace-write"},
    {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
])
def test_legacy_policies_that_write(helper, place, profile):
    ran = helper(profile, "sh", "-c", f"touch here && ! touch {place.outside}/x")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.no_userns
def test_disabled_runs_in_place(helper, place):
    ran = helper({"type": "disabled"}, "sh", "-c", f"echo $$; pwd; touch {place.outside}/x")
    assert ran.returncode == 0 and (place.outside / "x").exists()
    assert ran.stdout.splitlines()[1] == str(place.ws)
    assert helper({"type": "disabled"}, "nowhere").returncode == 127
    assert helper({"type": "disabled"}, "/etc/passwd").returncode == 126


@pytest.mark.no_userns
def test_exit_codes(helper):
    assert helper(READ_ONLY, "sh", "-c", "exit 42").returncode == 42
    assert helper(READ_ONLY, "nowhere").returncode == 127
    assert helper(READ_ONLY, "/etc/passwd").returncode == 126
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        assert helper(READ_ONLY, "sh", "-c", f"kill -{int(number)} $$").returncode == -number


@pytest.mark.no_userns
@pytest.mark.parametrize("words, message", [
    ([], "--sandbox-policy-cwd DIR is missing"),
    (["--sandbox-policy-cwd", "/tmp"], "--permission-profile JSON is missing"),
    (["--sandbox-policy-cwd", "tmp"], "not an absolute path"),
    (["--sandbox-policy-cwd", "/tmp", "--permission-profile", '{"type":"disabled"}'],
     "no command"),
    (["--sandbox-policy-cwd", "/tmp", "--permission-profile", '{"type":"disabled",}', "--", "true"],
     "invalid permission profile JSON: line 1, column "),
    (["--sandbox-policy-cwd", "/tmp", "--permission-profile", '{"type":"mangaed"}', "--", "true"],
     "invalid permission profile JSON: $"),
    (["--sandbox-policy-cwd", "/tmp", "--managed-network", "{}", "--", "true"], "the proxy of who starts this"),
    (["--sandbox-policy-dir", "/tmp"], "did you mean --sandbox-policy-cwd?"),
    (["--apply-seccomp-then-exec"], "no option"),
])
def test_wrong_flags_are_2(helper, place, words, message):
    ran = place.cordon(*words, program=helper.program)
    assert ran.returncode == 2
    assert message in ran.stderr and ran.stderr.startswith("cordon: ")


@pytest.mark.no_userns
def test_flags_without_effect(helper):
    ran = helper(READ_ONLY, "echo", "out", flags=["--use-legacy-landlock", "--no-proc"])
    assert (ran.returncode, ran.stdout) == (0, "out\n")


@pytest.mark.no_userns
def test_a_proxied_profile_is_refused(helper):
    ran = helper({**READ_ONLY, "network": "proxied"}, "true")
    assert ran.returncode == 1 and "proxy" in ran.stderr


@pytest.mark.no_userns
def test_help(helper, place):
    ran = place.cordon("--help", program=helper.program)
    assert ran.returncode == 0 and "--permission-profile JSON" in ran.stdout


@pytest.mark.no_userns
def test_descriptors_and_environment_are_passed_through(helper, place):
    (place.ws / "in").write_text("text\n")
    with open(place.ws / "in", "rb") as file:
        ran = helper(READ_ONLY, "sh", "-c", "readlink /proc/self/fd/0; cat; env", stdin=file,
                     env={"API_KEY": "passed", "NOT_CORE": "too"})
    # a pipe that holds what is in the file: the file itself could be changed by way of its descriptor
    assert ran.stdout.startswith("pipe:["), ran.stdout
    assert "]\ntext\n" in ran.stdout
    assert "API_KEY=passed\n" in ran.stdout and "NOT_CORE=too\n" in ran.stdout
    assert "CODEX_SANDBOX_NETWORK_DISABLED=1\n" in ran.stdout


def test_a_link_that_the_command_could_turn_is_refused(helper, place):
    (place.ws / ".git").symlink_to(place.outside)
    ran = helper(WORKSPACE, "touch", "ran")
    assert ran.returncode == 1
    assert f"{place.ws}/.git" in ran.stderr and not (place.ws / "ran").exists()


@pytest.mark.no_userns
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_passed_on(helper, place, number):
    """Codex ends its helper by a signal and expects the command to hear of it."""
    process = place.start("--sandbox-policy-cwd", place.ws, "--permission-profile",
                          json.dumps(READ_ONLY), "--", "sh", "-c",
                          "trap 'echo caught; exit 5' INT TERM HUP; echo ready; "
                          "while :; do sleep 0.01; done", program=helper.program)
    read_until(process.stdout, b"ready")
    process.send_signal(number)
    out, _ = finish(process, 5)
    assert out.endswith(b"caught\n")


@pytest.mark.no_userns
def test_without_a_command_cwd_it_starts_where_we_are(helper, place):
    ran = place.cordon("--sandbox-policy-cwd", place.outside, "--permission-profile",
                       json.dumps(READ_ONLY), "--", "pwd", program=helper.program)
    assert (ran.returncode, ran.stdout) == (0, f"{place.ws}\n")


def test_as_codex_calls_it(place):
    """The argv of Codex 0.169.0: program by path, argv[0] the bare name."""
    words = ["codex-linux-sandbox", "--sandbox-policy-cwd", str(place.ws), "--command-cwd",
             str(place.ws), "--permission-profile", json.dumps(WORKSPACE), "--", "/bin/sh", "-c",
             "touch made; echo out"]
    ran = subprocess.run(words, executable=LAUNCHER, cwd="/", env={**os.environ, **place.env},
                         capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, "out\n"), ran.stderr
    assert (place.ws / "made").exists()
