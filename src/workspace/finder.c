/* See finder.h. The lookup is execvp(3)'s: a name with a slash is a path, any other is sought in
 * the directories of $PATH, of which an empty one is the working directory (POSIX XBD 8.3). */
#include "workspace/finder.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sys.h"
#include "policy/host_view.h"
#include "rules/shell/shell_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Caller frees; NULL when it is in none of the directories. `ret_moves`: a relative one comes before. */
static char *search(const struct host_finder *finder, const char *name, bool *ret_moves)
{
    const char *at = finder->search_path;

    *ret_moves = false;
    while (at) {
        size_t len = strcspn(at, ":");
        AUTO_FREE char *dir = alloc_strn(at, len);
        AUTO_FREE char *joined = alloc_strf("%s/%s", *dir ? dir : ".", name);
        AUTO_FREE char *path = path_clean(finder->cwd, joined);

        *ret_moves |= *dir != '/';
        if (is_program(path))
            return TAKE_PTR(path);
        at = at[len] ? at + len + 1 : NULL;
    }
    return NULL;
}

static bool find(const struct program_finder *base, const char *name, char **ret_found,
                 char **ret_real)
{
    const struct host_finder *finder = (const struct host_finder *)base;
    bool moves;
    AUTO_FREE char *found =
        strchr(name, '/') ? path_clean(finder->cwd, name) : search(finder, name, &moves);
    AUTO_FREE char *real = found ? realpath(found, NULL) : NULL;

    if (!real || !is_program(real))
        return false;
    *ret_found = TAKE_PTR(found);
    *ret_real = TAKE_PTR(real);
    return true;
}

static bool may_move(const struct program_finder *base, const char *name)
{
    bool moves = *name != '/';

    if (!strchr(name, '/'))
        free(search((const struct host_finder *)base, name, &moves));
    return moves;
}

/* What cannot be looked at is not. */
static bool component_is_settled(const char *path)
{
    struct stat st;

    if (sys_fault() || lstat(path, &st) || st.st_uid == geteuid())
        return false;
    if (S_ISLNK(st.st_mode))
        return true;
    return (sys_fault() || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS)) &&
           (errno == EACCES || errno == EROFS);
}

/* `data`: whether the last name lay in one of them, and not above. */
static bool is_settled_for_root(void *data, const char *name)
{
    /* not all of /usr, nor /opt: /usr/src/app and /opt/app are workspaces of root's, in containers;
     * /etc/alternatives: the way that /usr/bin/editor and the like go */
    static const char *const system[] = {
        "/usr/bin",       "/usr/sbin",    "/usr/lib",         "/usr/lib32",
        "/usr/lib64",     "/usr/libexec", "/usr/games",       "/usr/share",
        "/bin",           "/sbin",        "/usr/local/bin",   "/usr/local/sbin",
        "/usr/local/lib", "/lib",         "/lib64",           "/snap",
        "/nix/store",     "/gnu/store",   "/etc/alternatives"};
    bool is_above = false;

    *(bool *)data = false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) {
        *(bool *)data |= path_is_within(name, system[i]);
        is_above |= path_is_within(system[i], name);
    }
    return *(bool *)data || is_above;
}

static bool is_settled_for_user(void *data, const char *name)
{
    return component_is_settled(name);
}

bool host_path_is_settled(const char *path)
{
    bool is_within = true;

    return *path == '/' && !strstr(path, "/..") &&
           path_way(&host_view_real, path, geteuid() ? is_settled_for_user : is_settled_for_root,
                    &is_within) &&
           is_within;
}

char *host_interpreter(const char *path)
{
    enum { LINE_MAX_BYTES = 256 }; /* BINPRM_BUF_SIZE, linux/binfmts.h */
    char line[LINE_MAX_BYTES + 1];
    struct err err;
    AUTO_CLOSE int fd = fd_open_file(AT_FDCWD, path, 0, &err);
    bool is_hidden =
        fd < 0 && err.sys == EACCES; /* the kernel runs no script that cannot be read */
    ssize_t len = fd < 0 || sys_fault() ? -1 : read(fd, line, LINE_MAX_BYTES);
    const char *start;

    if (len < 0)
        return is_hidden ? NULL : alloc_str("");
    if (len < 2 || strncmp(line, "#!", 2) != 0)
        return NULL;
    line[len] = '\0';
    start = line + 2 + strspn(line + 2, " \t");
    return alloc_strn(start, strcspn(start, " \t\n"));
}

bool host_leads_to_settled(const char *path)
{
    AUTO_FREE char *real = realpath(path, NULL);

    return real && host_path_is_settled(path) && host_path_is_settled(real);
}

static bool is_settled(const struct program_finder *base, const char *path)
{
    AUTO_FREE char *interpreter = host_interpreter(path);

    return host_path_is_settled(path) && (!interpreter || host_leads_to_settled(interpreter));
}

char *host_settled_path(char *const *env, const char *also)
{
    const char *at = env_value(env, "PATH");
    AUTO(buf_done) struct buf kept;

    buf_init(&kept, SIZE_MAX / 2);
    buf_append_str(&kept, "");
    while (at) {
        size_t len = strcspn(at, ":");
        AUTO_FREE char *dir = alloc_strn(at, len);

        if (host_leads_to_settled(dir))
            buf_appendf(&kept, "%s%s", kept.len ? ":" : "", dir);
        at = at[len] ? at + len + 1 : NULL;
    }
    if (also)
        buf_appendf(&kept, "%s%s", kept.len ? ":" : "", also);
    return buf_take(&kept);
}

const char *env_value(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

void host_finder_init(struct host_finder *finder, char *const *env, const char *cwd)
{
    *finder = (struct host_finder){
        .finder = {.find = find, .may_move = may_move, .is_settled = is_settled},
        .search_path = env_value(env, "PATH"),
        .cwd = cwd};
}

static char *users_shell(char *const *env)
{
    AUTO(account_done) struct account user;
    struct host_finder finder;

    host_finder_init(&finder, env, "/");
    account_find(&user);
    return shell_choose(user.shell, &finder.finder);
}

char *host_shell(char *const *env)
{
    const char *shell = env_value(env, "SHELL");

    if (shell && *shell == '/' && shell_kind_of(shell) != SHELL_UNKNOWN)
        return alloc_str(shell);
    return users_shell(env);
}
