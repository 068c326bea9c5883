/* See snapshots.h. A handful is kept; the one that was used least recently makes room. One that
 * failed stays in the list, so that it is not tried again with every command. */
#include "workspace/snapshots.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "rules/shell/shell_choice.h"
#include "workspace/snapshot.h"

#include <stddef.h>
#include <stdlib.h>

enum { SNAPSHOTS_MAX = 16 };

/* Whatever start-up files do, these are as Cordon set them. */
static const char *const always_kept[] = {"CODEX_THREAD_ID",
                                          "CORDON_THREAD_ID",
                                          "CORDON_SANDBOX",
                                          "CORDON_SANDBOX_NETWORK_DISABLED",
                                          "CODEX_SANDBOX_NETWORK_DISABLED",
                                          "HTTP_PROXY",
                                          "HTTPS_PROXY",
                                          "ALL_PROXY",
                                          "NO_PROXY",
                                          "http_proxy",
                                          "https_proxy",
                                          "all_proxy",
                                          "no_proxy",
                                          NULL};

struct kept_snapshot {
    struct kept_snapshot *next;
    /* what it is for */
    uint64_t number;
    char *shell;
    char *cwd;
    struct strv env;

    struct snapshot *snapshot; /* NULL: it could not even be begun, `failure` */
    struct err failure;
    bool is_told; /* why it failed */
    void (*release)(void *data);
    void *data;
};

struct snapshots {
    struct loop *loop;
    struct kept_snapshot *list; /* the one used last first */
};

struct snapshots *snapshots_new(struct loop *loop)
{
    struct snapshots *snapshots = alloc_zero(1, sizeof *snapshots);

    snapshots->loop = loop;
    return snapshots;
}

static void kept_release(struct kept_snapshot *kept)
{
    void (*release)(void *data) = kept->release;

    kept->release = NULL;
    if (release)
        release(kept->data);
}

static void kept_free(struct kept_snapshot *kept)
{
    snapshot_free(kept->snapshot);
    kept_release(kept);
    strv_done(&kept->env);
    free(kept->shell);
    free(kept->cwd);
    free(kept);
}

void snapshots_free(struct snapshots *snapshots)
{
    if (!snapshots)
        return;
    while (snapshots->list) {
        struct kept_snapshot *next = snapshots->list->next;

        kept_free(snapshots->list);
        snapshots->list = next;
    }
    free(snapshots);
}

/* --- finding --- */

static bool is_same_env(const struct strv *a, char *const *b)
{
    size_t i = 0;

    for (; i < a->len && b[i]; i++)
        if (!str_eq(a->items[i], b[i]))
            return false;
    return i == a->len && !b[i];
}

static bool is_for(const struct kept_snapshot *kept, const struct snapshot_request *request)
{
    return kept->number == request->number && str_eq(kept->shell, request->argv[0]) &&
           str_eq(kept->cwd, request->cwd) && is_same_env(&kept->env, request->env);
}

/* Moves it to the front. */
static struct kept_snapshot *find(struct snapshots *snapshots,
                                  const struct snapshot_request *request)
{
    for (struct kept_snapshot **at = &snapshots->list; *at; at = &(*at)->next) {
        struct kept_snapshot *kept = *at;

        if (!is_for(kept, request))
            continue;
        *at = kept->next;
        kept->next = snapshots->list;
        return snapshots->list = kept;
    }
    return NULL;
}

/* --- beginning --- */

static void make_room(struct snapshots *snapshots)
{
    struct kept_snapshot **at = &snapshots->list;

    for (size_t len = 1; *at && len < SNAPSHOTS_MAX; len++)
        at = &(*at)->next;
    while (*at) {
        struct kept_snapshot *oldest = *at;

        *at = oldest->next;
        kept_free(oldest);
    }
}

static void on_over(void *data)
{
    kept_release(data);
}

static void begin(struct snapshots *snapshots, const struct snapshot_request *request)
{
    struct kept_snapshot *kept = alloc_zero(1, sizeof *kept);
    struct snapshot_options options = {
        .job = {.loop = snapshots->loop,
                .sandbox = request->sandbox,
                .access = request->access,
                .cwd = request->cwd},
        .shell = request->argv[0],
        .on_over = on_over,
        .data = kept,
    };

    kept->number = request->number;
    kept->shell = alloc_str(request->argv[0]);
    kept->cwd = alloc_str(request->cwd);
    strv_push_all(&kept->env, request->env);
    options.job.env = strv_view(&kept->env);
    kept->snapshot = snapshot_start(&options, &kept->failure);
    make_room(snapshots);
    kept->next = snapshots->list;
    snapshots->list = kept;
    if (!kept->snapshot)
        return;
    kept->release = request->release;
    kept->data = request->data;
    if (request->hold)
        request->hold(request->data);
}

/* --- using --- */

/* The shells without snapshots are known and no failure. */
static bool is_login(char *const *argv)
{
    enum shell_kind kind = argv[0] ? shell_kind_of(argv[0]) : SHELL_UNKNOWN;

    return (kind == SHELL_BASH || kind == SHELL_ZSH || kind == SHELL_SH) && argv[0][0] == '/' &&
           argv[1] && str_eq(argv[1], "-lc") && argv[2] && !argv[3];
}

static const struct err *failure_of(struct kept_snapshot *kept)
{
    const struct err *failure = kept->snapshot ? snapshot_failure(kept->snapshot) : &kept->failure;

    if (!failure || kept->is_told)
        return NULL;
    kept->is_told = true;
    return failure;
}

bool snapshots_use(struct snapshots *snapshots, const struct snapshot_request *request,
                   struct strv *ret_argv, struct strv *ret_env, const struct err **ret_failure)
{
    AUTO(strv_done) struct strv keep = {0};
    struct kept_snapshot *kept;

    *ret_failure = NULL;
    if (!is_login(request->argv))
        return false;
    kept = find(snapshots, request);
    if (!kept) {
        begin(snapshots, request);
        return false;
    }
    *ret_failure = failure_of(kept);
    strv_push_all(&keep, request->keep);
    for (size_t i = 0; always_kept[i]; i++)
        strv_push(&keep, always_kept[i]);
    return kept->snapshot && snapshot_use(kept->snapshot, request->argv, request->cwd,
                                          strv_view(&keep), ret_argv, ret_env);
}
