"""Programs that use libcordon as its hosts do: C files below hosts/, built against the header and
the archive."""
import functools
import json
import subprocess

from harness import BUILD, LAUNCHER, TOP

ENV = {"CORDON_LINUX_SANDBOX_EXE": str(LAUNCHER)}


@functools.cache
def sanitizers():
    """What the archive was built with and a program that links it needs, too."""
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", BUILD],
                                        capture_output=True, check=True).stdout)
    chosen = next(option["value"] for option in options if option["name"] == "b_sanitize")
    return [] if chosen == "none" else [f"-fsanitize={chosen}"]


def build(place, name):
    """The program of hosts/NAME.c."""
    program = place.base / name
    subprocess.run(["cc", "-std=gnu17", "-Wall", "-Werror", "-O1", f"-I{TOP}/include",
                    TOP / f"tests/e2e/hosts/{name}.c", BUILD / "src/libcordon/libcordon.a",
                    "-levent_core", "-ljansson", "-lvterm", *sanitizers(),
                    "-o", program], check=True)
    return program
