/* All layers of a user: listed, found by id, by name or by where one stands, and removed when nobody wants them.
 *
 * There are up to three folders of them (store.c); an id is in one alone. A layer whose files cannot be read is named
 * to whoever lists, and is in nobody else's way: nothing is done about it but by its id. */
#include "layer/inside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "layer/accept.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRUNED_FILE ".pruned"

/* --- each of them --- */

struct scan {
    int base;
    const char *path; /* of the folder */
    int (*each)(void *data, int base, const char *path, const char *id);
    void *data;
};

static int scan_name(void *data, const char *name)
{
    const struct scan *scan = data;

    return layer_id_is_valid(name) ? scan->each(scan->data, scan->base, scan->path, name) : 0;
}

/* A folder that cannot be had keeps nobody from the others: `ret_problems` gets a line. */
static int scan_layers(int (*each)(void *data, int base, const char *path, const char *id),
                       void *data, struct strv *ret_problems, struct err *err)
{
    for (int base = 0; base < STORE_BASES; base++) {
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int fd = store_open_base((enum store_base)base, false, &path, err);
        struct scan scan = {.base = fd, .path = path, .each = each, .data = data};
        int result;

        if (fd < 0) {
            if (err->code != ERR_NOT_FOUND)
                strv_push(ret_problems, err->msg);
            continue;
        }
        result = store_list(fd, ".", scan_name, &scan, err);
        if (result)
            return result;
    }
    return 0;
}

/* --- listing --- */

struct listing {
    bool counts_bytes;
    struct layer_infos *infos;
    struct strv *problems;
};

static bool is_later(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec
                                        : one->tv_nsec > other->tv_nsec;
}

/* Those that can be undone. */
static void describe_accepts(const struct layer *layer, struct layer_info *info)
{
    struct accept_info *accepts = NULL;
    size_t len = 0;
    struct err ignored;

    if (layer_accepts(layer, &accepts, &len, &ignored))
        return;
    for (size_t i = 0; i < len; i++) {
        if (accepts[i].is_undone)
            continue;
        info->accepts++;
        if (is_later(&accepts[i].when, &info->accepted))
            info->accepted = accepts[i].when;
    }
    free(accepts);
}

static void describe(const struct layer *layer, bool counts_bytes, struct layer_info *ret)
{
    const struct layer_record *record = &layer->record;
    struct err ignored;

    *ret = (struct layer_info){
        .id = alloc_str(record->id),
        .name = alloc_str(record->name),
        .state = layer_state(layer),
        .held_by = layer_holder(layer),
        .created = record->created,
        .used = record->created,
        .roots = alloc_zero(record->roots_len + 1, sizeof *ret->roots),
        .roots_len = record->roots_len,
        .steps = layer->records_len,
    };
    for (size_t i = 0; i < record->roots_len; i++) {
        ret->roots[i] = record->roots[i];
        ret->roots[i].path = alloc_str(record->roots[i].path);
    }
    for (size_t i = 0; i < layer->records_len; i++) {
        const struct layer_step *step = &layer->records[i].step;

        ret->used = step->ended.tv_sec ? step->ended : step->begun;
    }
    describe_accepts(layer, ret);
    if (counts_bytes && store_count_bytes(layer, &ret->bytes, &ignored))
        ret->bytes = 0;
}

static int list_one(void *data, int base, const char *path, const char *id)
{
    struct listing *listing = data;
    struct layer_infos *infos = listing->infos;
    struct err why;
    struct layer *layer = layer_open_at(base, path, id, LAYER_READ, NULL, &why);

    if (!layer) {
        if (why.code != ERR_NOT_FOUND) /* somebody is just making or removing it */
            strv_push(listing->problems, why.msg);
        return 0;
    }
    infos->items = alloc_grow(infos->items, infos->len, &infos->cap, sizeof *infos->items);
    describe(layer, listing->counts_bytes, &infos->items[infos->len++]);
    layer_close(layer);
    return 0;
}

/* Newest use first. */
static int compare_infos(const void *a, const void *b)
{
    const struct layer_info *one = a;
    const struct layer_info *other = b;

    if (is_later(&one->used, &other->used))
        return -1;
    if (is_later(&other->used, &one->used))
        return 1;
    return strcmp(one->id, other->id);
}

int layers_list(bool counts_bytes, struct layer_infos *ret, struct strv *ret_problems,
                struct err *err)
{
    struct listing listing = {.counts_bytes = counts_bytes, .infos = ret, .problems = ret_problems};

    if (scan_layers(list_one, &listing, ret_problems, err))
        return -1;
    if (ret->len)
        qsort(ret->items, ret->len, sizeof *ret->items, compare_infos);
    return 0;
}

void layer_infos_done(struct layer_infos *infos)
{
    for (size_t i = 0; i < infos->len; i++) {
        struct layer_info *info = &infos->items[i];

        free(info->id);
        free(info->name);
        free(info->held_by);
        for (size_t j = 0; j < info->roots_len; j++)
            free(info->roots[j].path);
        free(info->roots);
    }
    free(infos->items);
    *infos = (struct layer_infos){0};
}

/* --- finding one --- */

/* The depth of the deepest root that `cwd` lies in, from 1 on; 0: none. */
static size_t depth_of(const struct layer_info *info, const char *cwd)
{
    size_t depth = 0;

    for (size_t i = 0; i < info->roots_len; i++) {
        const char *path = info->roots[i].path;

        if (!info->roots[i].is_direct && path_is_within(cwd, path) && path_depth(path) + 1 > depth)
            depth = path_depth(path) + 1;
    }
    return depth;
}

static const struct layer_info *find_by_cwd(const struct layer_infos *infos, const char *cwd)
{
    const struct layer_info *best = NULL;
    size_t best_depth = 0;

    for (size_t i = 0; cwd && i < infos->len; i++) {
        size_t depth = depth_of(&infos->items[i], cwd);

        if (depth > best_depth) {
            best = &infos->items[i];
            best_depth = depth;
        }
    }
    return best;
}

/* By what is kept of its name alone: there may be thousands that have none, and each of them has steps. */
struct search {
    const char *word;
    bool may_begin; /* the word may be what an id begins with, of one layer alone */
    char *found;
    char *begun;
    size_t begins;
};

static bool has_name(int base, const char *path, const char *id, const char *name)
{
    AUTO(layer_record_done) struct layer_record record = {0};
    AUTO(buf_done) struct buf text = {0};
    struct err ignored; /* who opens or lists it is told */
    AUTO_CLOSE int fd = store_open_layer(base, id, &ignored);

    return fd >= 0 && store_read(fd, LAYER_FILE, &text, &ignored) == 0 && text.data &&
           layer_record_parse(text.data, text.len, path, &record, &ignored) == 0 && record.name &&
           str_eq(record.name, name);
}

static int search_one(void *data, int base, const char *path, const char *id)
{
    struct search *search = data;

    if (search->may_begin && str_starts(id, search->word)) {
        search->begins++;
        free(search->begun);
        search->begun = alloc_str(id);
    }
    if (!str_eq(id, search->word) && !has_name(base, path, id, search->word))
        return 0;
    search->found = alloc_str(id);
    return 1;
}

static char *find(const char *word, bool may_begin)
{
    struct search search = {.word = word, .may_begin = may_begin};
    AUTO(strv_done) struct strv problems = {0};
    struct err ignored; /* then there is none */

    (void)scan_layers(search_one, &search, &problems, &ignored);
    if (!search.found && search.begins == 1)
        search.found = TAKE_PTR(search.begun);
    free(search.begun);
    return search.found;
}

char *layers_find_name(const char *name)
{
    return find(name, false);
}

char *layers_find_id(const char *word)
{
    enum { ID_MIN = 4 }; /* digits */

    return find(word, strlen(word) >= ID_MIN && !word[strspn(word, "0123456789abcdef")]);
}

static int fail_unknown(const struct layer_infos *infos, const char *name, const char *cwd,
                        const struct strv *problems, struct err *err)
{
    AUTO(buf_done) struct buf names;

    buf_init(&names, 120);
    for (size_t i = 0; i < infos->len; i++)
        if (!buf_appendf(&names, "%s%s", i ? ", " : "",
                         infos->items[i].name ? infos->items[i].name : infos->items[i].id))
            break;
    if (problems->len)
        return err_set(err, ERR_NOT_FOUND, "no layer can be found as %s: %s",
                       name ? name : "the last one", problems->items[0]);
    if (!infos->len)
        return err_set(err, ERR_NOT_FOUND, "there is no layer%s%s; there are none at all",
                       name ? " " : "", name ? name : "");
    if (!name)
        return err_set(err, ERR_NOT_FOUND, "no layer lies over %s; there are: %s", cwd ? cwd : "it",
                       names.data);
    return err_set(err, ERR_NOT_FOUND, "there is no layer %s; there are: %s", name, names.data);
}

/* ERR_NOT_FOUND when no folder has it. */
static struct layer *open_by_id(const char *id, enum layer_use use, const char *held_by,
                                struct err *err)
{
    for (int base = 0; base < STORE_BASES; base++) {
        AUTO_FREE char *path = NULL;
        AUTO_CLOSE int fd = store_open_base((enum store_base)base, false, &path, err);
        struct layer *layer = fd < 0 ? NULL : layer_open_at(fd, path, id, use, held_by, err);

        if (layer || (fd >= 0 && err->code != ERR_NOT_FOUND))
            return layer;
    }
    err_set(err, ERR_NOT_FOUND, "there is no layer %s", id);
    return NULL;
}

struct layer *layer_open(const char *name, const char *cwd, enum layer_use use, const char *held_by,
                         struct err *err)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    AUTO_FREE char *id = NULL;
    const struct layer_info *info;

    if (name && layer_id_is_valid(name)) {
        struct layer *layer = open_by_id(name, use, held_by, err);

        if (layer || err->code != ERR_NOT_FOUND)
            return layer;
    } else if (name && layer_name_check(name, err)) {
        return NULL;
    }
    id = name ? layers_find_name(name) : NULL;
    if (id)
        return open_by_id(id, use, held_by, err);
    if (layers_list(false, &infos, &problems, err))
        return NULL;
    info = name ? NULL : find_by_cwd(&infos, cwd);
    if (info)
        return open_by_id(info->id, use, held_by, err);
    fail_unknown(&infos, name, cwd, &problems, err);
    return NULL;
}

/* --- those that nobody wants --- */

static bool has_changes(const struct layer *layer)
{
    struct err ignored;

    for (size_t i = 0; i < layer->records_len; i++)
        for (size_t root = 0; root < layer->record.roots_len; root++)
            if (store_has_written(layer, root, layer->records[i].step.number, &ignored))
                return true;
    return false;
}

/* 1: it is gone. */
static int prune(const struct layer_info *info, bool with_changes, struct err *err)
{
    struct err why;
    struct layer *layer = open_by_id(info->id, LAYER_CHANGE, "cordon layers", &why);

    if (!layer && (why.code == ERR_BUSY || why.code == ERR_NOT_FOUND))
        return 0;
    if (!layer) {
        *err = why;
        return -1;
    }
    if (!with_changes && has_changes(layer)) {
        layer_close(layer);
        return 0;
    }
    return layer_remove(layer, err) ? -1 : 1;
}

static int sweep_name(void *data, const char *name)
{
    const int *base = data;
    size_t len = strlen(name);
    struct err ignored;
    AUTO_CLOSE int fd = -1;

    if (name[0] != '.' || len < RECORD_ID_LEN || !str_ends(name, ".gone"))
        return 0;
    fd = store_open_layer(*base, name, &ignored);
    if (fd >= 0 && store_drain(fd, &ignored) == 0)
        unlinkat(*base, name, AT_REMOVEDIR);
    return 0;
}

/* What is left of layers whose removal was cut short. */
static void sweep(void)
{
    for (int place = 0; place < STORE_BASES; place++) {
        AUTO_FREE char *path = NULL;
        struct err ignored;
        AUTO_CLOSE int base = store_open_base((enum store_base)place, false, &path, &ignored);

        if (base >= 0)
            store_list(base, ".", sweep_name, &base, &ignored);
    }
}

int layers_prune(uint64_t age_s, bool with_changes, struct strv *ret_gone, struct err *err)
{
    AUTO(layer_infos_done) struct layer_infos infos = {0};
    AUTO(strv_done) struct strv problems = {0};
    int64_t before = (int64_t)(clock_wall_ns() / CLOCK_NS_PER_S) - (int64_t)age_s;

    sweep();
    if (layers_list(false, &infos, &problems, err))
        return -1;
    for (size_t i = 0; i < infos.len; i++) {
        const struct layer_info *info = &infos.items[i];
        int gone;

        if (info->used.tv_sec > before || info->held_by)
            continue;
        gone = prune(info, with_changes, err);
        if (gone < 0)
            return -1;
        if (gone)
            strv_push(ret_gone, info->name ? info->name : info->id);
    }
    return 0;
}

/* When it was done last is the time of a file. */
static bool is_pruned(uint64_t every_s)
{
    AUTO_FREE char *path = NULL;
    struct err ignored; /* then it is another time's */
    AUTO_CLOSE int base = store_open_base(STORE_STATE, false, &path, &ignored);
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int64_t now = (int64_t)(clock_wall_ns() / CLOCK_NS_PER_S);

    if (base < 0)
        return false;
    if (fstatat(base, PRUNED_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtim.tv_sec <= now &&
        st.st_mtim.tv_sec > now - (int64_t)every_s)
        return true;
    fd = openat(base, PRUNED_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)futimens(fd, NULL);
    return false;
}

void layers_prune_daily(uint64_t age_s)
{
    enum { DAY_S = 86400 };
    AUTO(strv_done) struct strv gone = {0};
    struct err ignored; /* they go another time */

    if (!is_pruned(DAY_S))
        (void)layers_prune(age_s, false, &gone, &ignored);
}
