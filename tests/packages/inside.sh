# What scripts/test-packages does in a system: `sh inside.sh deb|tarball|library SYSTEM`, as root, with /try from outside. Any shell.
set -eu
what=$1
system=$2
verdict=$(cat /try/verdict)
trap 'code=$?; [ $code = 0 ] || echo "inside.sh: the last step failed with $code" >&2' EXIT

step() { echo "--- $*"; }

# All that is there, but for the home folders, where users keep what is theirs, and what dpkg remembers of having run.
list_files() {
    find / \( -path /proc -o -path /sys -o -path /dev -o -path /try -o -path /tmp -o -path /run -o -path /root -o -path /home \
        -o -path /var/log -o -path /var/lib/dpkg/status -o -path /var/lib/dpkg/status-old -o -path /var/lib/dpkg/lock \
        -o -path /var/lib/dpkg/lock-frontend -o -path /var/lib/dpkg/triggers -o -path /var/lib/dpkg/available \
        -o -path /var/lib/dpkg/diversions-old -o -path /var/lib/dpkg/statoverride-old -o -path /var/cache/ldconfig \) \
        -prune -o -type f -exec stat -c '%n %f %u %g %s' {} + -o -print | sort
}

# as WHO COMMAND...: as root, or as an ordinary user without account.
as() {
    who=$1
    shift
    if [ "$who" = root ]; then
        env HOME=/root "$@"
    elif command -v setpriv >/dev/null && [ "$system" != busybox ]; then
        env HOME=/home/me setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
    else
        env HOME=/home/me chroot --userspec=1000:1000 --skip-chdir / "$@" 2>/dev/null || env HOME=/home/me su me -s /bin/sh -c 'exec "$0" "$@"' -- "$@"
    fi
}

folder_of() { [ "$1" = root ] && echo /root || echo /home/me; }

# The sandbox holds what it promises here: `cordon` by any name, as WHO.
use() {
    who=$1
    cordon=$2
    home=$(folder_of "$who")
    mkdir -p "$home/ws $who"
    cd "$home/ws $who"
    [ "$who" = root ] || chown 1000:1000 .
    step "$who: doctor"
    as "$who" "$cordon" doctor --json >/tmp/doctor.json || true
    grep -q "\"verdict\": *\"$verdict\"" /tmp/doctor.json || { as "$who" "$cordon" doctor; cat /tmp/doctor.json; return 1; }
    # Landlock alone where nothing can be mounted: it has to be asked for.
    options=
    [ "$verdict" = enforced ] || options="--sandbox landlock"
    step "$who: run"
    as "$who" "$cordon" run $options -- sh -c 'echo built >result; cat result' | grep -qx built
    if as "$who" "$cordon" run $options -- sh -c 'echo x >../escaped' 2>/tmp/said; then
        echo "it wrote outside" && return 1
    fi
    [ ! -e ../escaped ]
    grep -q 'cordon: refused' /tmp/said
    step "$who: each of the helpers"
    as "$who" "$cordon" presets | grep -q '^npm '
    as "$who" "$cordon" log | grep -q result
    as "$who" "$cordon" log verify >/dev/null
    rm -f /tmp/server
    as "$who" "$cordon" serve --listen unix:/tmp/server >/tmp/server.said 2>&1 &
    server=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -S /tmp/server ] && break
        sleep 0.2
    done
    [ -S /tmp/server ]
    if [ "$verdict" = enforced ]; then # elsewhere a command at a server has to ask for less
        as "$who" "$cordon" --connect unix:/tmp/server run -- sh -c 'echo served' | grep -qx served
        echo copied >there
        as "$who" "$cordon" --connect unix:/tmp/server cp there "remote:$PWD/here"
        grep -qx copied here
        as "$who" "$cordon" mcp </dev/null
        printf '*** Begin Patch\n*** Add File: patched\n+one\n*** End Patch\n' | as "$who" "$cordon" patch >/dev/null
        grep -qx one patched
    fi
    kill $server
    wait $server || true
    cd /
}

# Every block of the pages for newcomers, in their order, as WHO, with `cordon` in the PATH.
follow_pages() {
    who=$1
    home=$(folder_of "$who")
    page=
    for block in /try/pages/*.sh; do
        now=$(head -n 1 "$block")
        if [ "$now" != "$page" ]; then
            page=$now
            rm -rf "$home/project" "$home/.config" "$home/.cache" "$home/notes" # each page is somebody's first
            mkdir "$home/project"
            cd "$home/project"
            printf 'test:\n\ttrue\n' >Makefile
            echo "a project" >README.md
            [ "$who" = root ] || chown -R 1000:1000 .
        fi
        code=0
        as "$who" env PATH="$PATH" sh -e "$block" >/tmp/said 2>&1 || code=$?
        [ "$code" = "$(cat "${block%.sh}.code")" ] || { cat "$block" /tmp/said; echo "exit status $code"; return 1; }
    done
    cd /
}

mkdir -p /home/me /root /opt
[ "$system" != busybox ] || echo "me:x:1000:1000::/home/me:/bin/sh" >>/etc/passwd
chown 1000:1000 /home/me
list_files >/tmp/before

case $what in
deb)
    step "dpkg --install"
    dpkg --install /try/cordon_*.deb
    [ "$(command -v cordon)" = /usr/bin/cordon ]
    for who in root user; do
        use $who cordon
        [ "$verdict" != enforced ] || { step "$who: the pages" && follow_pages $who; }
    done
    grep -q '^ExecStart=/usr/bin/cordon serve' /usr/lib/systemd/user/cordon-serve.service
    # Not every minimal system keeps manuals.
    [ -e /etc/dpkg/dpkg.cfg.d/excludes ] || zcat /usr/share/man/man1/cordon-run.1.gz | grep -q '^.SH EXAMPLES\|^.SH NAME'
    step "dpkg --remove, --purge"
    dpkg --remove cordon
    dpkg --purge cordon
    ;;
library)
    step "dpkg --install libcordon-dev"
    dpkg --install /try/cordon_*.deb /try/libcordon-dev_*.deb
    cc -Wall -Werror /try/oneshot.c -o /tmp/oneshot $(pkg-config --cflags --libs --static cordon)
    mkdir -p /root/ws
    cd /root/ws
    /tmp/oneshot 2>&1 | tee /tmp/said || [ $? -lt 125 ]
    cd /
    dpkg --purge libcordon-dev cordon
    ;;
tarball)
    mkdir -p /opt/tools
    tar -C /opt/tools -xzf /try/cordon-*.tar.gz
    [ "$(ls -ld /opt/tools/cordon-*/bin/cordon | cut -c1-10)" = -rwxr-xr-x ]
    for who in root user; do
        use $who "$(echo /opt/tools/cordon-*/bin/cordon)"
    done
    step "moved, and by a link"
    mv /opt/tools/cordon-* "/opt/another place"
    ln -s "/opt/another place/bin/cordon" /bin/cordon
    for who in root user; do
        use $who cordon
        [ "$verdict" != enforced ] || [ "$system" = busybox ] || { step "$who: the pages" && follow_pages $who; }
    done
    rm -rf /bin/cordon /opt/tools "/opt/another place"
    step "a user's own, in the home folder"
    as user sh -c 'mkdir -p ~/tools && tar -C ~/tools -xzf /try/cordon-*.tar.gz'
    use user "$(echo /home/me/tools/cordon-*/bin/cordon)"
    ;;
esac

step "nothing is left"
list_files >/tmp/after
diff /tmp/before /tmp/after
