/* See config_file.h. Without a file nothing is parsed and no TOML code is touched. */
#include "cli/config_file.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/config/config.h"
#include "policy/host_view.h"
#include "policy/protect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static char *home_by_user(void)
{
    AUTO(account_done) struct account user;

    account_find(&user);
    return TAKE_PTR(user.home);
}

typedef int read_fn(const char *path, size_t max, struct buf *ret, struct err *err);

/* Reads and parses `path`, which is given up to the file. */
static int load(struct config_file *file, char *path, read_fn *read, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    file->path = path;
    if (read(path, CONFIG_SIZE_MAX, &text, err))
        return -1;
    file->config = config_load(text.data ? text.data : "", text.len, path, err);
    if (!file->config)
        return -1;
    file->text = alloc_strn(text.data ? text.data : "", text.len);
    return 0;
}

static int load_default(struct config_file *file, struct err *err)
{
    struct err failure;

    if (load(file, path_join(file->dir, CONFIG_NAME), fd_read_file, &failure) == 0)
        return 0;
    if (failure.sys != ENOENT && failure.sys != ENOTDIR) {
        *err = failure;
        return -1;
    }
    free(TAKE_PTR(file->path));
    return 0;
}

int config_file_place(struct config_file *ret, struct err *err)
{
    const char *named = getenv("CORDON_HOME");
    const char *home = getenv("HOME");

    if (named && *named && *named != '/')
        return err_set(err, ERR_INVALID, "CORDON_HOME is \"%s\", which is not an absolute path",
                       named);
    *ret = (struct config_file){0};
    ret->home = home && home[0] == '/' ? path_clean("/", home) : home_by_user();
    if (named && *named)
        ret->dir = path_clean("/", named);
    else if (ret->home)
        ret->dir = path_join(ret->home, ".config/cordon");
    if (ret->dir) {
        strv_push(&ret->own_paths, ret->dir);
        strv_push_take(&ret->own_paths, path_join(ret->dir, CONFIG_NAME));
    }
    return 0;
}

int config_file_load(const char *named, const char *base, struct config_file *ret, struct err *err)
{
    AUTO(config_file_done) struct config_file file = {0};

    if (config_file_place(&file, err))
        return -1;
    if (named) {
        char *path = path_clean(base, named);

        strv_push(&file.own_paths, path);
        if (load(&file, path, fd_read_given, err))
            return err_wrap(err, "--config");
    } else if (file.dir && load_default(&file, err)) {
        return -1;
    }
    config_trusted_paths(file.config, &file.own_paths);
    *ret = file;
    file = (struct config_file){0};
    return 0;
}

struct rule_owner config_file_owner(const struct config_file *file)
{
    return (struct rule_owner){.config = file->config, .dir = file->dir, .home = file->home};
}
