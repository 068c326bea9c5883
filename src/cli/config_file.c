/* See config_file.h. Without a file nothing is parsed and no TOML code is touched. */
#include "cli/config_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/config/config.h"
#include "policy/host_view.h"
#include "policy/protect.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONFIG_NAME "config.toml"

void config_file_done(struct config_file *file)
{
    config_free(file->config);
    free(file->path);
    free(file->text);
    free(file->home);
    free(file->dir);
    strv_done(&file->own_paths);
    *file = (struct config_file){0};
}

/* By the local user database, whose modules a static program cannot load. */
static char *home_by_user(void)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user = NULL;
    char *home = NULL;

    while (file && !home && (user = fgetpwent(file)))
        if (user->pw_uid == geteuid() && user->pw_dir[0] == '/')
            home = path_clean("/", user->pw_dir);
    if (file)
        fclose(file);
    return home;
}

/* Caller frees; NULL when it is not known. */
static char *home_dir(void)
{
    const char *home = getenv("HOME");

    return home && home[0] == '/' ? path_clean("/", home) : home_by_user();
}

/* Caller frees; NULL without a home directory. */
static int config_dir(const char *home, char **ret, struct err *err)
{
    const char *named = getenv("CORDON_HOME");

    *ret = NULL;
    if (named && *named && *named != '/')
        return err_set(err, ERR_INVALID, "CORDON_HOME is \"%s\", which is not an absolute path",
                       named);
    if (named && *named)
        *ret = path_clean("/", named);
    else if (home)
        *ret = path_join(home, ".config/cordon");
    return 0;
}

/* Reads and parses `path`, which is given up to the file. */
static int load(struct config_file *file, char *path, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    file->path = path;
    if (fd_read_file(path, CONFIG_SIZE_MAX, &text, err))
        return -1;
    file->config = config_load(text.data ? text.data : "", text.len, path, err);
    if (!file->config)
        return -1;
    file->text = alloc_strn(text.data ? text.data : "", text.len);
    return 0;
}

static int load_named(struct config_file *file, const char *named, const char *base,
                      struct err *err)
{
    char *path = path_clean(base, named);

    strv_push(&file->own_paths, path);
    return load(file, path, err) ? err_wrap(err, "--config") : 0;
}

static int load_default(struct config_file *file, const char *dir, struct err *err)
{
    struct err failure;

    if (load(file, path_join(dir, CONFIG_NAME), &failure) == 0)
        return 0;
    if (failure.sys != ENOENT && failure.sys != ENOTDIR) {
        *err = failure;
        return -1;
    }
    free(TAKE_PTR(file->path));
    return 0;
}

static int place(struct config_file *file, char **ret_dir, struct err *err)
{
    file->home = home_dir();
    if (config_dir(file->home, ret_dir, err))
        return -1;
    if (*ret_dir) {
        file->dir = alloc_str(*ret_dir);
        strv_push(&file->own_paths, *ret_dir);
        strv_push_take(&file->own_paths, path_join(*ret_dir, CONFIG_NAME));
    }
    return 0;
}

int config_file_place(struct config_file *ret, struct err *err)
{
    AUTO(config_file_done) struct config_file file = {0};
    AUTO_FREE char *dir = NULL;

    if (place(&file, &dir, err))
        return -1;
    *ret = file;
    file = (struct config_file){0};
    return 0;
}

int config_file_load(const char *named, const char *base, struct config_file *ret, struct err *err)
{
    AUTO(config_file_done) struct config_file file = {0};
    AUTO_FREE char *dir = NULL;

    if (place(&file, &dir, err) ||
        (named ? load_named(&file, named, base, err) : dir && load_default(&file, dir, err)))
        return -1;
    *ret = file;
    file = (struct config_file){0};
    return 0;
}

struct rule_owner config_file_owner(const struct config_file *file)
{
    return (struct rule_owner){.config = file->config, .dir = file->dir, .home = file->home};
}
