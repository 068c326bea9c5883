/* See layer_steps.h.
 *
 *     something of the layer ended --> summary (cordon-layer) --> answers that wait for its step get "changes"
 *                                                             \-> layer/stepEnded, when nothing lives any more
 *                                                             \-> what is watched outside follows
 *                              \-> the next step is mounted
 *
 * One summary of a layer at a time; what comes while it works is served by the next one. It is made only of what somebody
 * asks for: the step for those who ran something in it, everything for those who watch. */
#include "server/layer/layer_steps.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/file_uri.h"
#include "base/json.h"
#include "base/log.h"
#include "loop/loop.h"
#include "server/call.h"
#include "server/client.h"
#include "server/layer/layer_audit.h"
#include "server/layer/layer_outside.h"
#include "server/layer/layer_table.h"
#include "server/layer/layer_task.h"
#include "server/server.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* An answer that waits for its changes. */
struct reply {
    struct list link;
    struct call *call;
    json_t *result;
    char *id;
    int step;
    bool is_shared;
};

static void summarize(struct layer_entry *entry);

/* --- answers --- */

static void reply_free(struct reply *reply)
{
    list_remove(&reply->link);
    json_decref(reply->result);
    free(reply->id);
    free(reply);
}

static void on_gone(void *data)
{
    reply_free(data);
}

static json_int_t count_of(const json_t *counts, const char *key)
{
    return json_integer_value(json_object_get(counts, key));
}

/* `counts` NULL or JSON null: they are not known. A rename is something that is new, and something that is gone. */
static json_t *changes_of(const struct reply *reply, const json_t *counts)
{
    const json_int_t renamed = count_of(counts, "renamed");

    if (!json_is_object(counts))
        return json_null();
    return json_pack("{s:s, s:i, s:b, s:I, s:I, s:I}", "layerId", reply->id, "stepId", reply->step,
                     "shared", reply->is_shared, "added", count_of(counts, "added") + renamed,
                     "modified", count_of(counts, "modified") + count_of(counts, "other"),
                     "deleted", count_of(counts, "deleted") + renamed);
}

static void reply_send(struct reply *reply, const json_t *counts)
{
    struct call *call = reply->call;
    json_t *result = json_incref(reply->result);

    json_object_set_new(result, "changes", changes_of(reply, counts));
    call_on_gone(call, NULL, NULL);
    reply_free(reply);
    call_reply(call, result);
}

/* Those of this step. */
static void send_replies(struct layer_entry *entry, int step, const json_t *counts)
{
    struct reply *reply;
    struct reply *next;

    list_for_each_safe(reply, next, &entry->replies, link)
        if (reply->step == step)
            reply_send(reply, counts);
}

void layer_reply(struct call *call, json_t *result, const char *id, int step)
{
    struct server *server = call->client->server;
    struct layer_entry *entry = id && server->layers ? layer_find(server->layers, id) : NULL;
    struct reply *reply;

    if (!id) {
        call_reply(call, result);
        return;
    }
    reply = alloc_zero(1, sizeof *reply);
    *reply = (struct reply){.call = call, .result = result, .id = alloc_str(id), .step = step};
    if (!entry || !entry->layer || !step) {
        reply_send(reply, NULL);
        return;
    }
    reply->is_shared = layer_step_is_shared(entry->layer, step);
    list_append(&entry->replies, &reply->link);
    call_on_gone(call, on_gone, reply);
    summarize(entry);
}

static void forget_apart(struct layer_entry *entry)
{
    loop_watch_free(TAKE_PTR(entry->apart));
    if (entry->apart_fd >= 0)
        close(TAKE_FD(entry->apart_fd));
}

void layer_steps_end(struct layer_entry *entry)
{
    while (!list_is_empty(&entry->replies))
        reply_send(list_first(&entry->replies, struct reply, link), NULL);
    if (entry->layer)
        layer_on_quiet(entry->layer, NULL, NULL);
    loop_timer_stop(entry->timer);
    forget_apart(entry);
    entry->ended_step = 0;
}

/* --- what is outside --- */

static void on_changed(void *data, const struct strv *paths, bool has_more)
{
    struct layer_entry *entry = data;
    AUTO_JSON json_t *params = json_pack("{s:s, s:o, s:b}", "layerId", entry->id, "paths",
                                         json_lossy_list(strv_view(paths)), "more", has_more);

    layer_notify(entry->table->server, entry->id, "layer/outsideChanged", params);
}

static void watch_outside(struct layer_entry *entry, const json_t *uris)
{
    AUTO(strv_done) struct strv paths = {0};
    struct err err;

    if (!entry->outside)
        entry->outside = layer_outside_new(entry->table->server->loop, on_changed, entry, &err);
    if (!entry->outside) {
        log_event(LOG_LEVEL_WARN, "layer-unwatched", log_text("layer", entry->id),
                  log_text("why", err.msg));
        return;
    }
    for (size_t i = 0; i < json_array_size(uris); i++) {
        const char *uri = json_string_value(json_array_get(uris, i));
        char *path = uri ? file_uri_parse(uri, &err) : NULL;

        if (path)
            strv_push_take(&paths, path);
    }
    layer_outside_set(entry->outside, &paths);
}

/* --- summaries --- */

static void tell_ended(struct layer_entry *entry, int step, const json_t *result)
{
    json_t *counts = json_object_get(result, "step");
    json_t *all = json_object_get(result, "all");
    AUTO_JSON json_t *params = json_pack("{s:s, s:i, s:o, s:o}", "layerId", entry->id, "stepId",
                                         step, "counts", counts ? json_incref(counts) : json_null(),
                                         "all", all ? json_incref(all) : json_null());

    if (entry->ended_step != step)
        return;
    entry->ended_step = 0;
    entry->told_step = step;
    layer_audit_step(entry, step, counts);
    layer_notify(entry->table->server, entry->id, "layer/stepEnded", params);
}

/* What is better done while nothing lives. What fails is tried again when another step has ended, not before. */
static void tidy(struct layer_entry *entry)
{
    const int last = layer_last_step(entry->layer);
    size_t steps = 0;

    (void)layer_steps(entry->layer, &steps);
    if (entry->changing || (!entry->settles && steps < LAYER_STEPS_MANY) ||
        last == entry->tidied_step || !layer_entry_is_free(entry))
        return;
    entry->tidied_step = last;
    entry->tasks++; /* it is looked at again below */
    if (steps >= LAYER_STEPS_MANY)
        layer_change(entry, NULL, "squash", NULL);
    if (entry->settles)
        layer_change(entry, NULL, "settle", NULL);
    entry->settles = false;
    entry->tasks--;
}

static void on_apart(void *data, int fd, unsigned ready)
{
    struct layer_entry *entry = data;

    forget_apart(entry);
    layer_steps_prepare(entry);
}

/* The layer may be through with its descriptor before we are. */
void layer_steps_prepare(struct layer_entry *entry)
{
    const int fd = entry->layer && !entry->changing ? layer_prepare(entry->layer) : -1;
    struct err ignored;

    if (fd < 0 || entry->apart)
        return;
    entry->apart_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (entry->apart_fd >= 0)
        entry->apart = loop_watch_new(entry->table->server->loop, entry->apart_fd, LOOP_READ,
                                      on_apart, entry, &ignored);
    if (!entry->apart)
        forget_apart(entry);
}

static void summary_end(struct layer_entry *entry, const json_t *result)
{
    const int step = entry->summary_step;
    const json_t *paths = json_object_get(result, "paths");

    send_replies(entry, step, json_object_get(result, "step"));
    if (step)
        tell_ended(entry, step, result);
    if (paths && layer_is_watched(entry->table->server, entry->id))
        watch_outside(entry, paths);
    entry->used_ns = clock_now_ns();
    if (entry->layer && result && !entry->summary_is_old)
        layer_tell_bytes(entry->layer,
                         (uint64_t)json_integer_value(json_object_get(result, "bytes")));
    if (entry->layer)
        tidy(entry); /* whoever ran something in the step is through with it by now */
    layer_steps_prepare(entry);
    summarize(entry);
}

static void on_summary(void *data, const struct layer_helper_answer *answer)
{
    struct layer_entry *entry = data;
    AUTO_JSON json_t *result = json_incref((json_t *)answer->result);

    if (answer->failure)
        log_event(LOG_LEVEL_WARN, "layer-unlisted", log_text("layer", entry->id),
                  log_text("why", answer->failure->msg));
    layer_helper_free(TAKE_PTR(entry->summary));
    summary_end(entry, result);
}

static void start_summary(struct layer_entry *entry, int step, bool counts_all)
{
    json_t *params = json_pack("{s:b}", "countsAll", counts_all);
    AUTO_JSON json_t *request = NULL;
    struct err err;

    if (step)
        json_object_set_new(params, "stepId", json_integer(step));
    request = layer_request(entry->table, "summary", entry->id, params);
    entry->summary_step = step;
    entry->summary_is_old = false;
    entry->summary = layer_helper_for(entry->table, request, on_summary, entry, &err);
    if (entry->summary)
        return;
    log_event(LOG_LEVEL_WARN, "layer-unlisted", log_text("layer", entry->id),
              log_text("why", err.msg));
    send_replies(entry, step, NULL);
    if (step)
        tell_ended(entry, step, NULL);
}

static bool has_limit(const struct layer_entry *entry)
{
    return entry->layer && layer_has_limit(entry->layer);
}

/* Somebody wants to know of the ends of steps. */
static bool is_heard(const struct layer_entry *entry)
{
    struct server *server = entry->table->server;

    return layer_is_watched(server, entry->id) || server_audit_is_on(server) || has_limit(entry);
}

/* Until nobody waits for one; what has the layer to itself comes first, and has this done at its end. */
static void summarize(struct layer_entry *entry)
{
    const struct reply *first;
    bool is_watched;

    while (!entry->summary && !(entry->changing && layer_task_is_alone(entry->changing))) {
        first = list_first(&entry->replies, struct reply, link);
        is_watched = layer_is_watched(entry->table->server, entry->id);
        if (!first && !((is_watched || has_limit(entry)) && entry->looks) &&
            !(entry->ended_step && is_heard(entry)))
            return;
        entry->looks = false;
        start_summary(entry, first ? first->step : entry->ended_step, is_watched);
    }
}

void layer_steps_look(struct layer_entry *entry)
{
    entry->looks = true;
    summarize(entry);
}

/* --- the end of a step --- */

static void on_time(void *data)
{
    struct layer_entry *entry = data;

    if (!entry->layer)
        return;
    entry->used_ns = clock_now_ns();
    if (is_heard(entry))
        summarize(entry);
    else
        entry->ended_step = 0;
    if (!entry->summary) /* at whose end it is done, too */
        layer_steps_prepare(entry);
}

/* From within the end of a launch: only takes note. */
static void on_quiet(void *data, struct layer *layer)
{
    struct layer_entry *entry = data;
    const int last = layer_last_step(layer);
    const int step =
        last > entry->live_step ? last : entry->live_step; /* it is gone if nothing was written */

    if (step > entry->told_step)
        entry->ended_step = step;
    loop_timer_start(entry->timer, 0);
}

void layer_steps_begin(struct layer_entry *entry)
{
    if (!entry->timer)
        entry->timer = loop_timer_new(entry->table->server->loop, on_time, entry);
    entry->told_step = layer_last_step(entry->layer);
    layer_on_quiet(entry->layer, on_quiet, entry);
}
