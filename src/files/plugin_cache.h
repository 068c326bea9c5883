/* Plugins that a Codex on this host has installed: plugins/cache/MARKETPLACE/NAME/VERSION below its
 * home directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PLUGINS_MAX = 512 };

struct plugin {
    char *id;        /* NAME@MARKETPLACE */
    char *version;   /* the one in use: "local", or the highest */
    char *root;      /* its directory */
    char *remote_id; /* NULL: it did not come from a remote marketplace */
};

struct plugin_cache {
    struct plugin *items; /* by id */
    size_t len;
    size_t cap;
    bool is_partial; /* something could not be read, or there are more */
};

/* A missing cache is an empty one. */
void plugin_cache_find(struct plugin_cache *ret, const char *codex_home);
void plugin_cache_done(struct plugin_cache *cache);

/* The order of versions: by the rules of Semantic Versioning 2.0.0, with build metadata as the last word, when both are
 * such versions; bytewise otherwise. */
int plugin_version_compare(const char *a, const char *b);
