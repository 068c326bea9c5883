"""Programs that a command puts where a rule's program is sought: a rule lets `uname` out of the sandbox, and what
runs outside is never the planted one, whatever shell, profile or moment is chosen."""

import pytest

import identity
from stage import CORDON, Stage

RULES = 'prefix_rule(pattern=["uname"], decision="allow")\n'
PLANT = "mkdir -p bin; printf '#!/bin/sh\\n: > {out}/escaped\\n' > bin/uname; chmod 755 bin/uname"
# of one process, with which all of it ends
FLIP = """
import os
print(flush=True)
while True:
    os.rename("bin/uname", "bin/x")
    os.rename("bin/x", "bin/uname")
"""
WAYS = [["uname"], ["sh", "-c", "uname"], ["bash", "-lc", "uname"]]
PROFILES = [[], ["--profile", "read-only"]]
PYTHON = "/usr/bin/python3"

NAMES = [name for name in identity.here() if identity.has_namespaces(name)]  # else nothing can be planted

pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def need_cordon(lack):
    if not CORDON.exists():
        lack(f"{CORDON} is not built")


def attack(name, tools, inside, flips):
    """Whether the planted program could write where its sandbox does not let it."""
    def scene():
        with Stage(name, inside, tools) as stage:
            stage.file("home/.config/cordon/rules/default.rules", RULES)
            stage.file("home/.bash_profile", "PATH=./bin:$PATH\n")
            env = {"PATH": f"{stage.ws}/bin:/usr/bin:/bin"}
            assert stage.run("sh", "-c", PLANT.format(out=stage.out)).code == 0
            if flips:
                stage.start(PYTHON, "-c", FLIP).stdout.readline()
            for _ in range(3 if flips else 1):
                for profile in PROFILES:
                    for words in WAYS:
                        stage.run(*words, cordon=["-a", "never", *profile], env=env)
            return (stage.out / "escaped").exists()
    return identity.play(name, scene)


@pytest.mark.parametrize("flips", [False, True])
def test_a_planted_program_stays_in_its_sandbox(name, tools, flips):
    assert attack(name, tools, False, flips)
    assert not attack(name, tools, True, flips)


# Programs that the user has named by their paths, which lead through a place that commands can write.
TOOL = "#!/bin/sh\n: > {out}/escaped\n"
TURN = """
import os
print(flush=True)
while True:
    for place in "{out}/real", "{ws}/bin":
        os.symlink(place, "other")
        os.rename("other", "link")
"""


def named(name, tools, inside, path, flips):
    def scene():
        with Stage(name, inside, tools) as stage:
            places = {"ws": stage.ws, "out": stage.out}
            tool = path.format(**places)
            stage.file("home/.config/cordon/rules/default.rules",
                       f'prefix_rule(pattern=["{tool}"], decision="allow")\n')
            for script in "bin/uname", "dir/uname":
                stage.file(f"{stage.ws}/{script}", TOOL.format(**places)).chmod(0o755)
            stage.file(f"{stage.out}/real/uname", "#!/bin/sh\n").chmod(0o755)
            (stage.out / "tools").symlink_to(stage.ws / "link")
            (stage.ws / "link").symlink_to(stage.out / "real")
            if flips:
                stage.start(PYTHON, "-c", TURN.format(**places)).stdout.readline()
            for _ in range((10 if inside else 200) if flips else 1):
                if (stage.out / "escaped").exists():
                    break
                stage.run(tool, cordon=["-a", "never", "--readable", f"{stage.ws}/dir/uname"])
            return (stage.out / "escaped").exists()
    return identity.play(name, scene)


@pytest.mark.parametrize("path, flips", [("{out}/tools/uname", True), ("{ws}/dir/uname", False)])
def test_nothing_on_the_way_to_a_named_program_is_writable(name, tools, path, flips):
    assert named(name, tools, False, path, flips)
    assert not named(name, tools, True, path, flips)
