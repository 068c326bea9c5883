"""Compilers and what calls them inside."""
import os
import subprocess

from tools import Sides, need, passes, where

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


PARALLEL = """
OBJECTS := $(patsubst %.c,out/%.o,$(wildcard *.c))
CFLAGS = -O1 -g -Wall -MMD -MP
program: $(OBJECTS) out/lib.a
\t$(CC) -o $@ $(OBJECTS) out/lib.a
out/%.o: %.c | out
\t$(CC) $(CFLAGS) -c -o $@ $<
out/lib.a: $(OBJECTS)
\trm -f $@ && $(AR) rcs $@ $^
out:
\tmkdir -p $@
check: program
\t./program | cmp - wanted
clean:
\trm -rf out program
-include $(OBJECTS:.o=.d)
"""


def test_a_hundred_files_in_parallel(place):
    """make -j of a generated project: built, checked, built again after a change, cleaned."""
    need("make", "gcc", "ar")
    for i in range(100):
        (place.ws / f"f{i}.h").write_text(f"#define VALUE_{i} {i}\nint f{i}(void);\n")
        (place.ws / f"f{i}.c").write_text(f'#include "f{i}.h"\nint f{i}(void) {{ return VALUE_{i}; }}\n')
    calls = "".join(f" + f{i}()" for i in range(100))
    includes = "".join(f'#include "f{i}.h"\n' for i in range(100))
    (place.ws / "main.c").write_text(
        f'#include <stdio.h>\n{includes}int main(void) {{ printf("%d\\n", 0{calls}); return 0; }}\n')
    (place.ws / "wanted").write_text("4950\n")
    (place.ws / "Makefile").write_text(PARALLEL)
    Sides(place).is_alike("make -s -j4 check && touch f7.h && make -s -j4 check && "
                          "ls out | wc -l && ar t out/lib.a | sort && make -sq; echo $?")
    Sides(place).is_alike("make -s -j3 && make -s clean && ls | wc -l && make -s -j2 f1.o out/f1.o && ls out")


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(hello C)
add_library(greet STATIC greet.c)
add_executable(hello main.c)
target_link_libraries(hello greet)
configure_file(greeting.h copied.h COPYONLY)
add_custom_command(OUTPUT made.txt COMMAND hello x > made.txt DEPENDS hello)
add_custom_target(made ALL DEPENDS made.txt)
enable_testing()
add_test(NAME runs COMMAND hello a)
install(TARGETS hello DESTINATION bin)
"""


@where("cmake", "gcc", "make")
def test_cmake(place):
    sources(place)
    (place.ws / "CMakeLists.txt").write_text(CMAKE)
    sides = Sides(place, untold=["ws/build/CMakeFiles/*", "ws/build/Testing/*", "ws/build/*.cmake"],
                  unlike=["ws/build/CMakeCache.txt", "ws/build/Makefile"],
                  loose=[(r"[0-9.]+ sec|\(\d+\.\ds\)", "TIME"), (r"\[ *\d+%\]", "[]")])
    sides.is_alike("cmake -S . -B build && cmake --build build && (cd build && ctest) && "
                   "cmake --install build --prefix $WS/installed && installed/bin/hello && cat build/made.txt")


def test_meson_and_ninja(place):
    need("meson", "ninja", "gcc")
    sources(place)
    (place.ws / "meson.build").write_text(
        "project('hello', 'c')\nlib = static_library('greet', 'greet.c')\n"
        "test('runs', executable('hello', 'main.c', link_with: lib))\n")
    sides = Sides(place, env={"CCACHE_DISABLE": "1"}, untold=["ws/b/meson-*", "ws/b/.ninja_*"], unlike=["ws/b/*.json"],
                  loose=[(r"\d+\.\d+s", "TIME"), (r"\[\d+/\d+\] .*\n", "")])
    sides.is_alike("meson setup b && ninja -j1 -C b && meson test -C b && b/hello")


@where("go")
def test_go(place):
    files = {"go.mod": "module example.org/a\n\ngo 1.19\n",
             "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"os"\n\t"sync"\n\n\t"example.org/a/sum"\n)\n\n'
                        "func main() {\n\tvar wait sync.WaitGroup\n\tfor i := 0; i < 50; i++ {\n"
                        "\t\twait.Add(1)\n\t\tgo func(i int) {\n\t\t\tdefer wait.Done()\n"
                        '\t\t\tos.WriteFile(fmt.Sprintf("out%d", i), []byte("x"), 0o644)\n\t\t}(i)\n\t}\n'
                        "\twait.Wait()\n\tfmt.Println(sum.Of(1, 2, 3))\n}\n",
             "sum/sum.go": "package sum\n\nfunc Of(all ...int) (sum int) {\n\tfor _, one := range all {\n"
                           "\t\tsum += one\n\t}\n\treturn\n}\n",
             "sum/sum_test.go": 'package sum\n\nimport "testing"\n\nfunc TestOf(t *testing.T) {\n'
                                "\tif Of(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n"}
    (place.ws / "sum").mkdir()
    for name, text in files.items():
        (place.ws / name).write_text(text)
    env = {"GOCACHE": f"{place.tmp}/cache", "GOPATH": f"{place.tmp}/go", "GOFLAGS": "-mod=mod",
           "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"}
    sides = Sides(place, env=env, untold=["tmp/*", "home/*"], loose=[(r"\d+\.\d+s", "TIME")])
    sides.is_alike("go build -o program . && ./program && go test ./... && go vet ./... && ls | wc -l && "
                   "go run . && go clean")


@where("cargo", "rustc")
def test_cargo(place):
    """rustup's stand-ins look for their toolchain in $HOME: the toolchain's own programs are run."""
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
    for folder in ("src", "lib/src", "tests"):
        (place.ws / folder).mkdir(parents=True)
    (place.ws / "Cargo.toml").write_text(
        '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
        'lib = { path = "lib" }\n')
    (place.ws / "lib/Cargo.toml").write_text(
        '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n')
    (place.ws / "lib/src/lib.rs").write_text("pub fn answer() -> u32 { 42 }\n")
    (place.ws / "src/main.rs").write_text('fn main() { println!("{}", lib::answer()); }\n')
    (place.ws / "build.rs").write_text(
        'fn main() { std::fs::write(std::env::var("OUT_DIR").unwrap() + "/made", "x").unwrap(); }\n')
    (place.ws / "tests/it.rs").write_text("#[test]\nfn it() { assert_eq!(lib::answer(), 42); }\n")
    env = {"PATH": f"{root.stdout.strip()}/bin:{place.env['PATH']}", "CARGO_HOME": f"{place.tmp}/cargo",
           "CARGO_TERM_COLOR": "never"}
    sides = Sides(place, env=env, untold=["ws/target/*", "tmp/*"],
                  loose=[(r"\d+\.\d+s", "TIME"), (r"-[0-9a-f]{16}", "-HASH"),
                         (r"(?m)^ +Compiling .*\n", "")])
    sides.is_alike("cargo build --offline -j2 && target/debug/app && cargo test --offline && "
                   "cargo run --offline --release -q && cargo clean")
