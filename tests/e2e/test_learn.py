"""`cordon learn`: a profile of what a command needed, which opens caches and nothing else, under which the
command passes again. Larger tools: test_learn_tools.py."""
import os
import re
import subprocess

import pytest

from harness import CORDON
from learning import CONFIG, check, learn, opened
from tools import where


def git_in(folder, script):
    subprocess.run(["sh", "-c", f"git {script}"], cwd=folder, check=True, capture_output=True)

# --- everyday tasks


@where("sqlite3")
def test_sqlite(place):
    paths = check(place, "mkdir -p ~/.cache/tool && "
                         "sqlite3 ~/.cache/tool/db 'pragma journal_mode=wal; create table if not exists a (b); "
                         "insert into a values (1); select * from a'")
    assert paths == {".cache/tool"}


GIT = "git -c user.name=a -c user.email=b"


@where("git")
@pytest.mark.parametrize("linked", [False, True])
def test_git_commit(place, linked):
    git_in(place.ws, "init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m a")
    if linked:
        git_in(place.ws, f"worktree add -q {place.base}/linked")
    folder = place.base / "linked" if linked else place.ws
    check(place, f"date +%N >file && git add file && {GIT} commit -qm b && git log", others=["git"], cwd=folder)
    assert re.search(r'^git = "commit"  # git: ', (place.base / CONFIG).read_text(), re.MULTILINE)
    ran = place.run("-p", "task", "--", "sh", "-c", f"echo x >{place.ws}/.git/hooks/pre-commit", cwd=folder)
    assert ran.returncode != 0 and not (place.ws / ".git/hooks/pre-commit").exists()


@where("git")
def test_git_log_wants_no_more(place):
    """Nor does `git status`, which writes the index where it may, and does without."""
    git_in(place.ws, "init -q . && echo x >a && git add a")
    (place.ws / "a").touch()
    assert check(place, "git status && git diff --cached && git log --all") == set()
    assert "git =" not in (place.base / CONFIG).read_text()


@where("git")
def test_a_repository_is_made_where_it_is_asked_for(place):
    ran = learn(place, "asked", "git init -q .")
    assert ran.returncode and f"not opened: create {place.ws}/.git" in ran.stderr and not (place.base / CONFIG).exists()
    assert learn(place, "asked", "git init -q .", "--git", "commit").returncode == 0
    assert '\ngit = "commit"' in (place.base / CONFIG).read_text()


@where("git")
def test_commits_of_the_profile_that_is_extended(place):
    place.config("default_permissions = 'own'\n[permissions.own]\nextends = ':workspace'\ngit = 'commit'\n")
    git_in(place.ws, "init -q .")
    assert learn(place, "same", f"{GIT} commit --allow-empty -qm a").returncode == 0
    assert "git =" not in (place.base / CONFIG).read_text().split("# >>>")[1]
    assert learn(place, "less", "true", "--git", "read").returncode == 0
    assert place.run("-p", "same", "--", "sh", "-c", f"{GIT} commit --allow-empty -qm b").returncode == 0
    assert place.run("-p", "less", "--", "sh", "-c", f"{GIT} commit --allow-empty -qm c").returncode != 0


@where("git")
def test_what_git_runs_is_not_learnt(place):
    git_in(place.ws, "init -q .")
    ran = learn(place, "hooks", "for i in hooks/post-commit info/attributes config HEAD; do echo x >>.git/$i; done; true")
    assert ran.returncode == 0 and "git =" not in (place.base / CONFIG).read_text()
    assert not (place.ws / ".git/hooks/post-commit").exists()
    git_in(place.ws, "status")
    refused = learn(place, "refused", f"{GIT} commit --allow-empty -qm a", "--git", "read")
    assert refused.returncode and "not opened: " in refused.stderr


def test_a_script_with_a_cache(place):
    script = "mkdir -p ~/.cache/x/deep && echo $$ >~/.cache/x/deep/file && mv ~/.cache/x/deep/file ~/.cache/x/g"
    assert check(place, script) == {".cache/x"}
    text = (place.base / CONFIG).read_text()
    assert re.search(r'^"~/.cache/x" = "write"  # .*mv: rename', text, re.MULTILINE)
    assert re.search(r'^"~/.cache/x" = "write"  # .*sh: create', text, re.MULTILINE)


# --- what it is made of


def test_what_a_run_does_not_need_is_not_in_it(place):
    ran = learn(place, "none", "echo x >made; cat /etc/passwd >/dev/null; echo x >$TMPDIR/x")
    assert ran.returncode == 0
    assert "filesystem" not in (place.base / CONFIG).read_text()
    assert opened(place, "none") == (set(), [])


def test_what_no_profile_opens_is_told_with_its_reason(place):
    (place.home / ".ssh").mkdir()
    (place.ws / ".git").mkdir()
    (place.outside / "data").mkdir()
    ran = place.cordon("learn", "--", "sh", "-c", f"""
        touch ~/new ~/.bashrc ~/.ssh/authorized_keys ~/.config/x .git/x /etc/x {place.outside}/data/x
        touch ~/.config/cordon/config.toml; true""")
    assert ran.returncode == 0, ran.stderr
    text = ran.stdout
    assert "filesystem" not in text
    for path, why in ((place.home / "new", "your home directory"), (place.home / ".bashrc", "your home directory"),
                      (place.home / ".ssh/authorized_keys", "other programs run or obey"),
                      (place.ws / ".git/x", "hooks and configuration stay closed"), ("/etc/x", "other programs run or obey"),
                      (place.outside / "data/x", f"cordon learn --writable {place.outside}/data")):
        if path == "/etc/x" and os.geteuid():
            continue  # nobody but root was refused it by Cordon
        [line] = [line for line in text.splitlines() if f" {path}, by touch: " in line]
        assert why in line and line.startswith("#"), line
    assert not re.search(r"--writable (/etc|/|%s)$" % place.home, text, re.MULTILINE)


def test_what_the_person_names_is_in_it_when_it_was_needed(place):
    for name in ("used", "unused"):
        (place.outside / name).mkdir()
    options = [word for name in ("used", "unused") for word in ("--writable", str(place.outside / name))]
    ran = learn(place, "named", f"touch {place.outside}/used/x", *options)
    assert ran.returncode == 0, ran.stderr
    text = (place.base / CONFIG).read_text()
    assert f'"{place.outside}/used" = "write"' in text and "unused" not in text.split("[permissions")[2]
    assert place.run("-p", "named", "--", "touch", f"{place.outside}/used/y").returncode == 0


@pytest.mark.parametrize("tmp", ["host", "private"])
def test_which_temporary_folders_it_had_is_in_it(place, tmp):
    assert learn(place, "temporary", "true", "--tmp", tmp).returncode == 0
    assert f'\ntmp = "{tmp}"\n' in (place.base / CONFIG).read_text()
    assert place.run("-p", "temporary", "--", "true").returncode == 0


def test_a_base_of_any_name(place):
    place.config("default_permissions = 'a \"b'\n[permissions.'a \"b']\nextends = ':workspace'\n")
    assert learn(place, "more", "mkdir -p ~/.cache/x").returncode == 0
    assert place.run("-p", "more", "--", "sh", "-c", "touch ~/.cache/x/y").returncode == 0


def test_what_is_no_one_path_is_in_it_as_it_was_said(place):
    assert learn(place, "cards", "true", "--gpu").returncode == 0
    assert '":gpu" = "write"' in (place.base / CONFIG).read_text()
    assert place.run("-p", "cards", "--", "true").returncode == 0


def test_a_failed_command_adds_nothing(place):
    ran = learn(place, "failed", "mkdir -p ~/.cache/x; exit 3")
    assert ran.returncode == 3 and "nothing is added" in ran.stderr
    assert not (place.base / CONFIG).exists()
    ran = place.cordon("learn", "--", "sh", "-c", "mkdir -p ~/.cache/y; exit 3")
    assert ran.returncode == 3 and "# It ended with 3" in ran.stdout and '"~/.cache/y"' in ran.stdout


def test_stdout_has_the_profile_alone(place):
    ran = place.cordon("learn", "--", "sh", "-c", "mkdir -p ~/.cache/x; echo loud; echo louder >&2")
    assert "loud" in ran.stderr and "louder" in ran.stderr
    assert ran.stdout.startswith("# Learnt on ") and "\nloud\n" not in ran.stdout
    file = place.config(ran.stdout)
    assert place.cordon("config", "check").stdout.endswith("/config.toml: right\n"), file.read_text()
    assert "loud" in learn(place, "aside", "echo loud").stdout


def test_json(place):
    found = place.json("learn", "--json", "--", "sh", "-c", "mkdir -p ~/.cache/x; touch ~/new; exit 0")
    assert found["entries"] == [{"path": f"{place.home}/.cache/x", "access": "write", "needed_by": ["mkdir: create"]}]
    assert found["profile"] == "learnt" and found["extends"] == ":workspace" and found["file"] is None
    assert [one["what"] for one in found["refused"]] == [f"create {place.home}/new"]
    assert found["git"] is None and found["network"] is False and found["lost"] == 0 and "[permissions.learnt]" in found["toml"]


def test_the_network_is_no_matter_of_learning(place):
    ran = learn(place, "net", "python3 -c 'import socket; s = socket.socket(); s.settimeout(3); s.connect((\"192.0.2.1\", 80))'; true")
    assert ran.returncode == 0 and 'cordon learn --allow-host "*"' in ran.stderr, ran.stderr
    assert "network" not in (place.base / CONFIG).read_text().replace("the network is restricted", "")\
        .replace("--network", "")


INSIDE = """ip link set lo up && ip addr add 12.0.0.1/32 dev lo && ip route add local 93.184.216.34 dev lo src 12.0.0.1 || exit 99
exec 3< <(exec python3 -u -c 'import socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline())
server = socketserver.ThreadingTCPServer(("93.184.216.34", 8080), Handler)
print("up")
server.serve_forever()')
server=$!
read -r <&3
"$@"
status=$?
kill $server
exit $status
"""


@where("ip")
def test_hosts_that_were_reached_are_in_the_profile(place):
    """A server with a public address, in a network of its own: learnt, and reached again by the profile alone."""
    say = ["bash", "-c", "exec 4<>/dev/tcp/93.184.216.34/8080; echo hi >&4; read -r line <&4; test $line = hi"]
    world = ["unshare", "-Urn", "bash", "-c", INSIDE, "world"]

    def cordon(*words):
        return subprocess.run([*world, CORDON, *words], cwd=place.ws, env=place.env, capture_output=True, text=True)

    ran = cordon("learn", "-o", "net", "--allow-host", "*", "--deny-host", "bad.test", "--host-port", "5432",
                 "--publish", "0:3000", "--credential", "HOME=a.test,b.test", "--", *say)
    assert ran.returncode == 0, ran.stderr
    text = (place.base / CONFIG).read_text()
    assert 'host_ports = [5432]  # asked for by an option\n' in text
    assert 'publish = ["127.0.0.1:0:3000"]  # asked for by an option\n' in text
    assert '[permissions.net.network.credentials]\nHOME = ["a.test", "b.test"]  # asked for by an option\n' in text
    assert '[permissions.net.network.domains]\n"93.184.216.34:8080" = "allow"  # bash\n"bad.test" = "deny"' in text
    assert cordon("run", "-p", "net", "--", *say).returncode == 0
    ran = cordon("run", "--allow-host", "93.184.216.35", "--", *say)
    assert ran.returncode and "--allow-host 93.184.216.34:8080" in ran.stderr, ran.stderr


def test_folders_that_were_not_used_are_gone(place):
    assert place.cordon("learn", "--", "true").returncode == 0
    assert set(os.listdir(place.home)) <= {".config", ".cache"} and os.listdir(place.home / ".cache") == ["cordon"]


# --- in the config file


def test_the_rest_of_the_file_stays(place):
    mine = "# mine\nprotect = ['git']\n[permissions.own]\nextends = ':workspace'"  # no line feed
    file = place.config(mine)
    file.chmod(0o640)
    assert learn(place, "a", "mkdir -p ~/.cache/x").returncode == 0
    assert learn(place, "b", "mkdir -p ~/.cache/y").returncode == 0
    both = file.read_text()
    assert both.startswith(mine + "\n\n") and file.stat().st_mode & 0o777 == 0o640
    ran = learn(place, "a", "mkdir -p ~/.cache/z")
    assert ran.returncode == 125 and "--replace" in ran.stderr and file.read_text() == both
    assert not (place.home / ".cache/z").exists()  # it was not even run
    assert learn(place, "a", "mkdir -p ~/.cache/z", "--replace").returncode == 0
    text = file.read_text()
    assert text.startswith(mine + "\n\n") and '"~/.cache/z"' in text and '"~/.cache/x"' not in text
    assert re.sub(r"# >>> cordon learn: b.*?<<< cordon learn: b\n", "", both, flags=re.DOTALL).count("permissions") == 3
    assert '"~/.cache/y"' in text and place.cordon("config", "check").stdout.endswith("/config.toml: right\n")


@pytest.mark.parametrize("name", ["own", "read-only", ":workspace", "a b", "", "a.b"])
def test_names_that_are_taken_or_none(place, name):
    text = "[permissions.own]\nextends = ':workspace'\n"
    file = place.config(text)
    for more in ([], ["--replace"]):
        assert learn(place, name, "touch ran", *more).returncode == 125
        assert not (place.ws / "ran").exists()
        assert file.read_text() == text


def test_what_a_mode_of_the_file_opens_is_in_it(place):
    """A profile cannot extend the table of a mode."""
    place.config(f"sandbox_mode = 'workspace-write'\n[sandbox_workspace_write]\nwritable_roots = ['{place.outside}']\n")
    assert learn(place, "mode", f"touch {place.outside}/x").returncode == 0
    assert place.run("-p", "mode", "--", "touch", f"{place.outside}/y").returncode == 0


def test_a_profile_that_watches_nothing_is_watched_while_it_is_learnt_of(place):
    place.config("default_permissions = 'own'\n[permissions.own]\nextends = ':workspace'\nwatch = 'off'\n")
    assert learn(place, "more", "mkdir -p ~/.cache/x").returncode == 0
    assert '"~/.cache/x" = "write"' in (place.base / CONFIG).read_text()


def test_a_profile_of_ones_own_is_extended(place):
    place.config("default_permissions = 'own'\n[permissions.own]\nextends = ':workspace'\n"
                 "[permissions.own.filesystem]\n'~/.cache/shut' = 'read'\n'~/.npm' = 'deny'\n")
    for path in (".cache/shut", ".npm"):
        (place.home / path).mkdir(parents=True)
    ran = learn(place, "more", "mkdir ~/.cache/x; touch ~/.cache/shut/x ~/.npm/x; true")
    text = (place.base / CONFIG).read_text().split("# >>>")[1]
    assert ran.returncode == 0 and 'extends = "own"' in text
    assert '"~/.cache/x" = "write"' in text and '"~/.cache/shut"' not in text and '"~/.npm' not in text
    assert not (place.home / ".npm/x").exists() and not (place.home / ".cache/shut/x").exists()


def test_presets_that_it_was_run_with_are_in_it(place):
    """Also those of the profile that is extended; and what they keep lies where no learning reaches it."""
    place.config("default_permissions = 'own'\n[permissions.own]\nextends = ':workspace'\nwith = ['pip']\n")
    script = 'mkdir -p "$CCACHE_DIR/x" "$PIP_CACHE_DIR/y"'
    ran = learn(place, "tools", script, "--with", "ccache")
    assert ran.returncode == 0, ran.stderr
    text = (place.base / CONFIG).read_text().split("# >>>")[1]
    assert 'with = ["pip", "ccache"]' in text and "filesystem" not in text
    assert place.run("-p", "tools", "--", "sh", "-c", script).returncode == 0


def test_a_cache_that_is_used_outside_too_is_told_of(place):
    ran = place.cordon("learn", "--", "sh", "-c", "mkdir -p ~/.cache/pip/http ~/.cache/other")
    assert ran.stdout.count("cordon learn --with pip") == 1 and "--with other" not in ran.stdout
    ran = learn(place, "cached", "mkdir -p ~/.cache/pip/http/x ~/.cache/other/x")
    assert ran.stderr.count("cordon learn -o cached --replace --with pip") == 1 and "--with other" not in ran.stderr


def test_what_cordon_keeps_in_the_cache_stays_closed(place):
    for there in (False, True):
        if there:
            (place.home / ".cache/cordon/tools/npm").mkdir(parents=True)
        ran = place.cordon("learn", "--", "sh", "-c", """
            mkdir -p ~/.cache/cordon/tools/npm/x; touch ~/.cache/cordon/tools/npm/y
            mv ~/.cache/cordon ~/.cache/away; rm -rf ~/.cache/cordon; ln -s ~ ~/.cache/cordon; true""")
        assert ran.returncode == 0 and "filesystem" not in ran.stdout
        left = sorted(str(path.relative_to(place.home)) for path in (place.home / ".cache").rglob("*")
                      if "cordon/tmp" not in str(path))
        assert left == [".cache/cordon", *([".cache/cordon/tools", ".cache/cordon/tools/npm"] if there else [])]


# --- commands that want more than they needed


def test_names_are_no_syntax(place):
    """Neither a path nor the name of a program can be anything but a key and a comment."""
    ran = learn(place, "named", r"""
        evil=$(printf 'x"\n[permissions.evil]\nextends = ":danger-full-access"\n#')
        mkdir "$HOME/.cache/$evil" "$HOME/.cache/a\"b" "$HOME/.cache/a]b = \\" ~/.cache/'*' ~/.cache/'**'
        cp /bin/mkdir "./$evil"; PATH=. "$evil" ~/.cache/made
        cp /bin/mkdir "./# <<< cordon learn: named"; PATH=. "# <<< cordon learn: named" ~/.cache/marked; true""")
    assert ran.returncode == 0, ran.stderr
    text = (place.base / CONFIG).read_text()
    shown = place.json("config", "show", "--json")
    assert shown["profiles"] == ["named"], text
    keys = {value["key"].partition(".filesystem.")[2] for value in shown["values"]
            if ".filesystem." in value["key"]}
    assert keys == {'"~/.cache/made"', '"~/.cache/marked"', '"~/.cache/a\\"b"', '"~/.cache/a]b = \\\\"'} - (
        {'"~/.cache/a]b = \\\\"'}), text  # a backslash would be an escape of a glob
    assert learn(place, "named", "mkdir ~/.cache/other", "--replace").returncode == 0
    assert (place.base / CONFIG).read_text().count("cordon learn: named") == 2


def test_a_link_that_was_planted_opens_nothing(place):
    (place.home / ".ssh").mkdir()
    ran = learn(place, "linked", "ln -s ~/.ssh ~/.cache/x; touch ~/.cache/x/key; ln -s ../.ssh ~/.cache/y; true")
    assert ran.returncode == 0 and "a link is in its path" in ran.stderr, ran.stderr
    assert opened(place, "linked") == (set(), []) and not list((place.home / ".ssh").iterdir())


TURN = "rm -rf ~/.cache/x; mv ~/.cache/x ~/.cache/z; ln -sfn ~/.ssh ~/.cache/x; ln -s ~/.ssh ~/.cache/y; true"


@pytest.mark.parametrize("made", ["mkdir ~/.cache/x", "touch ~/.cache/x"])
def test_a_later_run_cannot_turn_what_an_earlier_one_learnt(place, made):
    (place.home / ".ssh").mkdir()
    assert learn(place, "first", made).returncode == 0
    file = place.base / CONFIG
    file.write_text(file.read_text().replace('"~/.cache/x" =', '"~/.cache/y" = "write"\n"~/.cache/x" ='))
    ran = learn(place, "second", TURN)
    assert ran.returncode == 0 and f"{place.home}/.cache/y was made a link" in ran.stderr
    assert not (place.home / ".cache/x").is_symlink() and not (place.home / ".cache/y").is_symlink()
    place.run("-p", "first", "--", "sh", "-c", "touch ~/.cache/x/key ~/.cache/y/key ~/.ssh/key")
    assert not list((place.home / ".ssh").iterdir())


@pytest.mark.parametrize("own, turn", [
    ("own", "ln -s ../.ssh ~/.cache/new"),
    ("workspace-write", "ln -s ../.ssh ~/.cache/new"),
    ("own", "ln -s ../.later ~/.cache/new"),
    ("own", "mkdir ~/.cache/new && ln -s ../../.ssh/bin ~/.cache/new/bin"),
    ("own", "ln -sfn ../.ssh ~/.cache/link"),
    ("own", "mv ~/.cache/deep ~/.cache/aside; ln -s ../.ssh ~/.cache/deep"),
    ("own", "rm ~/.cache/file; ln -s ~/.ssh/bin/file ~/.cache/file"),
], ids=["folder", "root", "later", "name", "link", "above", "file"])
def test_no_link_comes_on_the_way_to_what_a_profile_names(place, own, turn):
    for folder in (".ssh/bin", ".cache/deep/bin", ".cache/old/bin"):
        (place.home / folder).mkdir(parents=True)
    (place.home / ".cache/link").symlink_to("old")
    (place.home / ".cache/file").touch()
    (place.home / ".ssh/bin/file").touch()
    names = ("new/bin", "deep/bin", "link/bin", "file")
    roots = names[:1] if own == "workspace-write" else ()
    place.config(f"[sandbox_workspace_write]\nwritable_roots = {[f'~/.cache/{name}' for name in roots]}\n"
                 "[permissions.own]\nextends = ':workspace'\n[permissions.own.filesystem]\n" +
                 "".join(f"'~/.cache/{name}' = 'write'\n" for name in names if name not in roots))
    ran = place.cordon("learn", "--", "sh", "-c", f"{turn}; true")
    assert ran.returncode == 0, ran.stderr
    (place.home / ".later").symlink_to(".ssh")
    place.run("-p", own, "--", "sh", "-c",
              "".join(f"echo x >~/.cache/{name}; echo x >~/.cache/{name}/key; " for name in names))
    assert [path.name for path in (place.home / ".ssh").rglob("*")] == ["bin", "file"]
    assert not (place.home / ".ssh/bin/file").read_text()
    assert (place.home / ".cache/link").is_symlink() == ("~/.cache/link" not in turn)


@pytest.mark.parametrize("where_to", ["", "/.ssh", "/.config", "/.local/bin", "/.config/cordon", "/.."])
def test_a_variable_opens_no_more_than_a_cache(place, where_to):
    folder = f"{place.home}{where_to}"
    os.makedirs(folder, exist_ok=True)
    ran = place.cordon("learn", "--", "sh", "-c", 'touch "$XDG_CACHE_HOME/planted"; true',
                       env={"XDG_CACHE_HOME": folder})
    assert ran.returncode == 0 and "filesystem" not in ran.stdout
    assert not os.path.exists(f"{folder}/planted")


def test_a_deny_stays_one(place):
    (place.home / ".cache").mkdir()
    ran = learn(place, "denied", "touch ~/.cache/x; true", "--deny", "~")
    assert ran.returncode == 0 and os.listdir(place.home / ".cache") == ["cordon"]
    assert place.cordon("learn", "-p", "danger-full-access", "--", "touch", "ran").returncode == 125
    assert place.cordon("learn", "--sandbox", "disabled", "--", "touch", "ran").returncode == 125
    assert not (place.ws / "ran").exists()
