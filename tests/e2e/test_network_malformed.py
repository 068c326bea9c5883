"""Ten thousand malformed messages of each kind to the proxy of a command that runs: it goes on, and grows no more."""
import pathlib

from harness import BUILD, finish
from world import World

PROBE = pathlib.Path(__file__).parent / "probes/network_malformed.py"
PROXY = BUILD / "src/proxy/cordon-proxy"
PYTHON = "/usr/bin/python3"


def proxies_of(process):
    """The proxies that are its children."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
        except OSError:
            continue
        if "Name:\tcordon-proxy" in status and f"PPid:\t{process.pid}\n" in status:
            found.append(int(folder.name))
    return found


def number(pid, word):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(word):
            return int(line.split()[1])
    raise AssertionError(word)


def test_ten_thousand_of_each(place):
    program = place.ws / "malformed.py"
    program.write_bytes(PROBE.read_bytes())
    with World(place) as world:
        process = world.start("run", "--allow-host", "good.test", "--", PYTHON, program, 10000)
        sizes = []
        for _ in range(2):
            line = process.stdout.readline()
            assert line == b"ready 200\n", (line, process.stderr.read())
            proxy, = proxies_of(process)
            sizes.append((proxy, number(proxy, "VmRSS:"), number(proxy, "FDSize:")))
            process.stdin.write(b"\n")
            process.stdin.flush()
        finish(process, 0)
    (first, before, _), (last, after, fds) = sizes
    assert first == last and fds < 1024, sizes
    assert after - before < 1024 or b"__asan_init" in PROXY.read_bytes(), sizes
