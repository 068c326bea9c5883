"""Debuggers inside: they trace the command's own processes and nothing else."""
import os

from tools import need, passes

PROGRAM = """
#include <stdio.h>
static int twice(int value) { return 2 * value; }
int main(void) { int result = twice(21); printf("%d\\n", result); return 0; }
"""


def compiled(place):
    need("gcc")
    (place.ws / "program.c").write_text(PROGRAM)
    passes(place.run("--", "gcc", "-g", "-O0", "-o", "program", "program.c"))


def test_strace(place):
    need("strace")
    ran = place.shell("strace -f -e trace=openat,execve -o trace sh -c 'cat /etc/hostname; true' "
                      ">/dev/null && grep -c 'execve.*cat' trace && grep -c 'etc/hostname' trace")
    assert [int(word) >= 1 for word in passes(ran).split()] == [True, True]


def test_strace_of_a_running_child(place):
    need("strace")
    ran = place.shell("sleep 1000 & pid=$!; "
                      "mkfifo told; strace -p $pid -o trace 2>told & tracer=$!; "
                      "exec 3<>told; read attached <&3; "
                      "kill $pid; wait $tracer; grep -o 'killed by SIGTERM' trace")
    assert passes(ran) == "killed by SIGTERM\n"


def test_gdb(place):
    need("gdb")
    compiled(place)
    ran = place.run("--", "gdb", "-nx", "-batch", "-ex", "break twice", "-ex", "run", "-ex",
                    "backtrace", "-ex", "print value", "-ex", "finish", "-ex", "continue", "program")
    out = passes(ran)
    assert "Breakpoint 1, twice (value=21)" in out
    assert "#1 " in out and "in main ()" in out
    assert "$1 = 21" in out
    assert "Value returned is $2 = 42" in out
    assert "exited normally" in out


def test_gdb_attaches_to_its_own(place):
    need("gdb")
    ran = place.shell("sleep 1000 & pid=$!; gdb -nx -batch -p $pid -ex 'print 1 + 1' -ex detach; kill $pid")
    assert "$1 = 2" in passes(ran)


def test_a_process_outside_cannot_be_traced(place):
    """Its number means nothing inside."""
    need("strace")
    ran = place.run("--", "strace", "-p", os.getpid(), "-o", "trace")
    assert ran.returncode == 1
    assert "attach" in ran.stderr


def test_the_init_cannot_be_traced(place):
    need("strace")
    ran = place.run("--", "strace", "-p", "1", "-o", "trace")
    assert ran.returncode == 1
    assert "Operation not permitted" in ran.stderr
