/* See news.h. Nothing is polled. The end of every session that a tool has told of is waited for (process/wait), because then
 * the list is another one; and those that somebody subscribed to are attached to without their output, so that the server
 * tells at most five times a second that there is more (process/grown). */
#include "mcp/news.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "mcp/engine.h"
#include "mcp/session.h"
#include "rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SUBSCRIPTIONS_MAX = 256 }; /* of one listener */

struct mcp_news {
    struct mcp_session *session;
    struct mcp_engine_listener events; /* in the list of the engine while anything is attached to */
    struct list watches;
    struct list listeners;
    struct mcp_listener own;
};

/* --- listeners --- */

struct subscription {
    struct list in_listener;
    char *uri;
    int64_t number; /* of the session, or of MCP_NEWS_... */
};

static struct subscription *subscription_find(const struct mcp_listener *listener, const char *uri)
{
    struct subscription *subscription;

    list_for_each(subscription, &listener->subscriptions, in_listener)
        if (str_eq(subscription->uri, uri))
            return subscription;
    return NULL;
}

static void subscription_free(struct subscription *subscription)
{
    list_remove(&subscription->in_listener);
    free(subscription->uri);
    free(subscription);
}

static bool is_subscribed(const struct mcp_news *news, int64_t number)
{
    const struct mcp_listener *listener;
    const struct subscription *subscription;

    list_for_each(listener, &news->listeners, in_news)
        list_for_each(subscription, &listener->subscriptions, in_listener)
            if (subscription->number == number)
                return true;
    return false;
}

static void tell_updated(const struct mcp_news *news, int64_t number)
{
    const struct mcp_listener *listener;
    const struct subscription *subscription;

    list_for_each(listener, &news->listeners, in_news)
        list_for_each(subscription, &listener->subscriptions, in_listener)
            if (subscription->number == number)
                listener->tell(listener->data, "notifications/resources/updated",
                               json_pack("{s:s}", "uri", subscription->uri));
}

static void tell_list(const struct mcp_news *news)
{
    const struct mcp_listener *listener;

    list_for_each(listener, &news->listeners, in_news)
        if (listener->hears_list)
            listener->tell(listener->data, "notifications/resources/list_changed", NULL);
    tell_updated(news, MCP_NEWS_OF_LIST);
}

/* --- watches --- */

/* A session that is known to run. */
struct watch {
    struct list in_news;
    struct mcp_news *news;
    int64_t number;
    int64_t end_call; /* the request that its end answers */
    char *alias;      /* of process/attach, while somebody subscribed to it; NULL: nobody has */
    bool is_listed;   /* list_changed was told */
};

static struct watch *watch_find(const struct mcp_news *news, int64_t number)
{
    struct watch *watch;

    list_for_each(watch, &news->watches, in_news)
        if (watch->number == number)
            return watch;
    return NULL;
}

static void watch_free(struct watch *watch)
{
    mcp_engine_forget(watch->news->session->engine, watch->end_call);
    list_remove(&watch->in_news);
    free(watch->alias);
    free(watch);
}

static json_t *process_id(int64_t number)
{
    return json_sprintf("session:%" PRId64, number);
}

static void on_end(void *data, const struct rpc_message *answer)
{
    struct watch *watch = data;
    struct mcp_news *news = watch->news;
    int64_t number = watch->number;

    watch_free(watch);
    if (!answer)
        return;
    tell_list(news);
    tell_updated(news, number);
}

static struct watch *watch_get(struct mcp_news *news, int64_t number)
{
    struct watch *watch = watch_find(news, number);

    if (watch)
        return watch;
    watch = alloc_zero(1, sizeof *watch);
    *watch = (struct watch){.news = news, .number = number};
    list_append(&news->watches, &watch->in_news);
    watch->end_call =
        mcp_engine_call(news->session->engine, "process/wait",
                        json_pack("{s:o}", "processId", process_id(number)), on_end, watch);
    return watch;
}

void mcp_news_began(struct mcp_news *news, int64_t number)
{
    struct watch *watch = watch_get(news, number);

    if (watch->is_listed)
        return;
    watch->is_listed = true;
    tell_list(news);
}

void mcp_news_changed(struct mcp_news *news)
{
    tell_list(news);
    tell_updated(news, MCP_NEWS_OF_LAYER);
}

static void on_event(void *data, const char *method, const json_t *params)
{
    const struct mcp_news *news = data;
    const char *alias = json_string_value(json_object_get(params, "processId"));
    const struct watch *watch;

    if (!alias || !str_eq(method, "process/grown"))
        return;
    list_for_each(watch, &news->watches, in_news)
        if (watch->alias && str_eq(alias, watch->alias))
            tell_updated(news, watch->number);
}

/* --- subscriptions --- */

struct mcp_listener *mcp_news_own(struct mcp_news *news)
{
    return &news->own;
}

bool mcp_listener_is_full(const struct mcp_listener *listener)
{
    const struct subscription *subscription;
    size_t len = 0;

    list_for_each(subscription, &listener->subscriptions, in_listener)
        len++;
    return len >= SUBSCRIPTIONS_MAX;
}

static void attach(struct mcp_news *news, int64_t number, const char *alias)
{
    struct watch *watch = watch_get(news, number);

    free(watch->alias);
    watch->alias = alloc_str(alias);
    if (!list_is_linked(&news->events.in_engine))
        mcp_engine_listen(news->session->engine, &news->events);
}

void mcp_news_subscribe(struct mcp_news *news, struct mcp_listener *listener, const char *uri,
                        int64_t number, const char *alias)
{
    struct subscription *subscription = subscription_find(listener, uri);

    if (alias)
        attach(news, number, alias);
    if (subscription)
        return;
    subscription = alloc_zero(1, sizeof *subscription);
    *subscription = (struct subscription){.uri = alloc_str(uri), .number = number};
    list_append(&listener->subscriptions, &subscription->in_listener);
}

/* Nobody wants to hear of its output any more. */
static void detach(struct mcp_news *news, int64_t number)
{
    struct watch *watch = watch_find(news, number);

    if (!watch || !watch->alias || is_subscribed(news, number))
        return;
    mcp_engine_call(news->session->engine, "process/detach",
                    json_pack("{s:s}", "alias", watch->alias), NULL, NULL);
    free(TAKE_PTR(watch->alias));
}

void mcp_news_unsubscribe(struct mcp_news *news, struct mcp_listener *listener, const char *uri)
{
    struct subscription *subscription = subscription_find(listener, uri);
    int64_t number = subscription ? subscription->number : MCP_NEWS_OF_NOTHING;

    if (!subscription)
        return;
    subscription_free(subscription);
    detach(news, number);
}

void mcp_news_attach(struct mcp_news *news, int64_t number, const char *alias)
{
    attach(news, number, alias);
    detach(news, number); /* who asked is gone */
}

/* --- life --- */

/* Not to clients of versions without sessions, which hear only what they listen to. Who reads nothing for long has
 * heard of enough. */
static void own_tell(void *data, const char *method, json_t *params)
{
    struct mcp_session *session = data;

    if (session->is_initialized && mcp_session_has_room(session, NULL))
        mcp_session_notify(session, method, params);
    else
        json_decref(params);
}

struct mcp_news *mcp_news_new(struct mcp_session *session)
{
    struct mcp_news *news = alloc_zero(1, sizeof *news);

    *news = (struct mcp_news){
        .session = session,
        .events = {.on_event = on_event, .data = news},
        .own = {.hears_list = true, .tell = own_tell, .data = session},
    };
    list_append(&news->listeners, &news->own.in_news);
    return news;
}

static void listener_done(struct mcp_listener *listener)
{
    while (!list_is_empty(&listener->subscriptions))
        subscription_free(list_first(&listener->subscriptions, struct subscription, in_listener));
    list_remove(&listener->in_news);
}

void mcp_news_listen(struct mcp_news *news, struct mcp_listener *listener)
{
    list_append(&news->listeners, &listener->in_news);
}

void mcp_news_leave(struct mcp_news *news, struct mcp_listener *listener)
{
    list_remove(&listener->in_news);
    while (!list_is_empty(&listener->subscriptions)) {
        struct subscription *subscription =
            list_first(&listener->subscriptions, struct subscription, in_listener);
        int64_t number = subscription->number;

        subscription_free(subscription);
        detach(news, number);
    }
}

void mcp_news_free(struct mcp_news *news)
{
    if (!news)
        return;
    listener_done(&news->own);
    list_remove(&news->events.in_engine);
    while (!list_is_empty(&news->watches))
        watch_free(list_first(&news->watches, struct watch, in_news));
    free(news);
}
