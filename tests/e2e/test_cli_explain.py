"""`cordon explain`: all of it, and one thing at a time."""
import json

import pytest

from harness import BUILD, CORDON, LAUNCHER

LAYERS = ["user-namespace", "mount-namespace", "pid-namespace", "ipc-namespace", "net-namespace",
          "uts-namespace", "cgroup-namespace", "landlock", "seccomp", "no-new-privs",
          "capabilities", "guard", "proxy"]


def explain(place, *options, code=0, **kwargs):
    return place.json("explain", "--json", *options, code=code, **kwargs)


def entries(explained):
    return {entry["path"]: entry for entry in explained["entries"]}


def test_everything_for_the_default_profile(place):
    (place.ws / ".git").mkdir()
    explained = explain(place)
    assert explained["profile"]["name"] == "workspace-write"
    assert explained["profile"]["from"] == "the default"
    assert explained["profile"]["definition"]["type"] == "managed"
    assert explained["config"] is None and explained["mode"] == "sandboxed"
    assert explained["network"] == {"access": "restricted",
                                    "decided_by": "profile workspace-write", "policy": None, "publish": [],
                                    "hooks": [], "credentials": []}
    assert explained["folder"] == str(place.ws)
    assert explained["workspace_roots"] == [str(place.ws)]
    assert explained["restricted"] is True and explained["refusal"] is None
    found = entries(explained)
    assert found["/"]["access"] == "read" and found["/"]["decided_by"] == "built-in workspace-write"
    assert found[str(place.ws)]["access"] == "write"
    git = found[f"{place.ws}/.git"]
    assert (git["access"], git["state"], git["protected"]) == ("read", "folder", True)
    assert found[f"{place.ws}/.codex"]["state"] == "missing"
    assert list(explained["layers"]) == LAYERS
    assert {"op": "read-only", "path": f"{place.ws}/.git"}.items() <= \
        next(op for op in explained["plan"] if op.get("path") == f"{place.ws}/.git").items()


def test_options_are_named_as_deciders(place):
    (place.outside / "vault").mkdir()
    found = entries(explain(place, "--writable", place.outside, "--deny", f"{place.outside}/vault",
                            "--readable", "."))
    assert found[str(place.outside)]["decided_by"] == f"--writable {place.outside}"
    assert found[f"{place.outside}/vault"]["access"] == "deny"
    assert found[str(place.ws)] == {"path": str(place.ws), "access": "write", "state": "folder",
                                    "protected": False, "decided_by": "built-in workspace-write"}


def test_config_lines_are_named_as_deciders(place):
    config = place.config('default_permissions = "a"\n[permissions.a]\nextends = ":read-only"\n'
                          '[permissions.a.filesystem]\n"/opt" = "deny"\n')
    explained = explain(place)
    assert explained["config"] == str(config)
    assert explained["profile"]["name"] == "a" and explained["profile"]["from"] == str(config)
    assert explained["profile"]["extends"] == ":read-only"
    assert entries(explained)["/opt"]["decided_by"].startswith(f"{config}:5")


@pytest.mark.no_userns
def test_environment_with_reasons_and_without_values(place):
    env = {"API_KEY": "hidden", "PLAIN": "shown"}
    explained = explain(place, "-p", "read-only", "--env", "NEW=1", "--env-exclude", "LANG",
                        env=env)["environment"]
    passed = {item["name"]: item for item in explained["passed"]}
    dropped = {item["name"]: item for item in explained["dropped"]}
    assert passed["PLAIN"] == {"name": "PLAIN", "reason": "inherited"}
    assert passed["NEW"]["reason"] == "set" and passed["CORDON_SANDBOX"]["reason"] == "added"
    assert dropped["API_KEY"] == {"name": "API_KEY", "reason": "default-exclude",
                                  "pattern": "*KEY*"}
    assert dropped["LANG"]["reason"] == "exclude"
    values = explain(place, "-p", "read-only", "--values", env=env)["environment"]["passed"]
    assert {"name": "PLAIN", "reason": "inherited", "value": "shown"} in values
    assert {item["name"]: item["value"] for item in values}["HOME"] == str(place.home)


@pytest.mark.no_userns
def test_text_has_the_same(place):
    ran = place.cordon("explain", "--all", "-p", "read-only", env={"API_KEY": "hidden", "PLAIN": "shown"})
    assert ran.returncode == 0
    for line in ("profile  read-only (from --profile)", "config   no file",
                 "network  restricted: a localhost of its own (from profile read-only)",
                 f"folder   {place.ws}",
                 "  read   /", "         by built-in read-only", "  pass   PLAIN  (inherited)",
                 "  drop   API_KEY  (default-exclude *KEY*)"):
        assert line in ran.stdout.splitlines(), line
    assert "shown" not in ran.stdout and "hidden" not in ran.stdout
    assert "PLAIN=shown" in place.cordon("explain", "-p", "read-only", "--values",
                                         env={"PLAIN": "shown"}).stdout
    for layer in LAYERS:
        assert f"  {layer:<18} " in ran.stdout


def test_text_ends_with_the_plan(place):
    out = place.cordon("explain", "--all").stdout
    plan = out[out.index("\nplan\n"):].splitlines()
    assert "  tree-read-only" in plan
    assert any(line.startswith("  seccomp ") and line.endswith(" asks the guard") for line in plan)


@pytest.mark.no_userns
def test_without_a_sandbox(place):
    explained = explain(place, "-p", "danger-full-access")
    assert explained["mode"] == "bare" and explained["plan"] == []
    assert {layer["state"] for layer in explained["layers"].values()} == {"absent"}
    assert "there is no sandbox" in place.cordon("explain", "--sandbox", "disabled").stdout


@pytest.mark.no_userns
def test_control_characters_cannot_forge_lines(place):
    folder = place.ws / "a\nlayers\n  landlock  \033[31menforced"
    folder.mkdir()
    for options, count in (["--all"], 1), ([], 0):
        ran = place.cordon("explain", *options, "-p", "read-only", cwd=folder)
        assert ran.returncode == 0 and "\033" not in ran.stdout
        assert ran.stdout.count("\nlayers\n") == count and ran.stdout.count("\nlayers  ") <= 1


@pytest.mark.no_userns
def test_own_programs_are_guarded(place):
    """A build of Cordon in the workspace may not be replaced by a command."""
    if place.cordon("doctor").returncode != 0:
        return
    found = entries(explain(place, "-C", CORDON.parent.parent, "--writable", CORDON.parent.parent))
    told = json.loads((BUILD / "meson-info/intro-install_plan.json").read_text())["targets"]
    programs = {path for path, one in told.items() if one["destination"].startswith(("{bindir}/", "{prefix}/libexec/"))}
    assert {str(CORDON), str(LAUNCHER), str(BUILD / "src/tls/cordon-tls")} <= programs
    for program in programs:
        assert found[program]["access"] == "read"
        assert found[program]["decided_by"] == "belongs to Cordon"


@pytest.mark.no_userns
def test_what_cannot_be_enforced_is_explained_and_fails(place):
    if place.cordon("doctor").returncode == 0:
        assert place.cordon("explain").returncode == 0
        return
    assert "layers   refused: " in place.cordon("explain").stdout
    ran = place.cordon("explain", "--all")
    assert ran.returncode == 125
    assert "  refused: " in ran.stdout and "cordon doctor" in ran.stderr
    assert "decided" in ran.stdout or "by built-in" in ran.stdout
    explained = explain(place, code=125)
    assert "without namespaces" in explained["refusal"] and explained["layers"] == {}


# --- one thing


@pytest.mark.parametrize("path, options, verdict, code", [
    ("/etc/passwd", [], "read", 0),
    ("/etc/passwd", ["--for", "write"], "read", 1),
    ("new/file", ["--for", "write"], "write", 0),
    (".git/hooks/pre-commit", ["--for", "write"], "read", 1),
    ("/tmp/x", ["--for=write"], "write", 0),
    ("~/secret", ["--deny", "~/secret"], "deny", 1),
])
def test_a_path(place, path, options, verdict, code):
    answer = explain(place, "--path", path, *options, code=code)
    assert answer["kind"] == "path" and answer["asked"] == path
    assert answer["verdict"] == verdict and answer["allowed"] == (code == 0)


def test_a_path_names_entry_and_decider(place):
    answer = explain(place, "--path", ".git/config", "--for", "write", code=1)
    assert answer["canonical"] == f"{place.ws}/.git/config"
    assert answer["entry"] == f"{place.ws}/.git"
    assert answer["decided_by"] == "protected name .git"
    text = place.cordon("explain", "--path", ".git/config").stdout
    assert text.startswith(".git/config: read\n")
    assert "  decided by  protected name .git\n" in text


def test_a_path_is_followed_through_links(place):
    (place.outside / "real").write_text("x")
    (place.ws / "link").symlink_to(place.outside / "real")
    answer = explain(place, "--path", "link", "--for", "write", code=1)
    assert answer["canonical"] == f"{place.outside}/real" and answer["verdict"] == "read"


@pytest.mark.no_userns
@pytest.mark.parametrize("host, options, code", [
    ("example.org", [], 1),
    ("localhost", [], 0),
    ("127.0.0.1", [], 0),
    ("::1", [], 0),
    ("localhost.example.org", [], 1),
    ("example.org", ["--network", "enabled"], 0),
    ("example.org", ["-p", "danger-full-access"], 0),
])
def test_a_host(place, host, options, code):
    options = options or ["-p", "read-only"]
    answer = explain(place, "--host", host, *options, code=code)
    assert answer["kind"] == "host" and answer["canonical"] is None
    assert answer["verdict"] == ("deny" if code else "allow")
    if code:
        assert answer["decided_by"] == "profile read-only"
        assert "--network enabled" in answer["note"]
        assert f"--allow-host {host} " in answer["note"] and answer["reason"] == "not_allowed"


@pytest.mark.no_userns
@pytest.mark.parametrize("host, verdict, reason, rule, decided_by, note", [
    ("a.example.org:443", "allow", None, "*.example.org", "config.toml:4", "public internet"),
    ("EXAMPLE.ORG.", "deny", "not_allowed", None, "profile dev", "--allow-host example.org."),
    ("ads.example.org", "deny", "denied", "ads.example.org", "config.toml:5", "config.toml:5"),
    ("ask.test:22", "ask", "not_allowed", "ask.test:22", "config.toml:6", "--ask-for-approval"),
    ("cli.test:80", "allow", None, "cli.test", "--allow-host cli.test", "public internet"),
    ("b.example.org:25", "deny", "denied", "*.example.org:25", "--deny-host *.example.org:25",
     "--deny-host"),
    ("10.0.0.1:22", "deny", "not_allowed_local", None, "profile dev", "--allow-host 10.0.0.1:22"),
    ("[::ffff:169.254.169.254]:80", "deny", "not_allowed_local", None, "profile dev", "link-local"),
    ("127.0.0.1:5432", "allow", None, None, "profile dev", "own localhost"),
    ("0.0.0.0:5432", "allow", None, None, "profile dev", "own localhost"),
])
def test_a_host_of_a_proxied_network(place, host, verdict, reason, rule, decided_by, note):
    place.config('''[permissions.dev]
extends = ":workspace"
[permissions.dev.network.domains]
"*.example.org" = "allow"
"ads.example.org" = "deny"
"ask.test:22" = "ask"
''')
    answer = explain(place, "--host", host, "-p", "dev", "--allow-host", "cli.test", "--deny-host",
                     "*.example.org:25", code=0 if verdict == "allow" else 1)
    assert (answer["verdict"], answer["reason"], answer["entry"]) == (verdict, reason, rule)
    assert decided_by in answer["decided_by"] and note in answer["note"]


def test_the_network_says_what_may_be_reached(place):
    options = ["--allow-host", "Example.org", "--deny-host", "a.example.org:25"]
    network = explain(place, *options)["network"]
    assert network["access"] == "proxied" and network["decided_by"] == "--allow-host Example.org"
    assert [(rule["pattern"], rule.get("port"), rule["decision"])
            for rule in network["policy"]["rules"]] == [("example.org", None, "allow"),
                                                        ("a.example.org", 25, "deny")]
    text = place.cordon("explain", *options).stdout
    assert "allow  example.org (from --allow-host Example.org)" in text
    assert "deny   a.example.org:25 (from --deny-host a.example.org:25)" in text
    assert explain(place)["network"]["policy"] is None


def test_who_names_hosts_wants_no_others(place):
    """Also where the profile has the whole network, unless --network says so."""
    place.config('[permissions.dev]\nextends = ":workspace"\n[permissions.dev.network]\nenabled = true\n')
    for options, access in ((["--allow-host", "a.test"], "proxied"), (["--host-port", "5432"], "proxied"),
                            (["--credential", "HOME=a.test"], "proxied"), (["--allow-host", "*", "--deny-host", "b.test"], "proxied"),
                            (["--network", "enabled", "--allow-host", "a.test"], "enabled"), ([], "enabled")):
        network = explain(place, "-p", "dev", *options)["network"]
        assert network["access"] == access, options
        assert access == "enabled" or network["decided_by"].startswith(options[0])


EVERYTHING = """[permissions.dev]
extends = ":workspace"
[permissions.dev.network]
host_ports = [5432]
allow_upstream_proxy = false
allow_local_binding = true
mode = "limited"
publish = ["0:3000"]
[permissions.dev.network.credentials]
GH_TOKEN = ["API.test", "b.test"]
[permissions.dev.network.mitm.hooks.gh]
host = "x.test"
methods = ["get", "POST"]
path_prefixes = ["/a/"]
action = ["put"]
[permissions.dev.network.mitm.actions.put]
strip_request_headers = ["Cookie"]
inject_request_headers = [{name = "X-Key", secret_env_var = "OTHER"}]
"""


def test_all_that_a_network_has_is_told(place):
    """By text, by JSON, and beside another profile; what is secret is not."""
    config = place.config(EVERYTHING)
    env = {"GH_TOKEN": "a-secret-0123456789abcdef", "OTHER": "another-secret-0123456789"}
    network = explain(place, "-p", "dev", env=env)["network"]
    assert network["credentials"] == [{"name": "GH_TOKEN", "hosts": ["api.test", "b.test"]}]
    assert network["hooks"] == [{
        "host": "x.test", "methods": ["GET", "POST"], "path_prefixes": ["/a/"], "query": {}, "headers": {},
        "strip_request_headers": ["Cookie"], "inject_request_headers": [{"name": "X-Key", "secret_env_var": "OTHER"}],
        "origin": f"{config}:11 mitm.hooks.gh"}]
    assert network["policy"].items() >= {"host_ports": [5432], "allow_local_binding": True, "allow_upstream_proxy": False}.items()
    text = place.cordon("explain", "-p", "dev", env=env).stdout
    assert "-secret-0" not in text
    for line in ("allow  localhost:5432 of this machine", "limited: GET", "addresses may be local ones", "without this machine's own proxy",
                 f"hook   x.test GET,POST /a/ (from {config}:11 mitm.hooks.gh)", "takes Cookie out", "puts X-Key in, from $OTHER",
                 "credential GH_TOKEN for api.test, b.test", "publish  127.0.0.1:0:3000"):
        assert line in text, line
    odd = place.base / "\udcff.toml"  # no UTF-8
    odd.write_text(EVERYTHING)
    assert ".toml:11 mitm.hooks.gh)" in place.cordon("explain", "-p", "dev", "--config", odd, env=env).stdout
    differences = explain(place, "--diff", "dev")["differences"]
    assert {(item["what"], item.get("path"), item["from"], item["to"], item["wider"]) for item in differences if "port" in item["what"] or
            item["what"] in ("publish", "credential", "hook", "network mode", "local addresses", "upstream proxy")} == {
        ("host port", "localhost:5432", "-", "yes", True), ("publish", "127.0.0.1:0:3000", "-", "yes", True),
        ("credential", "GH_TOKEN for api.test, b.test", "-", "yes", True), ("hook", "x.test GET,POST /a/", "-", "yes", True),
        ("network mode", None, "full", "limited", False), ("local addresses", None, "deny", "allow", True),
        ("upstream proxy", None, "used", "unused", False)}


@pytest.mark.no_userns
@pytest.mark.parametrize("host, verdict, line", [
    ("api.test:443", "allow", 1), ("api.test:80", "deny", None), ("bad.test:443", "deny", 2),
    ("ask.test:22", "ask", 3),
])
def test_rules_about_hosts_count_where_the_network_is_proxied(place, host, verdict, line):
    file = rules(place, """network_rule(host="API.test", protocol="https", decision="allow")
network_rule(host="bad.test", protocol="https", decision="deny")
network_rule(host="ask.test", protocol="socks5_tcp", decision="prompt")
""")
    answer = explain(place, "--host", host, "--allow-host", "bad.test", code=verdict != "allow")
    assert answer["verdict"] == verdict
    assert answer["decided_by"] == (f"{file}:{line} network_rule" if line
                                    else "--allow-host bad.test")
    assert explain(place, "--host", host, code=1)["decided_by"] == "profile workspace-write"
    assert "allow  api.test by https (from " in place.cordon("explain", "--allow-host", "x.test").stdout


@pytest.mark.no_userns
@pytest.mark.parametrize("text, words", [
    ("network_rule(", "it could deny hosts"),
    ('network_rule(host="b\u00fccher.test", protocol="https", decision="deny")', '"xn--"'),
])
def test_rules_that_are_not_understood_allow_no_host(place, text, words):
    rules(place, text)
    ran = place.cordon("explain", "--allow-host", "a.test", "--host", "a.test")
    assert ran.returncode == 125 and words in ran.stderr and "test.rules:1" in ran.stderr


@pytest.mark.no_userns
@pytest.mark.parametrize("options, words", [
    (["--host", "127.1"], "four decimal numbers"),
    (["--host", "fe80::1%eth0"], "zones"),
    (["--allow-host", "https://example.org/"], '--allow-host: "https://example.org/": should be a host alone'),
    (["--deny-host", "*"], '"*" denies nothing'),
    (["--network", "restricted", "--allow-host", "a.test"], "--allow-host a.test contradicts"),
    (["--network", "restricted", "--host-port", "80"], "--host-port contradicts"),
    (["--host-port", "0"], "no port"),
    (["--network", "enabled", "--deny-host", "a.test"], "Say --network proxied, with --allow-host"),
    (["-p", "danger-full-access", "--deny-host", "a.test"], "--deny-host a.test cannot be kept"),
    (["--allow-local-binding"], "name them with --allow-host"),
    (["--network", "enabled", "--allow-local-binding"], "this one is enabled (from --network enabled)"),
    (["-p", "danger-full-access", "--network", "proxied"], "cannot be kept with the profile"),
    (["--sandbox", "disabled", "--network", "proxied"], "cannot be kept with --sandbox disabled"),
])
def test_hosts_that_cannot_be_kept(place, options, words):
    ran = place.cordon("explain", *options)
    assert ran.returncode == 125 and words in ran.stderr


@pytest.mark.no_userns
def test_wrong_questions(place):
    ran = place.cordon("explain", "--path", "x", "--host", "y")
    assert ran.returncode == 125 and "one at a time" in ran.stderr
    assert place.cordon("explain", "--path", "").returncode == 125
    assert place.cordon("explain", "--for", "write").returncode == 125
    ran = place.cordon("explain", "--path", "x", "--", "make")
    assert ran.returncode == 125 and "one at a time" in ran.stderr
    assert place.cordon("explain", "-p", "nope").returncode == 125


def test_the_answer_is_what_happens(place):
    """For each path the verdict and an attempt inside agree."""
    (place.ws / ".git").mkdir()
    (place.ws / "vault").mkdir()
    (place.ws / "vault/open").mkdir()
    options = ["--deny", "vault", "--readable", "vault/open"]
    for folder in (place.ws, place.ws / ".git", place.ws / "vault/open", place.outside, place.tmp,
                   place.home):
        may = place.cordon("explain", "--path", folder, "--for", "write",
                           *options).returncode == 0
        did = place.shell(f"touch {folder}/attempt", "-q", *options).returncode == 0
        assert may == did, folder


# --- a command


RULES = """prefix_rule(["git", "push"], decision="forbidden", justification="use the mirror")
prefix_rule(["curl"], decision="prompt")
prefix_rule(["make"])
prefix_rule(["ninja"], sandbox="keep")
"""


def rules(place, text=RULES, name="test.rules"):
    return place.config(text, f"home/.config/cordon/rules/{name}")


def command(place, *words, policy="on-request", code=0, options=()):
    asked = ["-a", policy] if policy else []
    return explain(place, *asked, *options, "--", *words, code=code)["command"]


@pytest.mark.parametrize("policy, words, outcome, cause, where", [
    ("on-request", "git push x", "forbid", "rule", "sandbox"),
    ("on-request", "curl x", "ask", "rule", "sandbox"),
    ("never", "curl x", "forbid", "rule", "sandbox"),
    ("on-request", "make all", "skip", "rule", "none"),
    ("untrusted", "ninja", "skip", "rule", "sandbox"),
    ("untrusted", "tool", "ask", "policy", "sandbox"),
    ("untrusted", "cat f", "skip", "safety", "sandbox"),
    ("on-request", "tool", "skip", "policy", "sandbox"),
    ("on-request", "rm -f x", "ask", "danger", "sandbox"),
    (None, "git push", "forbid", "rule", "sandbox"),
    (None, "curl x", "skip", "policy", "sandbox"),
    (None, "make", "skip", "policy", "sandbox"),
])
def test_a_command_is_judged_as_it_would_be_run(place, policy, words, outcome, cause, where):
    rules(place)
    found = command(place, *words.split(), policy=policy, code=1 if outcome == "forbid" else 0)
    assert found["argv"] == words.split()
    requirement = found["requirement"]
    assert (requirement["outcome"], requirement["cause"], requirement["place"]) == \
        (outcome, cause, where)
    assert found["approval"] == {"policy": policy,
                                 "from": "--ask-for-approval" if policy else None}


def test_a_rule_is_named_with_file_line_and_what_it_grants(place):
    file = rules(place)
    found = command(place, "make", "all")
    assert found["rules"]["matchedRules"] == [{"prefixRuleMatch": {
        "matchedPrefix": ["make"], "decision": "allow", "sandbox": "bypass", "layer": "user",
        "file": str(file), "line": 3, "column": 1}}]
    assert "without any sandbox" in found["bypass"]
    assert "stays in" in command(place, "make", policy=None)["bypass"]
    assert "keeps it" in command(place, "make", options=["--deny", "secret"])["bypass"]
    assert command(place, "ninja")["bypass"] is None
    text = place.cordon("explain", "-a", "on-request", "--", "make", "all").stdout
    assert text.startswith("command  make all\n  decision runs without a question: the rule `make` "
                           f"({file}:3) allows it without a sandbox\n  runs     without a sandbox\n"
                           "  approval on-request (from --ask-for-approval)\n")
    assert f'allow by `make`, {file}:3 (user), sandbox = "bypass"\n' in text
    assert 'bypass   an allow rule without sandbox = "keep"' in text


@pytest.mark.parametrize("words, name, danger", [
    (["rm", "-rf", "x"], "dangerous", "forced-rm"),
    (["bash", "-lc", "cd x && sudo rm -f y"], "dangerous", "forced-rm"),
    (["cat", "x"], "known-safe", None),
    (["tool"], "neither", None),
])
def test_its_class_is_told(place, words, name, danger):
    found = command(place, *words, policy=None)
    assert (found["class"], found["danger"]) == (name, danger)


def test_a_broken_file_is_named_and_what_that_means(place):
    rules(place, "prefix_rule(\n", "broken.rules")
    rules(place)
    found = command(place, "tool")
    assert found["requirement"]["outcome"] == "ask"
    assert found["requirement"]["cause"] == "problem"
    assert "could have forbidden" in found["broken"]
    [problem] = found["rules"]["problems"]
    assert problem["file"].endswith("broken.rules") and ":2:1:" in problem["error"]
    assert command(place, "tool", policy=None, code=1)["requirement"]["outcome"] == "forbid"
    text = place.cordon("explain", "--", "git", "push").stdout
    assert "broken.rules:2:1:" in text and "use the mirror" in text


def test_the_policy_may_stand_in_the_config_file(place):
    config = place.config("approval_policy = { granular = { sandbox_approval = true, rules = false,"
                          " mcp_elicitations = true } }\n")
    rules(place)
    found = command(place, "curl", policy=None, code=1)
    assert found["approval"] == {"from": str(config), "policy": {"granular": {
        "sandbox_approval": True, "rules": False, "skill_approval": False,
        "request_permissions": False, "mcp_elicitations": True}}}
    assert "granular and has questions like this switched off" in found["requirement"]["reason"]
    assert command(place, "curl", policy="granular", code=1)["approval"]["policy"] == \
        found["approval"]["policy"]
    assert command(place, "curl", policy="on-request")["requirement"]["outcome"] == "ask"


def test_what_is_said_of_a_command_is_what_happens(place):
    rules(place)
    for words in (["git", "push"], ["true"], ["rm", "-f", "x"]):
        said = place.cordon("explain", "-a", "never", "--", *words)
        ran = place.run("-a", "never", "--", *words)
        assert (said.returncode == 1) == (ran.returncode == 126), words
        if said.returncode:
            reason = json.loads(place.cordon("explain", "-a", "never", "-j", "--", *words).stdout)
            assert f"not run: {reason['command']['requirement']['reason']}" in ran.stderr


def test_a_patch_is_known(place):
    patch = "*** Begin Patch\n*** Add File: x\n+x\n*** End Patch"
    assert command(place, "apply_patch", patch)["patch"] is True
    assert command(place, "cat", "x")["patch"] is False
