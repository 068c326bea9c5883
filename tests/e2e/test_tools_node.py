"""node and npm inside, without a network."""
import json

from tools import Sides, need, passes


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


def test_node_files_as_outside(place):
    need("node")
    (place.ws / "files.mjs").write_text("""
        import fs from "node:fs";
        import {setTimeout as wait} from "node:timers/promises";
        await Promise.all([...Array(200).keys()].map(async i => {
          await fs.promises.mkdir(`out/${i % 7}/a/b`, {recursive: true});
          await fs.promises.writeFile(`out/${i % 7}/a/b/${i}`, "x".repeat(i), {mode: 0o640});
          await fs.promises.rename(`out/${i % 7}/a/b/${i}`, `out/${i % 7}/${i}`);
        }));
        fs.cpSync("out", "copy", {recursive: true, preserveTimestamps: true});
        fs.symlinkSync("copy", "link"); fs.linkSync("copy/1/1", "hard");
        fs.utimesSync("hard", 1, 1); fs.chmodSync("hard", 0o604); fs.truncateSync("copy/6/13", 3);
        for (const call of [() => fs.mkdirSync("out"), () => fs.rmdirSync("out"),
                            () => fs.writeFileSync("missing/file", ""), () => fs.unlinkSync("out"),
                            () => fs.openSync("hard", "wx"), () => fs.renameSync("missing", "new")]) {
          try { call(); } catch (error) { console.log(error.code, error.syscall); }
        }
        const seen = [];
        const watcher = fs.watch(".", (kind, name) => { seen.push(name); });
        await wait(0);
        fs.writeFileSync("watched", "x");
        while (!seen.includes("watched")) await wait(1);
        watcher.close();
        fs.rmSync("out/3", {recursive: true});
        const folder = fs.mkdtempSync("tmp-"); fs.rmdirSync(folder);
        console.log(fs.readdirSync(".", {recursive: true}).sort().join(" "));
        """)
    Sides(place).is_alike("node files.mjs")


def test_a_socket_between_node_processes(place):
    """What tsx, nx and others do: a server on a Unix socket in the folder for temporary files."""
    need("node")
    (place.ws / "both.js").write_text("""
        const net = require("net"), path = require("path"), os = require("os"), cp = require("child_process");
        const where = path.join(os.tmpdir(), "server.sock");
        if (process.argv[2]) {
          net.connect(where, function () { this.end("from " + process.argv[2]); });
        } else {
          let left = 5;
          const server = net.createServer(end => end.on("data", data => console.log(String(data)))
            .on("end", () => { if (!--left) server.close(); else child(); })).listen(where, child);
          function child() { cp.spawn(process.execPath, [__filename, "child " + left], {stdio: "inherit"}); }
        }
        """)
    Sides(place).is_alike("node both.js; ls $TMPDIR")
