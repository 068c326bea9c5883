"""What people install (scripts/dist), as far as it can be tried without making it: the programs themselves, and a folder with
all of them that lies where a command may write, as node_modules and virtual environments do. `make test-packages` has the rest."""
import json
import shutil
import subprocess

import pytest

from harness import BUILD, read_until
from ws_client import Client, RpcError

TOLD = json.loads((BUILD / "meson-info/intro-install_plan.json").read_text())["targets"]
PROGRAMS = {path: one["destination"].replace("{bindir}", "bin").replace("{prefix}/", "") for path, one in TOLD.items()
            if one["destination"].startswith(("{bindir}/", "{prefix}/libexec/"))}
OPTIONS = {one["name"]: one["value"] for one in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}
SHARED = {"cordon-http", "cordon-scope"}  # what they are linked with is there shared alone


def unpacked(folder, without=()):
    """Cordon as in a tarball."""
    for program, path in PROGRAMS.items():
        if not path.endswith(tuple(without) or "/ "):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(program, folder / path)
    return folder / "bin/cordon"


@pytest.mark.no_userns
@pytest.mark.parametrize("program", sorted(PROGRAMS), ids=lambda program: program.rsplit("/", 1)[1])
def test_every_program_is_hardened(program):
    told = subprocess.run(["readelf", "-W", "-h", "-l", "-d", program], capture_output=True, text=True, check=True).stdout
    segments = {line.split()[0]: line for line in told.splitlines() if line.startswith("  GNU_")}
    assert " RWE" not in told and " RW " in segments["GNU_STACK"]
    assert "GNU_RELRO" in segments and "TEXTREL" not in told
    if OPTIONS["b_sanitize"] == "none":
        assert "DYN (Position-Independent Executable file)" in told
        assert ("INTERP" in told) == (program.rsplit("/", 1)[1] in SHARED)
        assert "INTERP" not in told or "BIND_NOW" in told


def test_programs_that_are_missing_cannot_be_made(place):
    """In a folder that a command may write to: somebody would start them later, outside."""
    cordon = unpacked(place.ws / "node_modules/cordon", without=["cordon-http", "cordon-log"])
    root = cordon.parent.parent
    names = ["libexec/cordon/cordon-http", "libexec/cordon/cordon-log", "share/cordon/presets/npm.toml", "libexec/cordon/x"]
    ran = place.cordon("run", "--", "sh", "-c", "for name in \"$@\"; do mkdir -p \"${name%/*}\"; cp /bin/true \"$name\"; done; "
                       "mv libexec old; mv bin old; mv ../cordon ../old; rm -rf ../cordon; cp /bin/true bin/cordon", "sh", *names,
                       program=cordon, cwd=root)
    assert ran.returncode != 0
    assert not [name for name in [*names, "old"] if (root / name).exists()]
    assert cordon.read_bytes() == next(BUILD.glob("src/cli/cordon")).read_bytes()
    # Nobody looks beside a program of an unpacked folder.
    ran = place.cordon("run", "--", "sh", "-c", 'printf "#!/bin/sh\\ntouch %s\\n" "$1" >bin/cordon-log; chmod 755 bin/cordon-log',
                       "sh", place.outside / "marker", program=cordon, cwd=root)
    assert ran.returncode == 0, ran.stderr
    assert "cordon-log is neither in" in place.cordon("log", program=cordon).stderr
    assert not (place.outside / "marker").exists()


def test_a_lone_program_guards_the_names_beside_it(place):
    """Nothing else is there: what would be found is kept from being made."""
    (place.ws / "programs").mkdir()
    for program in ("src/cli/cordon", "src/sandbox/launcher/cordon-linux-sandbox", "src/guard/cordon-guard"):
        shutil.copy(BUILD / program, place.ws / "programs")
    ran = place.cordon("run", "--", "sh", "-c", "touch programs/cordon-server; mkdir libexec; touch programs/mine; mkdir src",
                       program=place.ws / "programs/cordon")
    assert ran.returncode == 0
    made = {str(path.relative_to(place.ws)) for path in place.ws.rglob("*")}
    assert {"programs/mine", "src"} <= made and not {"programs/cordon-server", "libexec"} & made


def test_a_server_without_its_program_for_http_says_so(place):
    """A tarball does not have it."""
    cordon = unpacked(place.base / "tools", without=["cordon-http"])
    server = place.start("serve", "--listen", f"unix:{place.tmp}/s", program=cordon)
    client = Client.connect(read_until(server.stdout, b"\n").decode().strip())
    client.call("initialize", {"clientName": "test"})
    client.notify("initialized", {})
    told = client.call("environment/info")["capabilities"]
    assert told["http"] is False and told["httpHeaderEnvVars"] is False and told["fsWatchMissing"] is True
    with pytest.raises(RpcError, match="works with the .deb"):
        client.call("http/request", {"requestId": "1", "url": "http://127.0.0.1:1/", "method": "GET"})
