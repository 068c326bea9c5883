"""node and npm inside, without a network."""
import json

from tools import need, passes


def test_node(place):
    need("node")
    assert passes(place.run("--", "node", "-e", """
        const fs = require("fs"), cp = require("child_process"), os = require("os");
        fs.writeFileSync("out.txt", "written");
        console.log(fs.readFileSync("out.txt", "utf8"));
        console.log(cp.execFileSync("sh", ["-c", "echo child"]).toString().trim());
        console.log(os.tmpdir() === process.env.TMPDIR);
        """)) == "written\nchild\ntrue\n"


def test_node_workers_and_server(place):
    need("node")
    assert passes(place.run("--", "node", "-e", """
        const {Worker} = require("worker_threads"), http = require("http");
        new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", {eval: true})
          .on("message", value => {
            console.log(value);
            const server = http.createServer((q, r) => r.end("hello")).listen(0, "127.0.0.1", () =>
              http.get({port: server.address().port, host: "127.0.0.1"}, response => {
                response.on("data", data => console.log(String(data)));
                response.on("end", () => server.close());
              }));
          });
        """)) == "42\nhello\n"


def test_npm_install_from_a_folder(place):
    need("node", "npm")
    library = place.ws / "library"
    library.mkdir()
    (library / "package.json").write_text(json.dumps(
        {"name": "library", "version": "1.2.3", "main": "index.js",
         "scripts": {"postinstall": "echo ran > postinstall.log"}}))
    (library / "index.js").write_text("exports.answer = 42;\n")
    app = place.ws / "app"
    app.mkdir()
    (app / "package.json").write_text(json.dumps({
        "name": "app", "version": "1.0.0", "dependencies": {"library": "file:../library"},
        "scripts": {"test": "node -p 'require(\"library\").answer'"}}))
    env = {"npm_config_cache": str(place.tmp / "npm"), "npm_config_update_notifier": "false"}
    passes(place.shell("npm install --offline --no-audit --no-fund --install-links", cwd=app, env=env))
    assert json.loads((app / "node_modules/library/package.json").read_text())["version"] == "1.2.3"
    assert (app / "package-lock.json").exists()
    assert "42" in passes(place.run("--", "npm", "test", "--silent", cwd=app, env=env))


def test_npm_without_its_cache_says_why(place):
    """$HOME is not writable: npm has to say so, and must not hang."""
    need("node", "npm")
    (place.ws / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    ran = place.run("--timeout", "50s", "--", "npm", "install", "left-pad",
                    env={"npm_config_fetch_retries": "0"})
    assert ran.returncode not in (0, 124)
    assert "left-pad" in ran.stderr or "EROFS" in ran.stderr or "EAI_AGAIN" in ran.stderr
