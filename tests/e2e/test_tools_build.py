"""Compilers and what calls them inside."""
import os

from tools import need, passes

PROGRAM = """
#include <stdio.h>
#include "greeting.h"
int main(int argc, char **argv) { printf("%s %d\\n", GREETING, argc); return 0; }
"""

MAKEFILE = """
CFLAGS = -O2 -Wall -Werror
all: hello libgreet.a
hello: main.o greet.o
\t$(CC) -o $@ $^
main.o: main.c greeting.h
libgreet.a: greet.o
\t$(AR) rcs $@ $^
check: hello
\ttest "$$(./hello a b)" = "hello 3"
clean:
\trm -f *.o hello libgreet.a
"""


def sources(place):
    (place.ws / "main.c").write_text(PROGRAM)
    (place.ws / "greet.c").write_text("int greet(void); int greet(void) { return 1; }\n")
    (place.ws / "greeting.h").write_text('#define GREETING "hello"\n')
    (place.ws / "Makefile").write_text(MAKEFILE)


def test_gcc(place):
    need("gcc")
    sources(place)
    assert passes(place.shell("gcc -pipe -o hello main.c && ./hello x")) == "hello 2\n"
    assert (place.ws / "hello").stat().st_mode & 0o100


def test_make_in_parallel(place):
    need("make", "gcc", "ar")
    sources(place)
    out = passes(place.shell("make -j4 all check && ar t libgreet.a && make -s clean && ls"))
    assert "greet.o" in out
    assert sorted(os.listdir(place.ws)) == ["Makefile", "greet.c", "greeting.h", "main.c"]


def test_errors_are_the_compilers(place):
    need("make", "gcc")
    sources(place)
    (place.ws / "main.c").write_text("int main(void) { return nothing; }\n")
    ran = place.run("--", "make", "hello")
    assert ran.returncode == 2
    assert "main.c:1" in ran.stderr and "nothing" in ran.stderr


def test_output_outside_is_refused(place):
    need("gcc")
    sources(place)
    ran = place.run("--", "gcc", "-o", place.outside / "hello", "main.c")
    assert ran.returncode == 1
    assert "Read-only file system" in ran.stderr
    assert not (place.outside / "hello").exists()


def test_a_debugged_and_sanitized_program(place):
    """ASan maps terabytes and looks at its own /proc files; LeakSanitizer traces its parent."""
    need("gcc")
    (place.ws / "leak.c").write_text(
        "#include <stdlib.h>\nvoid *volatile p;\n"
        "int main(void) { p = malloc(77); p = 0; return 0; }\n")
    ran = place.shell("gcc -g -fsanitize=address leak.c -o leak && ./leak")
    assert ran.returncode == 1, ran
    assert "LeakSanitizer: detected memory leaks" in ran.stderr
    assert "77 byte(s) leaked in 1 allocation(s)" in ran.stderr
