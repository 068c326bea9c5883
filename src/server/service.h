/* The server as a service: signals, and what systemd offers and wants to hear (sd_notify(3),
 * sd_listen_fds(3)), spoken by hand: it is a few lines of text on a socket. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct rpc_hub;
struct rpc_listener;
struct server;
struct service;

/* TERM and INT stop the server, HUP reads its configuration again. NULL on failure. */
struct service *service_new(struct server *server, struct err *err);
void service_free(struct service *service);

/* Listens on the sockets that systemd opened, if it did. */
int service_adopt(struct service *service, struct rpc_hub *hub, struct err *err);

/* One of those is TCP. To be asked before they are taken. */
bool service_gets_ws(void);

/* The startup line on stdout: "ws://127.0.0.1:4711". Nothing for stdio, which the protocol has. */
void service_announce(const struct rpc_listener *listener);

void service_notify_ready(struct service *service);
void service_notify_stopping(struct service *service);
