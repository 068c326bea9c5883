"""Servers that are talked to by sockets in the file system, started and ended in one command: inside,
with the network restricted, as outside."""
import os
import pwd

import pytest

from harness import CORDON
from tools import NOBODY, Sides, give_to_nobody, need, where

try:
    ACCOUNT = pwd.getpwuid(os.getuid()).pw_name
except KeyError:
    ACCOUNT = None

KEYS = r"\b[0-9A-F]{8,40}\b|SHA256:\S+"


@where("redis-server", "redis-cli")
def test_redis(place):
    """Its socket, and a child that writes the snapshot."""
    script = ("redis-server --port 0 --unixsocket $TMPDIR/redis.sock --dir $WS --appendonly yes --loglevel "
              "warning >log 2>&1 & r='redis-cli -s '$TMPDIR/redis.sock; until $r ping 2>/dev/null || ! kill -0 $!; do :; done; "
              "for i in 1 2 3; do $r set key$i value$i; done; $r mget key1 key3 missing; $r incr n; "
              "seq 500 | sed 's/.*/lpush list &/' | $r | tail -1; $r save; $r bgrewriteaof; "
              "$r client list | grep -c addr=$TMPDIR; $r shutdown; wait; ls; ls $TMPDIR")
    Sides(place, unlike=["ws/dump.rdb", "ws/appendonlydir/*", "ws/log"],
          untold=["ws/appendonlydir/*"]).is_alike(script)


@where("tmux")
def test_tmux(place):
    """A server, its default socket, panes that are typed into and read."""
    script = ("export TMUX_TMPDIR=$TMPDIR; t='tmux -f /dev/null'; $t new-session -d -x 60 -y 8 -n one 'PS1=\"> \" sh'; "
              "$t send-keys 'echo out; echo to-file > file; tmux wait-for -S done' Enter; $t wait-for done; "
              "$t split-window -h 'cat'; $t list-panes -F '#{pane_index} #{pane_width}x#{pane_height}'; "
              "$t new-window -n two \"sh -c 'echo two; tmux wait-for -S two; sleep 1000'\"; $t wait-for two; "
              "$t capture-pane -p -t two | head -1; $t list-windows -F '#{window_name}'; $t run-shell 'echo ran'; "
              "$t set-buffer text; $t show-buffer; $t kill-server; cat file; find $TMPDIR -type s | wc -l")
    Sides(place, untold=["tmp/*"], env={"TERM": "xterm"}).is_alike(script)


@where("gpg", "gpg-agent")
def test_gpg(place):
    """The agent is started by itself, and is talked to by a socket in GNUPGHOME."""
    script = ("export GNUPGHOME=$TMPDIR/g; mkdir -m 700 $GNUPGHOME; g='gpg --batch -q --passphrase'; "
              "$g '' --quick-generate-key 'A <a@example.org>' ed25519 sign never; "
              "$g '' --quick-add-key $(gpg --list-keys --with-colons | awk -F: '/^fpr/{print $10}') cv25519 encr never; "
              "echo text > note; $g '' --detach-sign -a note; gpg -q --verify note.asc note 2>&1 | grep -c Good; "
              "$g '' -e -r a@example.org note; $g '' -d note.gpg; gpg -q --list-secret-keys --with-colons | grep -c ^sec; "
              "gpg-connect-agent 'getinfo version' /bye | tail -1; gpgconf --kill all; ls")
    Sides(place, untold=["tmp/*"], unlike=["ws/note.*"], loose=[(KEYS, "KEY")]).is_alike(script)


@pytest.mark.parametrize("agent", ["ssh-agent", "ssh-agent -a $TMPDIR/agent"])
def test_ssh_agent(place, agent):
    need("ssh-keygen", "ssh-agent", "ssh-add")
    script = (f"eval $({agent}) >/dev/null; ssh-keygen -q -t ed25519 -N '' -C test -f key; ssh-add -q key; ssh-add -l; "
              "rm key; echo text > note; ssh-keygen -q -Y sign -f key.pub -n file note; "
              "echo \"a $(cat key.pub)\" > allowed; ssh-keygen -Y verify -f allowed -I a -n file -s note.sig < note; "
              "ssh-add -q -D; ssh-add -l; ssh-agent -k >/dev/null; ls")
    Sides(place, untold=["tmp/*"], unlike=["ws/*"], loose=[(KEYS, "KEY"), (r"/ssh-\S+", "AGENT")]).is_alike(script)


POSTGRES = """
set -e; PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; export PGDATA=$TMPDIR/data PGHOST=$TMPDIR PGUSER=me
initdb -U me -A trust --no-sync -E UTF8 --locale=C | grep -c ok$
pg_ctl -s -w -l $WS/log -o "-k $TMPDIR -c fsync=off -c listen_addresses=127.0.0.1 -p 54329" start; export PGPORT=54329
createdb work; psql -qAt work -c "create table t(a serial primary key, b text); insert into t(b) select md5(i::text) from
generate_series(1, 5000) i; create index on t(b); select count(*), sum(a) from t"
for i in 1 2 3 4; do psql -qAt work -c "begin; update t set b = b || '$i' where a % 4 = $i - 1; commit" & done; wait
psql -qAt work -c "select md5(string_agg(b, '' order by a)) from t"; psql -qAt -h 127.0.0.1 work -c "select 'by tcp'"
pg_dump work | grep -c ^; psql -qAt work -c "copy (select * from t order by a limit 9) to '$WS/copied'"; psql -qAt work -c "\\copy (select * from t order by a) to made"
psql -qAt work -c "select nothing" || echo failed; vacuumdb -q work; pg_ctl -s -w -m fast stop; wc -l made copied; ls -A $TMPDIR
"""


@where("psql", "setpriv")
def test_postgresql(place):
    """initdb, a server on its Unix socket and on localhost, clients side by side. It is not root's."""
    if ACCOUNT is None:
        return  # initdb wants one
    become, cordon = [], CORDON
    if os.getuid() == 0:
        become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        cordon = give_to_nobody(place)
    sides = Sides(place, untold=["tmp/data/*", "tmp/.s.*"], unlike=["ws/log"], become=become, cordon=cordon)
    sides.is_alike(POSTGRES)


@where("chromium")
def test_chromium(place):
    """Its processes talk by socketpairs and shared memory; its lock on the profile is a socket."""
    (place.ws / "page.html").write_text(
        "<title>before</title><p id=p>text</p><script>document.title = 'after ' + 6 * 7;"
        "p.textContent = [...'abc'].reverse().join('');</script>")
    script = ("c='chromium --headless --no-sandbox --disable-gpu --user-data-dir='$TMPDIR/profile; "
              "$c --dump-dom file://$WS/page.html 2>/dev/null; $c --screenshot=$WS/shot.png --window-size=200,100 "
              "file://$WS/page.html 2>/dev/null; head -c 4 shot.png | tail -c 3; $c --print-to-pdf=$WS/page.pdf "
              "file://$WS/page.html 2>/dev/null; head -c 4 page.pdf; ls")
    Sides(place, untold=["tmp/*", "home/*"], unlike=["*.pdf"]).is_alike(script)
