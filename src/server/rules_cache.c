/* See rules_cache.h. A rule that was written holds for the next command. So a file is
 * the same only when its path, inode, size and both times of change are; and as the clock of a file
 * system ticks slowly, nothing is kept while one of them was changed just now: a second change in
 * the same tick would not show. Nothing is kept either when a file could not be read or parsed, as
 * the reason may lie elsewhere. */
#include "server/rules_cache.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "rules/rules.h"
#include "server/server.h"
#include "workspace/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TICK_NS UINT64_C(2000000000) /* 2 s: of the slowest file system, FAT */

struct look {
    struct buf text;
    uint64_t newest_ns; /* wall clock */
};

static uint64_t ns_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * CLOCK_NS_PER_S + (uint64_t)time.tv_nsec;
}

/* A file that is not there and a directory that cannot be listed show, too. */
static void look_at(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct look *look = data;
    struct stat st = {.st_size = 0};

    if (failure || stat(origin->file, &st))
        buf_append_str(&look->text, "unknown ");
    buf_appendf(&look->text, "%zu:%s %d %lx:%lx %llx %llx %llx\n", strlen(origin->file),
                origin->file, (int)origin->layer, (unsigned long)st.st_dev,
                (unsigned long)st.st_ino, (unsigned long long)st.st_size,
                (unsigned long long)ns_of(st.st_mtim), (unsigned long long)ns_of(st.st_ctim));
    if (ns_of(st.st_ctim) > look->newest_ns)
        look->newest_ns = ns_of(st.st_ctim);
}

/* Before the files are read, so that what changes meanwhile has another signature. */
static void check_files(struct look *look, const struct rule_owner *owner, const char *dir)
{
    const struct rules_visitor visitor = {.visit = look_at, .data = look};
    AUTO_FREE char *project = NULL;
    struct rules_dirs places;

    buf_init(&look->text, SIZE_MAX / 2);
    buf_appendf(&look->text, "home %s\n", owner->home ? owner->home : "");
    rule_layers_find(owner, dir, &places, &project);
    rules_visit(&places, &visitor);
}

static bool has_problems(const struct rules *rules)
{
    size_t len;

    rules_problems(rules, &len);
    return len > 0;
}

const struct rules *rules_cache_get(struct rules_cache *cache, const struct rule_owner *owner,
                                    const char *dir)
{
    uint64_t now_ns = clock_wall_ns();
    struct look look = {.newest_ns = 0};
    AUTO_FREE char *signature = NULL;

    check_files(&look, owner, dir);
    signature = buf_take(&look.text);
    if (cache->is_settled && str_eq(cache->signature, signature))
        return cache->rules;
    rules_cache_done(cache);
    cache->rules = rule_layers_load(owner, dir);
    cache->signature = TAKE_PTR(signature);
    cache->is_settled = !has_problems(cache->rules) && look.newest_ns + TICK_NS < now_ns;
    return cache->rules;
}

void rules_cache_done(struct rules_cache *cache)
{
    rules_free(cache->rules);
    free(cache->signature);
    *cache = (struct rules_cache){.rules = NULL};
}

/* --- whose rules --- */

struct rule_owner server_rule_owner(const struct server *server)
{
    return (struct rule_owner){
        .config = server->config.file,
        .dir = server->config.dir,
        .home = server->config.home,
    };
}

const char *server_rules_dir(const struct workspace *workspace, const char *cwd)
{
    return workspace_has_root(workspace, cwd) ? cwd : "/";
}
