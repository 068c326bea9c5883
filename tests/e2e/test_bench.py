"""The benchmark runs through and measures what it says; what it measures is nobody's failure."""
import json
import os
import subprocess

import pytest

from harness import BUILD
from tools import passes


@pytest.mark.timeout(600)  # twenty seconds of work, on a busy machine many times that
def test_every_figure_is_there_and_nothing_in_the_home(tmp_path):
    ran = subprocess.run([BUILD / "bench/bench", "--quick", "--json"], text=True, check=False,
                         capture_output=True, timeout=550, env={**os.environ, "HOME": str(tmp_path)})
    assert not list(tmp_path.iterdir())
    report = json.loads(passes(ran))
    values = {figure["name"].strip(): figure["value"] for figure in report["figures"]}
    for name in ("posix_spawn /bin/true", "cordon run /bin/true", "library, recycled, /bin/true",
                 "launches, 8 in flight, /bin/true", "launcher on disk",
                 "grep -r over 20,000 files, outside", "a session of it, start to end",
                 "a byte there and back, bare terminal", "200 MB by a terminal, bare",
                 "memory for it, above idle", "terminate all",
                 "server, start to exited of /bin/true, sandboxed",
                 "server, 200 MB of output, by process/read",
                 "start, 200 who come and go", "its p99 against alone",
                 "patch, 500 hunks on 100 files",
                 "tar -x of 20,000 files, outside", "make -j2 of 100 C files, outside",
                 "open for writing, close, outside",
                 "64 sandboxes at once, time / calls", "server, start to exited, workspace-write"):
        assert values[name] > 0
    assert "inside / outside, without the launch" in values # of so few runs it may come out below 0
    assert report["processors"] > 0


def test_wrong_options():
    ran = subprocess.run([BUILD / "bench/bench", "--fast"], text=True, check=False,
                         capture_output=True, timeout=60)
    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: bench")
