"""Small things that people hit in a day's work (tests/e2e/test_tools_*.py have whole programs)."""
import socket

from tools import where


def test_numbers_of_processes_differ_between_runs(place):
    """A pid file that an earlier command left names nobody who lives (T5)."""
    assert place.shell("echo $$ >old; exec sh -c 'kill -0 $(cat old)'").returncode == 0
    runs = [place.shell("kill -0 $(cat old) 2>/dev/null && echo alive; echo $$").stdout for _ in range(8)]
    assert not [out for out in runs if "alive" in out]  # once in a thousand thousand times by chance
    numbers = {int(out) for out in runs}
    assert len(numbers) > 4 and all(1000 < number < 32768 for number in numbers)


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
