"""`cordon learn` on everyday tools: a profile under which the same passes, and which opens caches and nothing
else. What takes no second is in test_learn.py."""
import contextlib
import hashlib
import http.server
import json
import subprocess
import threading
import zipfile

from learning import check
from tools import where


@contextlib.contextmanager
def registry(place, files):
    """A server of these files on this machine's loopback: what npm and pip take for theirs."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = files(self.path, f"http://127.0.0.1:{server.server_port}")
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json" if (body or b"")[:1] == b"{" else "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@where("npm")
def test_npm_install(place):
    package = place.outside / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "left", "version": "1.0.0"}')
    subprocess.run(["tar", "-C", place.outside, "-czf", place.outside / "left-1.0.0.tgz", "package"], check=True)
    tarball = (place.outside / "left-1.0.0.tgz").read_bytes()

    def files(path, url):
        if path.endswith(".tgz"):
            return tarball
        sha = hashlib.sha1(tarball).hexdigest()
        return json.dumps({"name": "left", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "left", "version": "1.0.0",
            "dist": {"tarball": f"{url}/left/-/left-1.0.0.tgz", "shasum": sha}}}}).encode()

    (place.ws / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    with registry(place, files) as url:
        script = f"npm install --no-audit --no-fund --registry {url} left && test -d node_modules/left"
        paths = check(place, script, "--network", "enabled", others=["network"], again="rm -r node_modules;")
    assert ".npm/_cacache" in paths


@where("pip3")
def test_pip_install(place):
    wheel = place.outside / "left-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("left.py", "answer = 42\n")
        archive.writestr("left-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: left\nVersion: 1.0\n")
        archive.writestr("left-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("left-1.0.dist-info/RECORD", "")

    def files(path, url):
        return wheel.read_bytes() if path.endswith(".whl") else b'<a href="/left-1.0-py3-none-any.whl">x</a>'

    with registry(place, files) as url:
        script = (f"/usr/bin/pip3 install --disable-pip-version-check --index-url {url}/simple --target lib left"
                  " && test -f lib/left.py")
        paths = check(place, script, "--network", "enabled", others=["network"], again="rm -r lib;")
    assert paths <= {".cache/pip"}


@where("cargo")
def test_cargo_build(place):
    (place.ws / "src").mkdir()
    (place.ws / "Cargo.toml").write_text('[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
    (place.ws / "src/main.rs").write_text("fn main() {}\n")
    check(place, "/usr/bin/cargo build --offline && test -x target/debug/x", again="rm -r target;")


@where("go")
def test_go_build(place):
    (place.ws / "go.mod").write_text("module x\n\ngo 1.19\n")
    (place.ws / "main.go").write_text("package main\n\nfunc main() {}\n")
    paths = check(place, "/usr/bin/go build -o x . && ./x", again="rm x;")
    assert ".cache/go-build" in paths


@where("ccache", "gcc", "make")
def test_make_with_ccache(place):
    (place.ws / "a.c").write_text("int main(void) { return 0; }\n")
    (place.ws / "Makefile").write_text("a: a.c\n\tccache gcc -c a.c -o a.o && gcc a.o -o a\n")
    assert ".cache/ccache" in check(place, "make", again="rm a;")


@where("javac", "java")
def test_javac(place):
    (place.ws / "A.java").write_text("class A { public static void main(String[] a) { System.out.print(42); } }\n")
    assert check(place, "javac A.java && java -Xshare:auto A", again="rm A.class;") == set()


@where("pytest")
def test_pytest(place):
    (place.ws / "test_x.py").write_text("def test(tmp_path):\n    (tmp_path / 'x').write_text('x')\n")
    assert check(place, "/usr/bin/python3 -m pytest -q test_x.py") == set()
