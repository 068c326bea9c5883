/* A port of a command that the host's network gets to see: [ADDR:]HOSTPORT:PORT, as people write it. Pure. */
#pragma once

#include "base/err.h"
#include "policy/host.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_at;
struct strv;

struct publication {
    struct net_address address; /* of the host, where it listens */
    uint16_t host_port;         /* 0: any that is free */
    uint16_t port;              /* of the command's own localhost */
};

enum { PUBLICATIONS_MAX = 16 };

/* Zeroed, there is none. */
struct publications {
    struct publication items[PUBLICATIONS_MAX];
    size_t len;
};

/* Without ADDR it is 127.0.0.1, which nobody but this machine reaches. */
int publication_parse(const char *text, struct publication *ret, struct err *err);

/* "127.0.0.1:8080:3000", with brackets around an IPv6 address. Caller frees. */
char *publication_format(const struct publication *publication);

/* The same again changes nothing. */
int publications_add(struct publications *list, const struct publication *publication,
                     struct err *err);
int publications_merge(struct publications *list, const struct publications *from, struct err *err);
bool publications_equal(const struct publications *a, const struct publications *b);

/* Each as publication_format() has it. */
void publications_format(const struct publications *list, struct strv *ret);

/* An array of texts; one that is missing has none. */
int publications_read(const struct json_at *at, struct publications *ret, struct err *err);
json_t *publications_to_json(const struct publications *list); /* a new reference */
