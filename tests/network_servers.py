"""Servers that others wrote, behind the names of a World: each is started where its program is on the machine, and is
ready when it says so or takes a connection."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

NOBODY = 65534


def find_program(name):
    """Debian keeps the servers of PostgreSQL where no PATH leads."""
    return shutil.which(name) or next(map(str, pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)


H2 = """
const fs = require("fs"), http2 = require("http2"), at = process.argv[1];
http2.createSecureServer({key: fs.readFileSync(at + "/key.pem"), cert: fs.readFileSync(at + "/cert.pem")})
    .on("stream", (stream, head) => { stream.respond({":status": 200}); stream.end(`h2 ${head[":path"]}\\n`); })
    .listen(9443, "::", () => console.log("ready"));
"""


class Servers:
    def __init__(self, world):
        self.world, self.place = world, world.place
        self.env = dict(world.place.env)

    def spawn(self, *argv, ready=None, become=(), **kwargs):
        """A server in the world, until the place is left. `ready` are bytes that it prints when it is."""
        process = subprocess.Popen([*self.world.enter(), *become, *map(str, argv)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env, **kwargs)
        self.place.cleanup.callback(self.place.stop, process)
        seen = b""
        while ready and ready not in seen:
            more = os.read(process.stdout.fileno(), 65536)
            assert more, (argv, seen)
            seen += more
        return process

    def repository(self):
        """What git shows, by its own program behind the web server (/git/), and by ssh."""
        work, bare = self.world.base / "work", self.world.base / "git/repo.git"
        bare.parent.mkdir()
        env = {**self.env, "HOME": str(self.world.base), "GIT_CONFIG_NOSYSTEM": "1"}
        git = lambda *words: subprocess.run(["git", *words], check=True, capture_output=True, env=env)  # noqa: E731
        git("init", "-q", "-b", "main", str(work))
        (work / "file").write_text("of the repository\n")
        git("-C", str(work), "add", "file")
        git("-C", str(work), "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one")
        git("clone", "-q", "--bare", str(work), str(bare))
        return bare

    def package(self):
        """What npm installs (/npm/thing)."""
        folder = self.world.base / "npm"
        (folder / "package").mkdir(parents=True)
        (folder / "package/package.json").write_text('{"name": "thing", "version": "1.2.3"}')
        subprocess.run(["tar", "-czf", "thing.tgz", "package"], cwd=folder, check=True)

    def http2(self):
        return self.spawn("node", "-e", H2, self.world.base, ready=b"ready")

    def redis(self):
        return self.spawn("redis-server", "--port", 6379, "--bind", "0.0.0.0", "::", "--save", "", "--protected-mode", "no",
                          "--dir", self.world.base, ready=b"Ready to accept connections")

    def ssh(self):
        """The account is root's, whose home is another one for the server; returns the client's key."""
        key, host = self.world.base / "id", self.world.base / "host_key"
        subprocess.run(["dropbearkey", "-t", "ed25519", "-f", host], check=True, capture_output=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        home = self.world.base / "account/.ssh"
        home.mkdir(parents=True, mode=0o700)
        shutil.copy(key.with_suffix(".pub"), home / "authorized_keys")
        mount = f"mount --bind {home.parent} {pwd.getpwuid(0).pw_dir} && exec "
        self.spawn("unshare", "--mount", "sh", "-c", mount + f"dropbear -F -E -s -r {host} -p 2222 -P ''", ready=b"Not backgrounding")
        return key

    def postgresql(self):
        """Nobody's, since it will not be root's."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.place.cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        become = []
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        subprocess.run([*become, find_program("initdb"), "-A", "trust", "-N", "-U", "test", "-D", folder / "data"], check=True,
                       capture_output=True, cwd="/", env=self.env)
        with contextlib.suppress(OSError):
            (folder / "data/postgresql.conf").open("a").write("fsync = off\n")
        with open(folder / "data/pg_hba.conf", "a", encoding="ascii") as file:
            file.write("host all all all trust\n")
        chdir = ["env", f"--chdir={folder}"]
        return self.spawn(find_program("postgres"), "-D", folder / "data", "-p", 5433, "-h", "*", "-k", folder, become=[*become, *chdir],
                          ready=b"ready to accept connections")
