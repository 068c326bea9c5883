"""Small things that people hit in a day's work (tests/e2e/test_tools_*.py have whole programs)."""
import json
import os
import socket

from harness import CORDON
from tools import where

DEVICES = """
mkdir -p dev/dri dev/pts dev/shm
while read name major minor; do test -e dev/$name || mknod -m 666 dev/$name c $major $minor; done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
ptmx 5 2
dri/renderD128 1 5
dri/card0 1 5
nvidia0 1 5
END
mount --bind dev /dev
"""


def test_numbers_of_processes_differ_between_runs(place):
    """A pid file that an earlier command left names nobody who lives (T5)."""
    assert place.shell("echo $$ >old; exec sh -c 'kill -0 $(cat old)'").returncode == 0
    runs = [place.shell("kill -0 $(cat old) 2>/dev/null && echo alive; echo $$").stdout for _ in range(8)]
    assert len([out for out in runs if "alive" in out]) < 2  # one may be, by chance, of 4096 or more
    numbers = {int(out.split()[-1]) for out in runs}
    assert len(numbers) > 4 and all(300 <= number < 32768 for number in numbers)


@where("ss")
def test_ss_lists_the_sockets_of_the_command_alone(place):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        script = ("import socket, subprocess\n"
                  "with socket.create_server(('127.0.0.1', 0)) as own:\n"
                  "    print(own.getsockname()[1])\n"
                  "    print(subprocess.check_output(['ss', '-Hltn'], text=True))\n")
        ran = place.run("--", "/usr/bin/python3", "-c", script)
    assert ran.returncode == 0 and ran.stderr == ""
    own, *lines = ran.stdout.split("\n")
    (line,) = filter(None, lines)
    assert f":{own} " in line and f":{port} " not in line


if os.getuid() == 0:  # who alone makes device nodes

    def test_gpu_opens_the_nodes_that_are_there(place):
        """Of a /dev with a graphics card whose every byte is 0."""
        look = "ls -1 /dev/dri /dev/nvidia0; head -c 4 /dev/dri/renderD128 | od -An -c; : >/dev/nvidia0"

        def on_the_machine(*options):
            script = f"{DEVICES} exec {CORDON} run --json {' '.join(options)} -- sh -c '{look}'"
            ran = place.start("-m", "sh", "-ec", script, program="unshare", cwd=place.outside)
            result = json.loads(ran.communicate()[0])
            return result["stdout"], result["warnings"], result["exit_code"]
        place.config('[permissions.card]\nextends = ":workspace"\ngpu = true\n')
        seen = "/dev/nvidia0\n\n/dev/dri:\nrenderD128\n  \\0  \\0  \\0  \\0\n"
        told = ["gpu: /dev/dri/renderD128, /dev/nvidia0"]
        assert on_the_machine("--gpu") == (seen, told, 0)
        assert on_the_machine("--profile", "card") == (seen, told, 0)
        assert on_the_machine("--writable", ":gpu") == (seen, told, 0)
        assert on_the_machine()[0] == "" and on_the_machine()[1] == []


def test_gpu_says_what_there_is(place):
    ran = place.run("--gpu", "--", "true")
    assert ran.returncode == 0
    assert ran.stderr.startswith("cordon: gpu: ")  # "this machine has none", mostly


@where("npm")
def test_npm_says_at_once_that_there_is_no_network(place):
    """It asked for a minute before (E8); what would help is said once."""
    ran = place.run("--timeout", "30s", "--", "npm", "install", "left-pad")
    assert ran.returncode not in (0, 124), ran
    told = [line for line in ran.stderr.splitlines() if line.startswith("cordon: ")]
    assert [line for line in told if "--network enabled" in line] == told[-1:]
