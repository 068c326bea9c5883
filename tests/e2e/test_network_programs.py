"""Programs that know nothing of Cordon, in a network that is proxied, with servers that others wrote behind the names of a
World (tests/world.py): what is allowed works by its name, and the same command to another name, or to an address by number,
is refused and told. Once as they are, and once told of a proxy by the variables that their user has set.

All that are on this machine run in two commands, side by side."""
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import warnings

from harness import BUILD, TOP
from network_servers import Servers, find_program
from tools import has_account, where
from world import World

SSH = "ssh -p 2222 -i $ID -l $ACCOUNT -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -F none"
PYTHON = "/usr/bin/python3"

# name: (programs, what it prints when it has got through, the command). It is told of $HOST, $T which is its name and
# the host's, $CA.
PROGRAMS = {
    "curl": ("curl", '"path": "/{t}"', "curl -sS http://$HOST/$T"),
    "curl-tls": ("curl", '"sni": "', "curl -sS --cacert $CA https://$HOST/$T"),
    "curl-http2": ("curl node", "h2 /{t}", "curl -sS --http2 --cacert $CA https://$HOST:9443/$T"),
    "curl-post": ("curl", '"body": "some"', "curl -sS -H 'Transfer-Encoding: chunked' -d some http://$HOST/$T"),
    "curl-big": ("curl", "3000000", "curl -sS --cacert $CA https://$HOST/bytes=3000000 | wc -c"),
    "wget": ("wget", '"path": "/{t}"', "wget -qO- --tries=1 http://$HOST/$T"),
    "wget-tls": ("wget", '"path": "/{t}"', "wget -qO- --tries=1 --ca-certificate=$CA https://$HOST/$T"),
    "git": ("git", "of the repository", "git -c http.sslCAInfo=$CA clone -q https://$HOST/git/repo.git $T && cat $T/file"),
    "git-ssh": ("git ssh dropbear", "of the repository",
                f'GIT_SSH_COMMAND="{SSH}" git clone -q $HOST:$REPO $T-ssh && cat $T-ssh/file'),
    "ssh": ("ssh dropbear", "came-{t}", f"{SSH} $HOST echo came-$T"),
    "openssl": ("openssl", "CN = x", "openssl s_client -connect $HOST:443 -servername $HOST -CAfile $CA </dev/null"),
    "psql": ("psql postgres initdb", "came-{t}", 'psql "host=$HOST port=5433 user=test dbname=postgres" -Atc "select \'came-$T\'"'),
    "redis-cli": ("redis-cli redis-server", "came-{t}", "redis-cli -h $HOST echo came-$T"),
    "python-urllib": (PYTHON, '"path": "/{t}"', f"{PYTHON} -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read())' http://$HOST/$T"),
    "python-asyncio": (PYTHON, '"path": "/{t}"', f"{PYTHON} asyncio_get.py $HOST $T"),
    "python-requests": (PYTHON, '"path": "/{t}"',
                        f"{PYTHON} -c 'import sys, requests; print(requests.get(sys.argv[1]).text)' https://$HOST/$T"),
    "node-fetch": ("node", '"path": "/{t}"', "node -e 'fetch(process.argv[1]).then(r => r.text()).then(console.log)' https://$HOST/$T"),
    "node-http": ("node", '"path": "/{t}"', "node -e 'require(\"http\").get(process.argv[1], r => r.pipe(process.stdout))' http://$HOST/$T"),
    "node-http2": ("node", "h2 /{t}", "node http2_get.js $HOST $T"),
    "npm": ("npm", "1.2.3", "mkdir -p $T-npm; npm --registry http://$HOST/npm/ --cache $TMPDIR/$T --no-audit --no-fund --fetch-retries=0 "
            "--prefix $T-npm install thing >&2; cat $T-npm/node_modules/thing/package.json"),
    "perl": ("perl", "of the world /{t}", "perl socket_get.pl $HOST $T"),
    "ruby": ("ruby", '"path": "/{t}"', "ruby -rnet/http -e 'puts Net::HTTP.get(URI(ARGV[0]))' http://$HOST/$T"),
    "php": ("php", '"path": "/{t}"', "php -r 'echo file_get_contents($argv[1]);' http://$HOST/$T"),
    "bash": ("bash", '"path": "/{t}"',
             "bash -c 'exec 3<>/dev/tcp/$0/80; printf \"GET /$1 HTTP/1.0\\r\\nHost: $0\\r\\n\\r\\n\" >&3; cat <&3' $HOST $T"),
    "dig": ("dig", "198.18.", "dig +short +tries=1 @8.8.8.8 $HOST"),
    "static": ("gcc", '"path": "/{t}"', "./static $HOST $T"),
}
# what has to compile something first, or takes seconds to begin
SLOW = {
    "go": ("go", '"path": "/{t}"', "./go_get $HOST $T"),
    "java": ("java javac", '("path": "/{t}".*){4}', "java -Xshare:auto -XX:TieredStopAtLevel=1 Get $HOST $T"),
}
FILES = {
    "asyncio_get.py": """
import asyncio, ssl, sys
async def main(host, path):
    reader, writer = await asyncio.open_connection(host, 443, ssl=ssl.create_default_context())
    writer.write(f"GET /{path} HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    print((await reader.read()).decode())
asyncio.run(main(*sys.argv[1:]))
""",
    "http2_get.js": """
const client = require("http2").connect(`https://${process.argv[2]}:9443`);
const stream = client.request({":path": "/" + process.argv[3]});
stream.on("end", () => client.close()).pipe(process.stdout);
""",
    "socket_get.pl": r"""
use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 80) or die "$@\n";
print $s "GET /$ARGV[1] HTTP/1.0\r\nHost: $ARGV[0]\r\n\r\n";
print "of the world /$ARGV[1]\n" if join('', <$s>) =~ /"path": "\/$ARGV[1]"/;
""",
    "static.c": r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)  /* its own resolver: a static program has no other */
{
    unsigned char q[512] = {0, 1, 1, 0, 0, 1}, *at = q + 12; char text[8192]; int n, s;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    if (!inet_aton(argv[1], &to.sin_addr)) {
        inet_aton("9.9.9.9", &to.sin_addr);
        strcpy(text, argv[1]);
        for (char *l = strtok(text, "."); l; l = strtok(NULL, ".")) {
            *at = strlen(l); memcpy(at + 1, l, *at); at += *at + 1;
        }
        memcpy(at, "\0\0\1\0\1", 5);
        s = socket(AF_INET, SOCK_DGRAM, 0);
        connect(s, (void *)&to, sizeof to);
        send(s, q, at + 5 - q, 0);
        n = recv(s, q, sizeof q, 0);
        if (n < 4 || q[3] & 15) return puts("no such name"), 1;
        memcpy(&to.sin_addr, q + n - 4, 4);
    }
    to.sin_port = htons(80);
    s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (void *)&to, sizeof to)) return perror("connect"), 1;
    n = sprintf(text, "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n", argv[2], argv[1]);
    write(s, text, n);
    while ((n = read(s, text, sizeof text)) > 0) fwrite(text, n, 1, stdout);
}
""",
    "go_get.go": """
package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
    reply, err := http.Get("https://" + os.Args[1] + "/" + os.Args[2])
    if err != nil { fmt.Println(err); os.Exit(1) }
    text, _ := io.ReadAll(reply.Body)
    fmt.Println(string(text))
}
""",
    "Get.java": """
import java.io.FileInputStream; import java.net.*; import java.net.http.*; import java.security.KeyStore;
import java.security.cert.CertificateFactory; import java.util.concurrent.Callable; import javax.net.ssl.*;
class Get {
    static void tell(Callable<String> get) {  // each by itself: that one is refused says nothing of the next
        try { System.out.println(get.call()); } catch (Exception e) { System.out.println(e); }
    }
    public static void main(String[] a) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream("ca.pem")));
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        SSLContext.setDefault(context);
        var client = HttpClient.newHttpClient();
        for (var scheme : new String[] {"http", "https"}) {
            var url = new URL(scheme + "://" + a[0] + "/" + a[1]);
            tell(() -> new String(((HttpURLConnection) url.openConnection()).getInputStream().readAllBytes()));
            tell(() -> client.send(HttpRequest.newBuilder(url.toURI()).build(), HttpResponse.BodyHandlers.ofString()).body());
        }
    }
}
""",
}
COMPILE = {
    "gcc": ["gcc", "-static", "-w", "-o", "static", "static.c"],
    "go": ["go", "build", "-o", "go_get", "go_get.go"],
    "javac": ["javac", "Get.java"],
}
# "own" is the machine itself
HOSTS = {"good": "good.test", "evil": "evil.test", "number": "11.0.0.1", "other": "11.0.0.2", "own": "12.0.0.1"}
NUMBERS = [name for name, host in HOSTS.items() if not host.endswith(".test")]


def lacks(programs):
    absent = [program for program in programs.split() if find_program(program) is None]
    if "dropbear" in programs and os.geteuid():
        absent.append("root, whose account the server is for")
    if "postgres" in programs and not has_account():
        absent.append("account")
    return absent


def here(table):
    for name, (programs, *_) in table.items():
        if lacks(programs):
            warnings.warn(f"{name} is left out: no {', '.join(lacks(programs))}")
    found = {name: row for name, row in table.items() if not lacks(row[0])}
    if importlib.util.find_spec("requests") is None:
        found.pop("python-requests", None)
    return found


class Network:
    def __init__(self, place, table, through=()):
        self.place, self.table = place, table
        self.world = World(place, through)
        self.told = {}

    def fill(self):
        servers = Servers(self.world)
        needed = {program for programs, *_ in self.table.values() for program in programs.split()}
        self.env = {"CA": self.world.ca, "SSL_CERT_FILE": self.world.ca, "REQUESTS_CA_BUNDLE": self.world.ca,
                    "NODE_EXTRA_CA_CERTS": self.world.ca, "GIT_CONFIG_NOSYSTEM": "1"}
        shutil.copy(self.world.ca, self.place.ws)
        if "git" in needed:
            self.env["REPO"] = servers.repository()
        if "npm" in needed:
            servers.package()
        if "node" in needed:
            servers.http2()
        if "redis-server" in needed:
            servers.redis()
        if "postgres" in needed:
            servers.postgresql()
        if "dropbear" in needed:
            shutil.copy(servers.ssh(), self.place.ws / "id")
            self.env |= {"ID": self.place.ws / "id", "ACCOUNT": "root"}
        for name in ("CA", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
            self.env[name] = self.place.ws / "ca.pem"
        self.env = {name: str(value) for name, value in self.env.items()}
        for name, text in FILES.items():
            (self.place.ws / name).write_text(text)
        for program, argv in COMPILE.items():
            if program in needed:
                subprocess.run(argv, cwd=self.place.ws, check=True, env={**self.place.env, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(BUILD / "go-cache")})

    def play(self, kind, hosts, env=None):
        """{(program, host): what it printed}; the result of the command."""
        lines = [f"( export HOST={HOSTS[host]} T={name}-{host}-{kind}; timeout -k 1 60 bash -c {shlex.quote(command)} ) "
                 f">out-{name}-{host}-{kind} 2>&1 </dev/null &"
                 for name, (_, _, command) in self.table.items() for host in hosts]
        (self.place.ws / "all.sh").write_text("\n".join([*lines, "wait", "exit 9"]))
        ran = self.world.run("--json", "--allow-host", "good.test", "--", "bash", "all.sh", env={**self.env, **(env or {})})
        result = json.loads(ran.stdout)
        assert result["exit_code"] == 9, result
        self.told[kind] = [denial for denial in result["denials"]]
        return {(name, host): (self.place.ws / f"out-{name}-{host}-{kind}").read_text(errors="replace")
                for name in self.table for host in hosts}

    def judge(self, kind, played):
        wrong = []
        for (name, host), text in played.items():
            wanted = self.table[name][1].replace("{t}", f"{name}-{host}-{kind}")
            came = re.search(wanted, text, re.DOTALL)
            if name == "dig" and host in NUMBERS:
                continue  # a number is no name
            if bool(came) != (host == "good"):
                wrong.append((name, host, text))
        assert not wrong, (kind, wrong)
        arrived = self.world.arrived()
        assert not [event for event in arrived if re.search(r"-(evil|number|other|own)-", event.get("path", ""))
                    or event.get("name") == "evil.test" or re.search(r"11\.0\.0\.2|12\.0\.0\.1", event.get("address", ""))]


def play_all(place, table):
    network = Network(place, here(table))
    with network.world:
        network.fill()
        network.judge("plain", network.play("plain", HOSTS))
        told = {denial["host"] for denial in network.told["plain"]}
        assert told >= {HOSTS[name] for name in ("evil", *NUMBERS)}, network.told
        # the user's own proxy is told to be for nothing, so that ours has to reach the world itself
        told = {f"{kind}_proxy": "http://192.0.2.1:3128" for kind in ("http", "https", "all", "HTTPS", "ALL")}
        played = network.play("told", ["good", "evil"], {**told, "no_proxy": "*", "NO_PROXY": "*"})
        network.judge("told", played)
        if "curl" in network.table:
            assert "Allow it with --allow-host evil.test:80" in played["curl", "evil"]  # a page of the proxy


def test_programs(place):
    play_all(place, PROGRAMS)


def test_all_are_here():
    """Those that the promise names, where nothing may be left out: scripts/deps installs them."""
    wanted = {program for table in (PROGRAMS, SLOW) for programs, *_ in table.values() for program in programs.split()}
    absent = [program for program in wanted - {"php", "ruby"} if find_program(program) is None]
    if importlib.util.find_spec("requests") is None:
        absent.append("requests")
    assert not absent or "CORDON_MUST_WORK" not in os.environ, absent


@where("go")
def test_static_go(place):
    play_all(place, {"go": SLOW["go"]})


@where("java", "javac")
def test_java(place):
    play_all(place, {"java": SLOW["java"]})


# one of each way to connect, and to look up
WAYS = ["curl", "curl-tls", "wget", "git-ssh", "psql", "redis-cli", "python-urllib", "python-asyncio", "node-http", "bash",
        "dig", "static"]


def test_all_programs_without_nat(place):
    """The guard leads them then."""
    network = Network(place, here({name: PROGRAMS[name] for name in WAYS}), [TOP / "scripts/without-nat"])
    with network.world:
        network.fill()
        network.judge("plain", network.play("plain", HOSTS))
        assert {denial["host"] for denial in network.told["plain"]} >= {HOSTS[name] for name in ("evil", *NUMBERS)}
