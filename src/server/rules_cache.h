/* The rules of the last call of session/exec, so that files that have not changed are not read
 * for every command. */
#pragma once

#include <stdbool.h>

struct rule_owner;
struct rules;

/* Zeroed it is empty. */
struct rules_cache {
    struct rules *rules;
    char *signature; /* of the files that they are made of */
    bool is_settled; /* a change of these files would show in a signature */
};

/* As rule_layers_load(), which it is whenever anything about the files may have changed. Borrowed
 * until the next call. */
const struct rules *rules_cache_get(struct rules_cache *cache, const struct rule_owner *owner,
                                    const char *dir);
void rules_cache_done(struct rules_cache *cache);
