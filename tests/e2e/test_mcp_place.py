"""Where commands of `cordon mcp` run: roots of the client as the user's configuration takes them, and the sandbox that Codex
says it has. Nothing that a client or a model sends makes anything wider."""
import json
from contextlib import closing

import pytest
from served import uri
from talking_mcp import Mcp

META = "codex/sandbox-state-meta"


def configured(place, text=""):
    home = place.home / ".config/cordon"
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(text)


def named(*paths):
    return [{"uri": uri(path), "name": "x"} for path in paths]


class Rooted(Mcp):
    """A client with roots, which it tells when it is asked."""

    def __init__(self, place, roots):
        self.roots = roots
        super().__init__(place, capabilities={"roots": {"listChanged": True}})
        self.tell()

    def tell(self):
        while True:
            message = self.read()
            if message.get("method") == "roots/list":
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": self.roots}})
                self.call("ping")
                return
            self.others.append(message)

    def said(self):
        return [message["params"]["data"] for message in self.others if message["method"] == "notifications/message"]


def writes(client, *paths):
    """Those of the paths that a command could write."""
    script = "; ".join(f"echo x 2>/dev/null >{path}/made" for path in paths)
    client.tool("exec_command", cmd=f"({script}) 2>/dev/null; true", login=False)
    done = [path for path in paths if (path / "made").exists()]
    for path in done:
        (path / "made").unlink()
    return done


@pytest.fixture
def places(place):
    paths = [place.ws, place.ws / "in", place.ws / "other", place.outside]
    for path in paths[1:3]:
        path.mkdir()
    return paths


@pytest.mark.parametrize(("config", "roots", "opened"), [
    ("narrow", [1], [1]), ("narrow", [1, 3], [1]), ("narrow", [3], [0, 1, 2]), ("narrow", [0], [0, 1, 2]),
    ("narrow", [], [0, 1, 2]), ("trust", [3], [3]), ("trust", [1, 3], [1, 3]),
])
def test_roots_are_the_workspace_when_the_configuration_says_so(place, places, config, roots, opened):
    configured(place, f'[mcp]\nroots = "{config}"\n')
    with closing(Rooted(place, named(*(places[i] for i in roots)))) as client:
        assert writes(client, *places) == [places[i] for i in opened]
        got = client.tool("exec_command", cmd="pwd", login=False)["output"].strip()
        assert got == str(places[1] if 1 in roots else places[3] if config == "trust" else places[0])
        assert len(client.said()) == (config == "narrow" and 3 in roots)


def test_roots_are_ignored_otherwise(place, places):
    configured(place)
    with closing(Mcp(place, capabilities={"roots": {}})) as client:
        assert writes(client, *places) == places[:3]
        assert not any(message.get("method") == "roots/list" for message in client.others)


def test_a_project_cannot_say_so(place, places):
    for name in (".cordon", ".codex"):
        (place.ws / name).mkdir()
        (place.ws / name / "config.toml").write_text('[mcp]\nroots = "trust"\n')
    with closing(Mcp(place, capabilities={"roots": {}})) as client:
        assert writes(client, *places) == places[:3]
        assert not any(message.get("method") == "roots/list" for message in client.others)


def test_roots_that_change_are_asked_for_again(place, places):
    configured(place, '[mcp]\nroots = "trust"\n')
    with closing(Rooted(place, named(places[3]))) as client:
        assert writes(client, *places) == [places[3]]
        client.roots = named(places[2])
        client.notify("notifications/roots/list_changed")
        client.tell()
        assert writes(client, *places) == [places[2]]


def test_a_root_in_the_workspace_opens_nothing_that_is_protected_there(place, places):
    configured(place, '[mcp]\nroots = "narrow"\n')
    kept = [place.ws / ".claude", place.ws / ".vscode/x"]
    for path in kept:
        path.mkdir(parents=True)
    with closing(Rooted(place, named(*kept, places[1]))) as client:
        assert writes(client, *kept, *places) == [places[1]]
        assert client.tool("explain_permissions", path=str(kept[0]), access="write")["allowed"] is False


def test_no_root_opens_what_is_believed(place, places):
    configured(place, '[mcp]\nroots = "trust"\n')
    (place.home / ".ssh").mkdir()
    (place.home / "project").mkdir()
    (place.outside / "link").symlink_to(place.home / ".ssh")
    roots = [{"uri": "file:///"}, *named(place.home, place.home.parent, place.home / ".config", place.home / ".config/cordon",
                                         place.home / ".ssh", place.outside / "link", "/etc", "/usr/local/bin",
                                         place.outside / "missing"),
             {"uri": "https://a.test/"}, {"uri": "file://other.test/tmp"}, {"uri": 1}, {"name": "x"}, "/tmp", None,
             {"uri": uri(place.outside) + "%00"}, {"uri": uri(place.outside) + "/../home"}]
    with closing(Rooted(place, roots)) as client:
        assert writes(client, place.home, place.home / ".ssh", place.ws, place.outside) == [place.ws]
        assert len(client.said()) == len(roots)
        client.roots = [*roots, *named(place.home / "project")]
        client.notify("notifications/roots/list_changed")
        client.tell()
        assert writes(client, place.home / "project", place.home, place.ws) == [place.home / "project"]


@pytest.mark.parametrize("roots", [{}, [], "file:///", 7, [[[]]], [{"uri": {}}] * 200])
def test_roots_that_make_no_sense_are_none(place, places, roots):
    configured(place, '[mcp]\nroots = "trust"\n')
    with closing(Rooted(place, roots)) as client:
        assert writes(client, *places) == places[:3]


# --- Codex ---

def state(*entries, network="restricted", cwd=None, **more):
    kinds = {"root", "slash_tmp", "tmpdir"}
    return {META: {"permissionProfile": {"type": "managed", "network": network, "file_system": {
        "type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": path}} if path in kinds else
             {"type": "path", "path": str(path)}, "access": access} for path, access in entries]}},
        "codexLinuxSandboxExe": "/bin/false", "useLegacyLandlock": False, **({"sandboxCwd": cwd} if cwd else {}), **more},
        "codex/sandbox-launcher": {"argv": ["/bin/false"]}, "threadId": "t", "callId": "c"}


def run(client, cmd, meta):
    return client.tool("exec_command", _meta=meta, cmd=cmd, login=False)


def test_it_is_asked_for(place):
    configured(place)
    with closing(Mcp(place)) as client:
        assert client.initialized["capabilities"]["experimental"] == {META: {}}
    configured(place, '[mcp]\nclient_sandbox = "ignore"\n')
    with closing(Mcp(place)) as client:
        assert "experimental" not in client.initialized["capabilities"]
        assert run(client, "echo x >made", state(("root", "read")))["exit_code"] == 0


def test_codex_narrows(place, places):
    with closing(Mcp(place)) as client:
        assert run(client, "echo x >made", state(("root", "read")))["exit_code"] != 0
        meta = state(("root", "read"), (places[1], "write"), ("slash_tmp", "write"), ("tmpdir", "write"),
                     (places[1] / ".git", "read"), cwd=uri(places[1]))
        got = run(client, "pwd; echo x >made; echo x >../made", meta)
        assert got["output"].startswith(f"{places[1]}\n") and (places[1] / "made").exists()
        assert not (places[0] / "made").exists() and "client's" in json.dumps(got["denials"])
        assert run(client, "echo x >made", state(("root", "write")))["exit_code"] == 0


def test_who_refuses_is_told_and_what_would_help(place):
    """A hint at Cordon's configuration would help nobody."""
    configured(place, 'default_permissions = "p"\n[permissions.p]\nextends = ":workspace"\n[permissions.p.network]\n'
                      'enabled = true\n')
    with closing(Mcp(place)) as client:
        for cmd, meta in (("exec 3<>/dev/tcp/192.0.2.1/80", state(("root", "read"))),
                          ("echo x >made", state(("root", "read"), network="enabled"))):
            (denial,) = client.tool("exec_command", _meta=meta, cmd=cmd, shell="/bin/bash", login=False)["denials"]
            assert "client_sandbox" in denial["remedy"] and "--" not in denial["remedy"]


@pytest.mark.parametrize("meta", [
    state(("root", "write"), network="host"), {META: {"permissionProfile": {"type": "disabled"}}},
    {META: {"permissionProfile": {"type": "external", "network": "enabled"}}}, state(("root", "write"), cwd="file:///"),
    {META: {}}, {META: None}, {META: []}, {META: "danger-full-access"}, {META: {"permissionProfile": None}},
    {META: {"permissionProfile": {"type": "managed", "file_system": 7}}}, {"codex/sandbox-state": {"mode": "off"}},
    state(("root", "write"), cwd="file:///%00"), state(("../..", "write")), state(("root", "write"), cwd="https://x"),
    {META: {"permissionProfile": {"type": "managed", "network": "enabled", "profile": "danger-full-access", "file_system":
            {"type": "unrestricted"}}}},
    {META: {"permissionProfile": {"type": "managed", "allow_nested_namespaces": True, "network": "host", "unix_sockets": ["/"],
                                  "watch": "off", "file_system": {"type": "unrestricted"}}}},
])
def test_nothing_that_codex_could_say_widens(place, places, meta):
    (place.outside / "secret").write_text("s3cret\n")
    configured(place, f'default_permissions = "p"\n[permissions.p]\nextends = ":workspace"\n[permissions.p.filesystem]\n'
                      f'"{place.outside}/secret" = "deny"\n')
    with closing(Mcp(place)) as client:
        got = run(client, f"cat {place.outside}/secret; pwd; cat /sys/class/net/*/address 2>/dev/null | wc -l", meta)
        assert "s3cret" not in got["output"] and f"\n{place.ws}\n" in f"\n{got['output']}"
        run(client, f"echo x >{place.outside}/made; mkdir .git; true", meta)
        assert not (place.outside / "made").exists() and not (place.ws / ".git").exists()
        explained = client.call("tools/call", name="explain_permissions", arguments={}, _meta=meta)["structuredContent"]
        assert explained["network"] == "restricted"
        writable = [path for path in explained.get("writable", []) if not path.startswith(("/tmp", "/var/tmp"))]
        assert writable == [str(place.ws)]


def test_no_argument_widens(place, places):
    """What a model could think of; those that are no arguments are refused, and named."""
    with closing(Mcp(place)) as client:
        for more in ({"sandbox": "none"}, {"sandbox_permissions": "require_escalated"}, {"with_escalated_permissions": True},
                     {"roots": ["/"]}, {"writable": ["/"]}):
            assert "not called" in client.tool_fails("exec_command", cmd=f"echo x >{place.outside}/made", **more)
        client.tool("exec_command", cmd=f"echo x >{place.outside}/made", workdir=str(place.outside), login=False)
        client.tool("exec_command", cmd=f"echo x >{place.outside}/made", profile="danger-full-access", login=False)
        client.tool("exec_command", cmd="echo x >made", workdir=str(place.outside), login=False,
                    env={"CORDON_HOME": str(place.ws), "TMPDIR": str(place.outside), "HOME": str(place.outside)})
        assert not (place.outside / "made").exists()
