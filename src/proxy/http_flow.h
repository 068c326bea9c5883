/* Plain HTTP to a server that a client has connected to by itself: every request is read, since each names the host that it
 * is for. */
#pragma once

#include "proxy/relay.h"

struct connection;
struct http_flow;

struct http_flow *http_flow_new(struct connection *connection);
void http_flow_free(struct http_flow *flow);

/* The filter of such a connection, upwards. */
relay_filter_fn http_flow_requests;
