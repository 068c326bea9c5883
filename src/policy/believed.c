/* See believed.h. Names alone decide: what is not there yet counts as well. */
#include "policy/believed.h"

#include "base/auto.h"
#include "base/path.h"
#include "policy/protect.h"

#include <string.h>

static bool is_one_of(const char *name, size_t len, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == len && strncmp(*names, name, len) == 0)
            return true;
    return false;
}

/* What git runs or obeys; the rest of a git directory is data. `rest`: below it. */
static bool is_git_setting(const char *rest)
{
    static const char *const names[] = {"hooks",   "config",    "config.worktree", "info",
                                        "modules", "commondir", "gitdir",          NULL};
    const char *last = strrchr(rest, '/');

    rest += strspn(rest, "/");
    return is_one_of(rest, strcspn(rest, "/"), names) ||
           (last && is_one_of(last + 1, strlen(last + 1), names));
}

static bool is_git(const char *name, size_t len)
{
    return len == 4 && strncmp(name, ".git", len) == 0;
}

/* Protected names, wherever they are, and what the hooks of projects and their tools are called. */
static bool has_believed_name(const char *path)
{
    for (size_t len; *path; path += len) {
        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (is_git(path, len) ? is_git_setting(path + len) : protect_has_name(path, len))
            return true;
    }
    return false;
}

/* What root can write: where programs are found, and what logins, shells, the loader and timers read. */
static bool is_of_system(const char *path)
{
    static const char *const places[] = {
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
        "/usr/local/bin",
        "/usr/local/sbin",
        "/usr/local/lib",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/var/spool/cron",
        "/etc/bash.bashrc",
        "/etc/cron.d",
        "/etc/crontab",
        "/etc/environment",
        "/etc/gitconfig",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/ld.so.preload",
        "/etc/pam.d",
        "/etc/profile",
        "/etc/profile.d",
        "/etc/ssh",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/systemd",
        "/etc/zsh",
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (path_is_within(path, places[i]) || path_is_within(places[i], path))
            return true;
    return false;
}

bool place_is_believed(const char *path, const char *home)
{
    static const char *const files[] = {
        ".profile",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bashrc",
        ".zshenv",
        ".zprofile",
        ".zshrc",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".inputrc",
        ".xprofile",
        ".xsession",
        ".xsessionrc",
        ".xinitrc",
        ".ssh",
        ".gnupg",
        ".claude.json",
        ".gitconfig",
        ".npmrc",
        ".envrc",
        ".vimrc",
        ".emacs",
        "bin",
        ".local/bin",
        ".local/lib",
        ".cargo/bin",
        ".cargo/config.toml",
        ".cargo/env",
        "go/bin",
        ".bun/bin",
        ".deno/bin",
        ".config/git",
        ".config/autostart",
        ".config/Code/User",
        ".config/systemd",
        ".config/fish",
        ".config/nvim",
        ".emacs.d",
        ".pam_environment",
        ".local/share/systemd",
        ".local/share/applications",
        ".config/environment.d",
    };

    if (has_believed_name(path))
        return true;
    for (size_t i = 0; home && i < sizeof files / sizeof *files; i++) {
        AUTO_FREE char *file = path_join(home, files[i]);

        if (path_is_within(path, file) || path_is_within(file, path))
            return true;
    }
    return false;
}

bool place_may_be_opened(const char *path, const char *home)
{
    return !place_is_believed(path, home) && !is_of_system(path);
}
