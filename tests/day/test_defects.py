"""What a newcomer tripped over and no other test has: what a command in a sandbox means for those beside it."""
import socket

import pytest

import day
from harness import finish, read_until
from tools import Sides, passes


@pytest.fixture
def place():
    place = day.Place()
    with place.cleanup:
        place.watch_all()
        yield place
        assert place.of_cordon() == []


def test_the_host_is_undisturbed_while_a_command_runs(place):
    """T1, T2: git and what asks it, in a subfolder of a repository and in no repository, beside a command."""
    outside = Sides(place)
    git = "git -c user.name=a -c user.email=a@example.org"
    passes(outside.bare(f"git init -q r && cd r && mkdir s && echo 1 > s/a && git add . && {git} commit -qm a; mkdir $WS/none"))
    asked = "cd {0} && git diff HEAD 2>&1; git rev-parse --show-toplevel 2>&1; ls -A; cd $TMPDIR && git rev-parse 2>&1; ls -A . ."
    for folder in ("r/s", "none"):
        before = outside.bare(asked.format(folder)).stdout
        process = place.start("run", "--", "sh", "-c", "echo began; read line", cwd=place.ws / folder)
        read_until(process.stdout, b"began")
        assert outside.bare(asked.format(folder)).stdout == before
        process.stdin.write(b"\n")
        process.stdin.flush()
        finish(process, 0)


def test_a_folder_looks_as_outside(place):
    """T3, T4: no name is there inside that is not there outside; so none is archived, copied or obeyed."""
    (place.ws / ".gitignore").write_text("kept\n")
    (place.ws / "sub").mkdir()
    script = "find . $TMPDIR -name '.?*' -o -type d | sort; tar -c . | tar -t | sort; cp -r . $TMPDIR/copy; ls -AR $TMPDIR; cd sub; ls -A"
    Sides(place).is_alike(script)


def test_localhost_is_the_commands_own_and_is_said_to_be(place):
    """E7: a server on the host's is not reached, from outside none in the command's; `explain` says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = place.run("--", "/usr/bin/python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert ran.returncode == 1 and "Connection refused" in ran.stderr
        open_network = place.run("--network", "enabled", "--", "/usr/bin/python3", "-c",
                                 f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert open_network.returncode == 0, open_network
    assert "a localhost of its own" in place.cordon("explain").stdout
    process = place.start("run", "--", "/usr/bin/python3", "-uc", "import socket\n"
                          "with socket.create_server(('127.0.0.1', 0)) as own: print(own.getsockname()[1]); input()")
    port = int(read_until(process.stdout, b"\n"))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    process.stdin.write(b"\n")
    process.stdin.flush()
    finish(process, 0)
