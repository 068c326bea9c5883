/* What of a client's resources has changed, for whoever subscribed (resources.h has what they are).
 *
 * A listener is who hears of it: in versions with initialize the session is one, later ones have one for each
 * subscriptions/listen. */
#pragma once

#include "base/list.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct mcp_news;
struct mcp_session;

struct mcp_news *mcp_news_new(struct mcp_session *session);
void mcp_news_free(struct mcp_news *news); /* before the engine of the session */

/* A tool has answered with the number of a session. */
void mcp_news_began(struct mcp_news *news, int64_t number);

/* The change layer has others changes than before: its resources come and go. */
void mcp_news_changed(struct mcp_news *news);

/* In place of a session's number. */
enum {
    MCP_NEWS_OF_LIST = 0,     /* the sessions that there are */
    MCP_NEWS_OF_NOTHING = -1, /* what does not change */
    MCP_NEWS_OF_LAYER = -2,   /* what is in the change layer */
};

struct mcp_listener {
    struct list in_news;
    struct list subscriptions;
    bool hears_list; /* of resources that come and go */
    /* notifications/resources/updated or .../list_changed. Takes `params`, which may be NULL. */
    void (*tell)(void *data, const char *method, json_t *params);
    void *data;
};

/* The session itself. */
struct mcp_listener *mcp_news_own(struct mcp_news *news);

/* One of the caller's, with `tell`, `data` and `hears_list`; and it goes, with what it has subscribed to. */
void mcp_news_listen(struct mcp_news *news, struct mcp_listener *listener);
void mcp_news_leave(struct mcp_news *news, struct mcp_listener *listener);

bool mcp_listener_is_full(const struct mcp_listener *listener);

/* `alias`: of process/attach without output, which was answered for this session; NULL: it has none, or has ended. */
void mcp_news_subscribe(struct mcp_news *news, struct mcp_listener *listener, const char *uri,
                        int64_t number, const char *alias);
void mcp_news_unsubscribe(struct mcp_news *news, struct mcp_listener *listener, const char *uri);

/* The answer to process/attach came later than mcp_news_subscribe(). */
void mcp_news_attach(struct mcp_news *news, int64_t number, const char *alias);
