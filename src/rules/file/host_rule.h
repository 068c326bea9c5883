/* Rules about hosts, and which programs a name may mean. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "rules/file/prefix_rule.h"

#include <stdbool.h>
#include <stddef.h>

/* Wire names: http; https, https_connect, http-connect; socks5_tcp; socks5_udp. Source:
 * spec/exec-core.md 7.2, spec/network-proxy.md. */
enum rule_protocol {
    RULE_PROTOCOL_HTTP,
    RULE_PROTOCOL_HTTPS,
    RULE_PROTOCOL_SOCKS5_TCP,
    RULE_PROTOCOL_SOCKS5_UDP,
};

bool rule_protocol_parse(const char *word, enum rule_protocol *ret);
const char *rule_protocol_name(enum rule_protocol protocol);

struct host_rule {
    char *host; /* as host_rule_host() gives it */
    enum rule_protocol protocol;
    enum rule_verdict verdict; /* RULE_KEEP is "allow": there is no sandbox to speak of */
    char *justification;       /* NULL: none */
    enum rule_layer layer;
    const char *file; /* lives as long as the rules do */
    struct rule_place place;
};

void host_rule_done(struct host_rule *rule);

/* The form in which hosts are compared: no blanks around, lower case, no dot at the end, no port,
 * no brackets. Caller frees. ERR_INVALID for what names no single host. */
char *host_rule_host(const char *text, struct err *err);

/* host_executable: where a program of that name lies. */
struct host_program {
    char *name;
    struct strv paths; /* absolute, clean */
    enum rule_layer layer;
};

void host_program_done(struct host_program *program);

enum host_program_match {
    HOST_PROGRAM_UNKNOWN, /* nobody says anything about the name */
    HOST_PROGRAM_LISTED,
    HOST_PROGRAM_OTHER,
};

/* Whether `path` is what its base name may mean. Where several entries know the name, all of them
 * have to list it. */
enum host_program_match host_program_find(const struct host_program *programs, size_t len,
                                          const char *path);
