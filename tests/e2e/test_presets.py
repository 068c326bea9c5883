"""Presets for tools: what `--with` opens, sets and reads, on a machine without any cache; that nothing outside of a sandbox
is told of it; and what none of them opens. Tools install from a registry that the test serves."""
import base64
import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import tarfile
import threading

import pytest

from harness import BUILD, CORDON, TOP
from host import build
from served import Server, exec_result, exec_run
from tools import passes, where

SHIPPED = sorted(path.stem for path in (TOP / "presets").glob("*.toml"))
MINE = 'about = "mine"\n[env]\nMINE = "{cache}/x"\n[offline_env]\nMINE_OFFLINE = "1"\n'


def preset(place, text=MINE, name="mine"):
    return place.config(text, f"home/.config/cordon/presets/{name}.toml")


def cache(place, name="mine"):
    return place.home / ".cache/cordon/tools" / name


def refused(place, *words, code=125):
    ran = place.run(*words)
    assert ran.returncode == code, ran
    return ran.stderr


# --- those that come with Cordon ---


def test_all_of_them_are_listed_and_say_why(place):
    listed = place.json("presets", "--json")
    assert [one["name"] for one in listed] == SHIPPED
    for one in listed:
        assert one["why"] and not one["own"] and one["env"], one["name"]
        assert all(path.startswith(f"~/.cache/cordon/tools/{one['name']}") for path in one["opens"])
        assert place.json("presets", one["name"], "--json") == one
    text = place.cordon("presets").stdout
    assert all(f"\n{name} " in f"\n{text}" for name in SHIPPED)
    assert place.cordon("presets", "--names").stdout.split() == place.json("presets", "--names", "--json") == SHIPPED
    assert "npm_config_cache={cache}" in place.cordon("presets", "npm").stdout
    nearest = place.cordon("presets", "npmm")
    assert nearest.returncode == 125 and 'did you mean "npm"?' in nearest.stderr


def test_all_of_them_at_once(place):
    """Their directories are made, for this user alone; what they set names nothing else than those."""
    out = passes(place.run("--with", ",".join(SHIPPED), "--", "env"))
    inside = dict(line.split("=", 1) for line in out.splitlines())
    for name in SHIPPED:
        assert cache(place, name).stat().st_mode & 0o7777 == 0o700
        for variable, text in place.json("presets", "--json", name)["env"].items():
            if "{cache}" in text and "PNPM" not in variable and "COREPACK" not in variable:
                assert str(cache(place, name)) in inside[variable], variable
            assert variable not in os.environ or variable in inside
    assert sorted(path.name for path in place.home.iterdir()) == [".cache", ".config"]


class Registry:
    """Of npm: one package, `thing`, with a program."""

    def __init__(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name, text in (("package.json", json.dumps({"name": "thing", "version": "1.0.0", "bin": "run.js"})),
                               ("run.js", "#!/usr/bin/env node\nconsole.log('thing runs')\n")):
                item = tarfile.TarInfo("package/" + name)
                item.size, item.mode = len(text), 0o755
                tar.addfile(item, io.BytesIO(text.encode()))
        tarball, registry = packed.getvalue(), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = tarball if self.path.endswith(".tgz") else json.dumps({
                    "name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
                        "name": "thing", "version": "1.0.0", "bin": {"thing": "run.js"}, "dist": {
                            "tarball": f"{registry.url}/thing.tgz",
                            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()}}},
                }).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize("page", [["--help"], ["run", "--help"]], ids=["cordon", "run"])
@where("npm")
def test_npm_installs_as_help_says_without_any_cache(place, page):
    """E2: the examples of --help; what was installed comes from the cache without a network then."""
    example = re.search(r"^  cordon (run .*npm install)$", place.cordon(*page).stdout, re.MULTILINE).group(1)
    (place.ws / "package.json").write_text('{"name": "x", "version": "1.0.0", "dependencies": {"thing": "1.0.0"}}')
    with Registry() as registry:
        (place.ws / ".npmrc").write_text(f"registry={registry.url}\naudit=false\nfund=false\n")
        passes(place.cordon(*example.replace("--allow-host registry.example.org", f"--host-port {registry.url.split(':')[2].strip('/')}").split()))
    assert "EROFS" not in place.run("--with", "npm", "--", "npm", "install", "other").stderr  # fails, and at once
    passes(place.shell("rm -rf node_modules && npm ci", "--with", "npm"))
    assert passes(place.run("--with", "npm", "--", "npx", "thing")) == "thing runs\n"
    assert (cache(place, "npm") / "cache/_cacache").is_dir() and not (place.home / ".npm").exists()


@where("ccache", "gcc")
def test_ccache_at_the_first_try(place):
    """E3, E5: no rounds of hints."""
    (place.ws / "a.c").write_text("int main(void) { return 0; }\n")
    for _ in range(2):
        ran = place.run("--with", "ccache", "--", "ccache", "gcc", "-c", "a.c")
        assert ran.returncode == 0 and ran.stderr == "", ran
    assert "1 / " in passes(place.run("--with", "ccache", "--", "ccache", "-s")).split("Hits:")[1].splitlines()[0]
    assert not (place.home / ".cache/ccache").exists()


@where("go")
def test_go_builds_and_reads_modules_from_outside(place):
    modules = place.home / "go/pkg/mod/cache/download/example.org/thing/@v"
    modules.mkdir(parents=True)
    (place.ws / "go.mod").write_text("module x\ngo 1.19\nrequire example.org/thing v1.0.0\n")
    (place.ws / "m.go").write_text('package main\nimport "example.org/thing"\nfunc main() { println(thing.Answer) }\n')
    mod, source = b"module example.org/thing\n", b"package thing\nconst Answer = 42\n"
    (modules / "v1.0.0.mod").write_bytes(mod)
    (modules / "v1.0.0.info").write_text('{"Version": "v1.0.0"}')
    subprocess.run(["python3", "-c", "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n"
                    " z.writestr('example.org/thing@v1.0.0/go.mod', sys.argv[2])\n"
                    " z.writestr('example.org/thing@v1.0.0/t.go', sys.argv[3])",
                    modules / "v1.0.0.zip", mod, source], check=True)
    ran = place.shell("GONOSUMDB=* GOFLAGS=\"$GOFLAGS -mod=mod\" go build -o x . && ./x", "--with", "go",
                      env={"GOFLAGS": "-trimpath"})
    assert ran.returncode == 0 and ran.stderr.endswith("42\n"), ran
    assert not (place.home / ".cache/go-build").exists() and (cache(place, "go") / "mod/example.org").is_dir()


def test_a_refusal_names_the_preset(place):
    """E2, E5: not an entry for the tool's cache outside, nor round after round of them; and what it names there is."""
    for path, name in ((".npm/_cacache/tmp/x", "npm"), (".cache/ccache/9/5", "ccache"), ("go/pkg/mod/x", "go"),
                       (".cache/go-build/00", "go"), (".cargo/registry/x", "cargo"), (".m2/repository/x", "maven"),
                       (".cache/pip/http/x", "pip"), (".gradle/caches/x", "gradle")):
        ran = place.shell(f"mkdir -p ~/{path}", "--json")
        remedies = [denial["remedy"] for denial in json.loads(ran.stdout)["denials"]]
        assert remedies == [f"Give it a cache of its own: --with {name}."], path
        passes(place.run("--with", name, "--", "true"))
    table = (TOP / "src/policy/tool_cache.c").read_text()
    assert {*re.findall(r'\{".*?", "(.*?)"\}', table)} == {*SHIPPED}
    # what is near it is not it
    assert "--with" not in place.shell("mkdir ~/.npmx").stderr


# --- what is set ---


def test_an_option_beats_the_config_and_that_a_preset(place):
    preset(place)
    out = passes(place.run("--with", "mine", "--", "sh", "-c", "echo $MINE $MINE_OFFLINE"))
    assert out == f"{cache(place)}/x 1\n"
    # of what is inherited nothing is left, and what is sought is passed all the same
    assert passes(place.run("--with", "mine", "--env-include", "PATH", "--", "sh", "-c", "echo $MINE"),
                  ) == f"{cache(place)}/x\n"
    assert passes(place.run("--with", "mine", "--", "sh", "-c", "echo $MINE"), ) == f"{cache(place)}/x\n"
    place.config('[shell_environment_policy]\nset = { MINE = "config" }\n')
    assert passes(place.run("--with", "mine", "--", "sh", "-c", "echo $MINE")) == "config\n"
    assert passes(place.run("--with", "mine", "-e", "MINE=option", "--", "sh", "-c", "echo $MINE")) == "option\n"
    shown = place.cordon("explain", "--with", "mine", "--json")
    reasons = {note["name"]: note["reason"] for note in json.loads(shown.stdout)["environment"]["passed"]}
    assert reasons["MINE"] == "set" and reasons["MINE_OFFLINE"] == "preset"


def test_with_a_network_nothing_is_offline(place):
    preset(place)
    assert passes(place.run("--with", "mine", "-n", "enabled", "--", "sh", "-c", "echo =$MINE_OFFLINE")) == "=\n"


def test_nothing_outside_of_a_sandbox_is_told(place):
    """What a command in a sandbox has left in a cache is not believed by one without."""
    preset(place)
    assert passes(place.run("--with", "mine", "--sandbox", "disabled", "--", "sh", "-c", "echo =$MINE")) == "=\n"
    assert passes(place.run("--with", "mine", "-p", "danger-full-access", "--", "sh", "-c", "echo =$MINE")) == "=\n"
    assert not cache(place).exists()
    # nor by one that leaves its sandbox by a rule, at once or from within
    place.config('prefix_rule(["printenv"], decision="allow", sandbox="bypass")\n', "home/.config/cordon/rules/default.rules")
    inherited = {"MINE": "own"}
    for words in (["--", "printenv", "MINE"], ["--judge", "every-exec", "--", "sh", "-c", "printenv MINE"]):
        assert place.run("--with", "mine", "-a", "on-request", *words).stdout == "", words
        assert place.run("--with", "mine", "-a", "on-request", *words, env=inherited).stdout == "own\n", words
        assert passes(place.run("--with", "mine", *words)) == f"{cache(place)}/x\n"
    assert "there is no preset" in refused(place, "--with", "mien", "--sandbox", "disabled", "--", "true")


def test_what_is_left_out_of_the_environment_is_not_brought_back(place):
    preset(place, 'about = "mine"\n[env]\nMINE = "{env.HIDDEN_OPTS} {env.MY_TOKEN} {env.SEEN} end"\n')
    env = {"HIDDEN_OPTS": "-Dpassword=x", "MY_TOKEN": "x", "SEEN": "seen"}
    for words, said in ((["--env-exclude", "HIDDEN*"], "seen end"), (["--env-inherit", "core"], "end")):
        assert passes(place.run(*words, "--with", "mine", "--", "/bin/sh", "-c", 'echo "$MINE"', env=env)) == said + "\n"


def test_what_is_outside_is_read_where_it_is_there(place):
    preset(place, MINE + '[outside."~/.tool"]\nMINE = "{home}/.tool"\n')
    assert str(cache(place)) in passes(place.run("--with", "mine", "--", "sh", "-c", "echo $MINE"))
    (place.home / ".tool").mkdir()
    (place.home / ".tool/file").write_text("outside\n")
    place.config('[permissions.least.filesystem]\n":minimal" = "read"\n":workspace_roots" = "write"\n'
                 '[permissions.closed]\nextends = ":workspace"\n'
                 '[permissions.closed.filesystem]\n"~/.tool" = "deny"\n')
    script = "cat $MINE/file && touch $MINE/new"
    for profile in ("workspace-write", "least"):
        ran = place.shell(script, "--with", "mine", "-p", profile)
        assert ran.stdout == "outside\n" and ran.returncode == 1, ran
    assert str(cache(place)) in passes(place.run("--with", "mine", "-p", "closed", "--", "sh", "-c", "echo $MINE"))


# --- profiles, files ---


def test_profiles_name_presets(place):
    preset(place)
    preset(place, 'about = "other"\n[env]\nOTHER = "{cache}"\nMINE = "of other"\n', "other")
    place.config('[permissions.base]\nextends = ":workspace"\nwith = ["mine"]\n'
                 '[permissions.same]\nextends = "base"\n'
                 '[permissions.none]\nextends = "base"\nwith = []\n'
                 '[permissions.wrong]\nextends = ":workspace"\nwith = [\n"mine", "ohter"]\n')
    script = ["--", "sh", "-c", "echo $MINE $OTHER"]
    assert passes(place.run("-p", "same", *script)) == f"{cache(place)}/x\n"
    assert passes(place.run("-p", "none", *script)) == "\n"
    assert passes(place.run("-p", "base", "--with", "other", *script)) == f"of other {cache(place, 'other')}\n"
    said = refused(place, "-p", "wrong", "--", "true")
    assert 'config.toml:11: with: there is no preset "ohter", did you mean "other"?' in said


def test_explain_names_the_file(place):
    file = preset(place)
    shown = place.json("explain", "--with", "mine", "--json")
    entry = next(entry for entry in shown["entries"] if entry["path"] == str(cache(place)))
    assert entry["access"] == "write" and entry["decided_by"] == f"preset mine ({file})"


def test_a_file_of_the_user_counts_first_and_nobody_elses(place):
    for folder in (".cordon/presets", "presets", ".codex/presets", "share/cordon/presets"):
        (place.ws / folder).mkdir(parents=True)
        (place.ws / folder / "planted.toml").write_text(MINE)
    place.config(f'[projects."{place.ws}"]\ntrust_level = "trusted"\n')
    for name in ("planted", "./presets/planted", "../planted", "planted.toml", ""):
        refused(place, "--with", name, "--", "true")
    preset(place, 'about = "my own npm"\n', "npm")
    shown = place.json("presets", "--json", "npm")
    assert shown["own"] and shown["shadows"] and shown["env"] == {}
    assert "in place of Cordon's" in place.cordon("presets").stdout
    assert passes(place.run("--with", "npm", "--", "sh", "-c", "echo =$npm_config_cache")) == "=\n"


def test_a_broken_file_is_said_and_the_others_work(place):
    preset(place)
    broken = preset(place, 'about = "x"\nwirte = []\n', "broken")
    said = f'{broken}:2: unknown key "wirte", did you mean "write"?'
    assert said in refused(place, "--with", "broken", "--", "true")
    listed = place.cordon("presets")
    assert listed.returncode == 125 and said in listed.stderr and "\nmine " in listed.stdout
    passes(place.run("--with", "mine", "--", "true"))


def test_presets_cannot_be_written_by_commands(place):
    """Neither the user's, were the home directory the workspace, nor those that come with Cordon."""
    file = preset(place)
    script = 'test -w . && test ! -w "$0" && test ! -w "$(dirname "$0")"'
    passes(place.run("-q", "-C", place.home, "--", "sh", "-c", script, file))
    passes(place.run("-q", "-C", BUILD, "--", "sh", "-c", script, BUILD / "presets/npm.toml"))


# --- what no preset opens ---


@pytest.mark.parametrize("text", [
    'write = ["~"]', 'write = ["~/"]', 'write = ["/etc"]', 'write = ["~/../x"]', 'write = ["~/.ssh"]', 'write = ["~/.config"]',
    'write = ["~/.cache"]', 'write = ["~/.bashrc"]', 'write = ["~/x/.git"]', 'env = { PATH = "{cache}" }',
    'env = { LD_PRELOAD = "{cache}/x.so" }', '[outside."/root"]'])
def test_what_decides_more_than_a_tool_is_none(place, text):
    file = preset(place, f'about = "greedy"\n{text}\n')
    assert f"{file}:2: " in refused(place, "--with", "mine", "--", "true")


def test_what_is_denied_stays_so(place):
    preset(place)
    for words in (["--deny", "~/.cache"], ["--deny", "~"], ["--deny", "~/.cache/cordon/tools/mine"],
                  ["--deny", f"{place.home}/.cache/**"], ["--deny", f"{place.home}/.cache/cordon/*/m*"]):
        (place.home / ".cache").mkdir(exist_ok=True)
        said = refused(place, "--with", "mine", *words, "--", "true")
        assert str(cache(place)) in said and words[1].replace("~", str(place.home)) in said.replace("~", str(place.home))
    place.config('[permissions.shy]\nextends = ":workspace"\nwith = ["mine"]\n[permissions.shy.filesystem]\n"~" = "deny"\n'
                 '"~/.cache/cordon/tools" = "read"\n')  # the remedy
    passes(place.run("-p", "shy", "--", "touch", cache(place) / "x"))


def test_what_is_denied_in_what_it_opens_stays_so(place):
    preset(place)
    cache(place).mkdir(parents=True)
    (cache(place) / "secret").write_text("x")
    ran = place.shell("cat $MINE/../secret", "--with", "mine", "--deny", cache(place) / "secret")
    assert ran.returncode == 1 and ran.stdout == ""


def test_a_workspace_of_its_own_where_files_are_linked(place):
    """A command in one workspace must not change files of another one, which are the same as those in a cache."""
    preset(place, 'about = "links"\nper_workspace = true\n[env]\nMINE = "{cache}"\n')
    other = place.base / "other"
    other.mkdir()
    script = ["--", "sh", "-c", "touch $MINE/x && echo $MINE"]
    first = passes(place.run("--with", "mine", *script))
    second = passes(place.run("--with", "mine", "-C", other, *script))
    assert first != second and "/mine/ws-" in first and "/mine/other-" in second
    above = passes(place.run("--with", "mine", "-C", place.base, *script)).strip()
    assert not first.startswith(above)
    deep = place.base / ("x" * 255)
    deep.mkdir()
    (place.base / "link").symlink_to(deep)
    named = [passes(place.run("--with", "mine", "-C", folder, *script)) for folder in (deep, place.base / "link")]
    assert named[0] == named[1] != first
    ran = place.shell(f"echo changed > {first.strip()}/x", "--with", "mine", "-C", other)
    assert ran.returncode == 2 and "Read-only" in ran.stderr
    per_workspace = [name for name in SHIPPED if place.json("presets", "--json", name)["opens"][0].endswith("/WORKSPACE")]
    assert per_workspace == ["bun", "deno", "yarn"]


# --- attacks ---


def test_no_link_leads_a_preset_elsewhere(place):
    preset(place)
    target = place.home / ".ssh"
    target.mkdir()
    for link in (cache(place).parent.parent, cache(place).parent, cache(place)):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        assert "a link is not followed here" in refused(place, "--with", "mine", "--", "true")
        link.unlink()
    assert list(target.iterdir()) == []
    cache(place).write_text("a file")
    assert "is no directory" in refused(place, "--with", "mine", "--", "true")
    cache(place).unlink()
    passes(place.run("--with", "mine", "--", "true"))


def test_a_command_cannot_choose_what_is_opened(place):
    """The home directory is the workspace: the command could turn a link ~/.cache, and is not followed there."""
    preset(place)
    (place.home / ".cache").symlink_to(place.outside)
    said = refused(place, "-q", "-C", place.home, "--with", "mine", "--", "true")
    assert "leads through the symlink" in said and str(place.outside) in said
    assert list(place.outside.iterdir()) == []
    # from elsewhere it is a link of the user's, as to a larger disk
    passes(place.run("--with", "mine", "--", "touch", place.outside / "cordon/tools/mine/x"))
    assert (place.outside / "cordon/tools/mine/x").exists()
    assert place.run("--with", "mine", "--", "touch", place.outside / "cordon/tools/x").returncode == 1
    # but it leads to nothing of Cordon's
    (place.home / ".cache").unlink()
    (place.home / ".config/cordon/tools").mkdir()
    (place.home / ".cache").symlink_to(place.home / ".config")
    assert "belongs to Cordon" in refused(place, "--with", "mine", "--", "true")


def test_the_directory_itself_stays_where_it_is(place):
    preset(place)
    ran = place.shell(f"cd {cache(place)}/.. && mv mine moved; rm -rf mine; ln -s / mine/../other; ls -A",
                      "--with", "mine")
    assert ran.stdout == "mine\n", ran
    assert cache(place).is_dir() and not cache(place).is_symlink()


def test_a_directory_of_somebody_else_is_none(place):
    preset(place)
    cache(place).mkdir(parents=True)
    cache(place).chmod(0o777)
    assert "chmod o-w" in refused(place, "--with", "mine", "--", "true")
    if os.geteuid() == 0:
        cache(place).chmod(0o700)
        os.chown(cache(place), 64999, 64999)
        assert "belongs to the user with id 64999" in refused(place, "--with", "mine", "--", "true")


# --- the other faces ---


def test_a_server_opens_and_sets_the_same(place):
    preset(place)
    with Server(place) as server, server.client() as client:
        sandbox = {"profile": None, "with": ["mine"]}
        script = "touch $MINE.t && echo $MINE $MINE_OFFLINE"
        result = exec_result(client, exec_run(client, "r1", script, sandbox=sandbox))
        assert result["document"]["stdout"] == f"{cache(place)}/x 1\n"
        assert client.run("p1", script, sandbox=sandbox).output == f"{cache(place)}/x 1\n".encode()
        chosen = client.run("p2", "echo $MINE", sandbox=sandbox, env={"MINE": "chosen"})
        assert chosen.output == b"chosen\n"
        bare = client.run("p3", "echo =$MINE", sandbox={**sandbox, "mode": "disabled"})
        assert bare.output == b"=\n"
        error = client.answer(exec_run(client, "r2", "true", sandbox={"profile": None, "with": ["mien"]}))["error"]
        assert "sandbox.with" in error["message"] and 'did you mean "mine"?' in error["message"]
        # what was removed meanwhile is made again
        subprocess.run(["rm", "-r", cache(place)], check=True)
        assert client.run("p4", script, sandbox=sandbox).code == 0
    with Server(place, listen=f"unix:{place.base}/serve.sock") as server:
        ran = place.cordon("--connect", server.url, "run", "--with", "mine", "--", "sh", "-c", "echo $MINE")
        assert ran.stdout == f"{cache(place)}/x\n"


def test_the_library_opens_and_sets_the_same(place):
    preset(place)
    program = build(place, "options")
    env = {"CORDON_LINUX_SANDBOX_EXE": str(BUILD / "src/sandbox/launcher/cordon-linux-sandbox")}
    ran = place.cordon(place.base / "none", "./own", "mine", program=program, env=env, text='touch "$MINE"\n')
    assert ran.stdout == "0 0\n" and (cache(place) / "x").exists(), ran
    ran = place.cordon(place.base / "none", "./own", "mien", program=program, env=env, text="true\n")
    assert ran.returncode == 1 and 'policy.with: there is no preset "mien"' in ran.stderr


@where("strace")
def test_no_look_at_presets_without_one(place):
    """A command that names none pays nothing for them."""
    trace = place.base / "trace"
    for words, is_looked_at in (([], False), (["--with", "npm"], True)):
        subprocess.run(["strace", "-e", "trace=file", "-o", trace, CORDON, "run", *words, "--", "true"], cwd=place.ws,
                       env=place.env, check=True)
        assert ('/npm.toml"' in trace.read_text()) == is_looked_at


def test_a_configuration_names_hosts_unless_commands_can_write_it(place):
    """Else they would choose what the next command reaches."""
    npmrc = place.home / ".npmrc"

    def hosts(*options):
        network = place.json("explain", "--json", "--network", "proxied", "--with", "npm", *options)["network"]
        return [(rule["pattern"], rule.get("port")) for rule in network["policy"]["rules"]]

    npmrc.write_text("registry=https://registry.test/\n@own:registry = http://own.test:4873/npm\n;registry=https://no.test\n")
    assert hosts() == [("registry.test", None), ("own.test", 4873)]
    assert hosts("--writable", npmrc) == hosts("--writable", place.home) == []
    npmrc.rename(place.ws / "npmrc")
    npmrc.symlink_to(place.ws / "npmrc")
    assert hosts() == []
    npmrc.unlink()
    assert hosts() == []
