/* See tool_cache.h. */
#include "policy/tool_cache.h"

#include "base/auto.h"
#include "base/path.h"

#include <stddef.h>

/* Below the home directory. Each preset of presets/ has a line here. */
static const struct {
    const char *path;
    const char *preset;
} caches[] = {
    {".bun", "bun"},
    {".bundle", "bundler"},
    {".gem", "bundler"},
    {".local/share/gem", "bundler"},
    {".cargo", "cargo"},
    {".cache/ccache", "ccache"},
    {".ccache", "ccache"},
    {".cache/composer", "composer"},
    {".composer/cache", "composer"},
    {".cache/deno", "deno"},
    {".deno", "deno"},
    {".cache/go-build", "go"},
    {"go", "go"},
    {".gradle", "gradle"},
    {".m2", "maven"},
    {".cache/node-gyp", "npm"},
    {".npm", "npm"},
    {".cache/pip", "pip"},
    {".cache/ms-playwright", "playwright"},
    {".cache/pnpm", "pnpm"},
    {".local/share/pnpm", "pnpm"},
    {".pnpm-store", "pnpm"},
    {".cache/uv", "uv"},
    {".local/share/uv", "uv"},
    {".cache/yarn", "yarn"},
    {".yarn", "yarn"},
};

const char *tool_cache_preset(const char *path, const char *home)
{
    for (size_t i = 0; home && i < sizeof caches / sizeof *caches; i++) {
        AUTO_FREE char *folder = path_join(home, caches[i].path);

        if (path_is_within(path, folder))
            return caches[i].preset;
    }
    return NULL;
}
