/* See runner.h.
 *
 * Options that are missing here on purpose: those that start a shell (sudo -i, -s), split text
 * (env -S), put words into others (xargs -i, --replace), or do something else with the words (sudo
 * -e, chrt -p, ionice -p). */
#include "rules/shell/runner.h"

#include "base/str.h"
#include "rules/shell/name_list.h"

#include <stdbool.h>
#include <stddef.h>

/* Options as of coreutils 9.1, sudo 1.9.13, util-linux 2.38, findutils 4.9, time 1.9, bash 5.2. */
static const struct runner runners[] = {
    {"builtin", "", "", "", 0, BY_SHELL, RUNS_PREFIX},
    {"busybox", "", "", "", 0, 0, RUNS_PREFIX},
    {"chroot", "", "", "--groups= --userspec= --skip-chdir", 1, STARTS_SHELL, RUNS_PREFIX},
    {"chrt", "abdfior", "DPT", "", 1, 0, RUNS_PREFIX},
    {"command", "p", "", "", 0, BY_SHELL, RUNS_COMMAND},
    {"doas", "n", "Cu", "", 0, TAKES_ASSIGNMENTS, RUNS_PREFIX},
    {"env", "-0iv", "Cu", "--ignore-environment --null --unset= --chdir= --debug", 0,
     TAKES_ASSIGNMENTS, RUNS_PREFIX},
    {"eval", "", "", "", 0, 0, RUNS_EVAL},
    {"exec", "cl", "a", "", 0, BY_SHELL, RUNS_PREFIX},
    {"find", "", "", "", 0, 0, RUNS_FIND},
    {"ionice", "t", "cn", "--class= --classdata= --ignore", 0, 0, RUNS_PREFIX},
    {"nice", "0123456789", "n", "--adjustment=", 0, 0, RUNS_PREFIX},
    {"nohup", "", "", "", 0, 0, RUNS_PREFIX},
    {"setsid", "cfw", "", "--ctty --fork --wait", 0, 0, RUNS_PREFIX},
    {"stdbuf", "", "eio", "--input= --output= --error=", 0, 0, RUNS_PREFIX},
    {"sudo", "ABEHPSbkn", "CDRTghprtu",
     "--askpass --background --bell --chdir= --chroot= --close-from= --group= --host= "
     "--non-interactive --preserve-env --preserve-groups --prompt= --set-home --stdin --user=",
     0, TAKES_ASSIGNMENTS, RUNS_PREFIX},
    {"taskset", "ac", "", "--all-tasks --cpu-list", 1, 0, RUNS_PREFIX},
    {"time", "apqvV", "fo", "--append --format= --output= --portability --quiet --verbose", 0, 0,
     RUNS_PREFIX},
    {"timeout", "v", "ks", "--foreground --kill-after= --preserve-status --signal= --verbose", 1, 0,
     RUNS_PREFIX},
    {"toybox", "", "", "", 0, 0, RUNS_PREFIX},
    {"trap", "", "", "", 0, 0, RUNS_TRAP},
    {"xargs", "0rtxopl", "EILPadns",
     "--null --arg-file= --delimiter= --max-args= --max-chars= --max-lines --max-procs= "
     "--no-run-if-empty --open-tty --verbose --exit --eof --show-limits",
     0, 0, RUNS_XARGS},
};

static const char shells[] = "ash bash dash rbash sh zsh";

static const char other_shells[] =
    "cmd csh elvish es fish ksh ksh93 mksh nu oksh osh posh powershell pwsh rc tcsh xonsh "
    "yash";

static const char unreadable[] =
    "at batch bwrap capsh catchsegv chpst crontab dbus-launch dbus-run-session distrobox "
    "eatmydata entr expect faketime fakeroot firejail flock gdb i386 ld.so linux32 linux64 "
    "ltrace newgrp nsenter parallel perf pkexec prlimit proot rlwrap run-parts runcon runuser "
    "script setarch setpriv sg softlimit start-stop-daemon strace su systemd-run tmux screen "
    "unbuffer unshare valgrind watch x86_64 xvfb-run";

const struct runner *runner_find(const char *name)
{
    static const struct runner shell = {.kind = RUNS_SHELL};
    static const struct runner other_shell = {.kind = RUNS_OTHER_SHELL};
    static const struct runner something = {.kind = RUNS_SOMETHING};

    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++)
        if (str_eq(runners[i].name, name))
            return &runners[i];
    if (name_list_has(shells, name))
        return &shell;
    if (name_list_has(other_shells, name))
        return &other_shell;
    /* the dynamic loader runs the program that it is given */
    return name_list_has(unreadable, name) || str_starts(name, "ld-linux") ? &something : NULL;
}
