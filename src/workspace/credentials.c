/* See credentials.h. A secret may be in more variables than in the one that is named: wherever our own environment has
 * it, the command gets what stands for it. */
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
#include <unistd.h>

enum { RANDOM_BYTES = 64, SHORT = 8 };

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

/* --- where the value is --- */

/* `value` with `to` in place of each `from`. Caller frees. */
static char *replaced(const char *value, const char *from, const char *to)
{
    AUTO(buf_done) struct buf text = {0};
    const char *next;

    buf_init(&text, SIZE_MAX / 2);
    for (; (next = strstr(value, from)); value = next + strlen(from)) {
        buf_append(&text, value, (size_t)(next - value));
        buf_append_str(&text, to);
    }
    buf_append_str(&text, value);
    return buf_take(&text);
}

/* What a secret before has changed in it counts. */
static void withhold(const char *secret, const char *instead, struct strv *env)
{
    for (char **pair = environ; *pair; pair++) {
        const char *value = strchr(*pair, '=');
        const size_t len = value ? (size_t)(value - *pair) + 1 : 0;
        char **there = NULL;

        if (!len || (strlen(secret) < SHORT ? !str_eq(value + 1, secret) : !strstr(value, secret)))
            continue;
        for (size_t i = 0; i < env->len; i++)
            if (strncmp(env->items[i], *pair, len) == 0)
                there = &env->items[i];
        if (there) {
            char *now = replaced(*there, secret, instead);

            free(*there);
            *there = now;
        } else {
            strv_push_take(env, replaced(*pair, secret, instead));
        }
    }
}

/* --- files --- */

static int read_file(const char *path, struct access_map *map, char **ret, struct err *err)
{
    AUTO(path_walk_done) struct path_walk walk = {0};
    AUTO(buf_done) struct buf text = {0};

    if (path_walk(&host_view_real, path, &walk, err) ||
        protect_check_links(map, path, walk.links, walk.links_len, err))
        return -1;
    if (map->restricted ? access_map_check_host(map, walk.path) == ACCESS_WRITE : true)
        return err_set(
            err, ERR_FORBIDDEN,
            "%s: commands can change it, so it is not read as a secret: keep it where they "
            "cannot write",
            path);
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

static int open_injection(struct network_injection *injection, struct access_map *map,
                          struct strv *env, struct err *err)
{
    AUTO_FREE char *instead = NULL;
    const char *value;

    if (injection->secret_file)
        return read_file(injection->secret_file, map, &injection->secret, err);
    value = getenv(injection->secret_env_var);
    if (!value)
        return 0;
    if (check(value, injection->secret_env_var, err))
        return -1;
    injection->secret = alloc_str(value);
    instead = stand_in(value);
    withhold(value, instead, env);
    return 0;
}

int credentials_open(struct access_map *map, struct strv *env, struct err *err)
{
    struct network_hooks *hooks = map->network_policy.hooks;

    for (size_t i = 0; hooks && i < hooks->credentials_len; i++) {
        struct network_credential *credential = &hooks->credentials[i];
        const char *value = getenv(credential->name);

        if (!value)
            continue;
        if (check(value, credential->name, err))
            return -1;
        credential->secret = alloc_str(value);
        credential->stand_in = stand_in(value);
        withhold(value, credential->stand_in, env);
    }
    for (size_t i = 0; hooks && i < hooks->hooks_len; i++)
        for (size_t j = 0; j < hooks->hooks[i].inject_len; j++)
            if (open_injection(&hooks->hooks[i].inject[j], map, env, err))
                return err_wrap(err, "%s",
                                hooks->hooks[i].origin ? hooks->hooks[i].origin
                                                       : hooks->hooks[i].host);
    return 0;
}
