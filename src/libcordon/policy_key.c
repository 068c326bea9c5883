/* See policy_key.h. Every value stands with its length, so that no two policies have one text. */
#include "libcordon/policy_key.h"

#include "base/buf.h"
#include "cordon.h"

#include <stdint.h>
#include <string.h>

static void key_add(struct buf *key, const char *name, const char *value)
{
    buf_appendf(key, "%s=%zu:%s\n", name, value ? strlen(value) : 0, value ? value : "");
}

static void key_add_all(struct buf *key, const char *name, const char *const *values)
{
    for (; values && *values; values++)
        key_add(key, name, *values);
}

char *policy_key(const struct cordon_policy *policy, const char *workspace)
{
    struct buf key;

    buf_init(&key, SIZE_MAX / 2);
    key_add(&key, "profile", policy->profile);
    key_add(&key, "workspace", workspace);
    key_add_all(&key, "writable", policy->writable);
    key_add_all(&key, "readable", policy->readable);
    key_add_all(&key, "deny", policy->deny);
    buf_appendf(&key, "network=%d\nsandbox=%d\n", policy->network, policy->sandbox);
    return buf_take(&key);
}
