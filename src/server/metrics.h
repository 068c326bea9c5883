/* The page /metrics. */
#pragma once

struct buf;
struct server;

/* Appends the numbers of this server in Prometheus' text format, version 0.0.4. */
void metrics_append(const struct server *server, struct buf *body);
