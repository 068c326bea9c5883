/* See credentials.h. A secret may be in more variables than in the one that is named: wherever the environment of a command
 * would have it, it gets what stands for it (network_hooks_withhold(), when it is launched). */
#include "workspace/credentials.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/access.h"
#include "policy/host_view.h"
#include "policy/network_hook.h"
#include "policy/protect.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANDOM_BYTES = 64 };

static int check(const char *secret, const char *what, struct err *err)
{
    if (network_secret_is_valid(secret))
        return 0;
    return err_set(
        err, ERR_INVALID,
        "%s is empty, longer than %d bytes, or has characters that cannot stand in a header", what,
        NETWORK_SECRET_MAX);
}

static char *stand_in(const char *secret)
{
    uint8_t random[RANDOM_BYTES];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        abort(); /* 64 bytes never come in part */
    return network_stand_in(secret, random);
}

/* --- files --- */

static int read_file(const char *path, struct access_map *map, char **ret, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO(buf_done) struct buf text = {0};
    struct stat status;

    if (path_walk(&host_view_real, path, &walk, err) ||
        protect_check_links(map, path, walk.links, walk.links_len, err))
        return -1;
    if (path_may_change(&host_view_real, map, path))
        return err_set(
            err, ERR_FORBIDDEN,
            "%s: commands can change it, so it is not read as a secret: keep it where they "
            "cannot write",
            path);
    if (stat(walk.path, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 1)
        return err_set(err, ERR_FORBIDDEN,
                       "%s: the file has %u names (hard links), by another of which commands could "
                       "read it: make a copy that has one",
                       path, (unsigned)status.st_nlink);
    if (fd_read_file(walk.path, NETWORK_SECRET_MAX + 2, &text, err))
        return -1;
    while (text.len && strchr("\r\n", text.data[text.len - 1]))
        text.len--;
    *ret = alloc_strn(text.len ? text.data : "", text.len);
    if (!access_map_is_private(map, walk.path))
        access_map_add(map, walk.path, ACCESS_DENY, ACCESS_FILE, "a secret of the network's hooks");
    access_map_sort(map);
    return check(*ret, path, err);
}

/* --- all of them --- */

/* One that is not there leaves `*ret_secret` NULL. */
static int read_variable(const char *name, char **ret_secret, char **ret_stand_in, struct strv *env,
                         struct err *err)
{
    const char *value = getenv(name);

    if (!value)
        return 0;
    if (check(value, name, err))
        return -1;
    *ret_secret = alloc_str(value);
    *ret_stand_in = stand_in(value);
    strv_pushf(env, "%s=%s", name, *ret_stand_in);
    return 0;
}

static int open_injection(struct network_injection *injection, struct access_map *map,
                          struct strv *env, struct err *err)
{
    if (injection->secret_file) {
        if (read_file(injection->secret_file, map, &injection->secret, err))
            return -1;
        injection->stand_in = stand_in(injection->secret);
        return 0;
    }
    return read_variable(injection->secret_env_var, &injection->secret, &injection->stand_in, env,
                         err);
}

int credentials_open(struct access_map *map, struct strv *env, struct err *err)
{
    struct network_hooks *hooks = map->network_policy.hooks;

    for (size_t i = 0; hooks && i < hooks->credentials_len; i++) {
        struct network_credential *credential = &hooks->credentials[i];

        if (read_variable(credential->name, &credential->secret, &credential->stand_in, env, err))
            return -1;
    }
    for (size_t i = 0; hooks && i < hooks->hooks_len; i++)
        for (size_t j = 0; j < hooks->hooks[i].inject_len; j++)
            if (open_injection(&hooks->hooks[i].inject[j], map, env, err))
                return err_wrap(err, "%s",
                                hooks->hooks[i].origin ? hooks->hooks[i].origin
                                                       : hooks->hooks[i].host);
    return 0;
}
