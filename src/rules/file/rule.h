/* Rules as values: which commands or hosts one is about, what it says, and where it stands. */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

struct shell_command;

/* In order of precedence, which only host_executable knows: for verdicts the strictest counts. */
enum rule_layer {
    RULE_LAYER_USER,
    RULE_LAYER_PROJECT,
    RULE_LAYER_ADMINISTRATOR,
    RULE_LAYER_OPTION, /* named by the caller: --rules */
};

/* Mildest first, so that the strictest of several is the largest. */
enum rule_verdict {
    RULE_NONE,      /* no rule says anything */
    RULE_BYPASS,    /* allow, and without a sandbox: decision "allow" as Codex means it */
    RULE_KEEP,      /* allow, in the sandbox: decision "allow" with sandbox = "keep" */
    RULE_PROMPT,    /* ask first */
    RULE_FORBIDDEN, /* never */
};

const char *rule_decision_name(enum rule_verdict verdict); /* "allow", "prompt", "forbidden" */
const char *rule_sandbox_name(enum rule_verdict verdict);  /* "bypass", "keep"; else NULL */
const char *rule_layer_name(enum rule_layer layer);        /* "user", "project", ... */

/* Who is to be asked: "user" or "auto_review". */
enum rule_reviewer { RULE_REVIEWER_USER, RULE_REVIEWER_AUTOMATIC };

struct rule_place {
    unsigned line;   /* from 1 */
    unsigned column; /* in characters, from 1 */
};

/* --- commands --- */

struct prefix_rule {
    struct strv *words; /* per position of the pattern, the words that fit */
    size_t len;         /* at least 1 */
    enum rule_verdict verdict;
    enum rule_reviewer reviewer;
    char *justification; /* NULL: none */
    enum rule_layer layer;
    const char *file; /* lives as long as the rules do */
    struct rule_place place;
};

void prefix_rule_done(struct prefix_rule *rule);

enum prefix_fit {
    PREFIX_OTHER,
    PREFIX_MAYBE, /* the pattern reaches into words that are not known (shell_command.exact) */
    PREFIX_FITS,
};

/* The command is at least as long as the pattern and fits word by word, exactly. `first` replaces
 * its first word. */
enum prefix_fit prefix_rule_fit(const struct prefix_rule *rule, const char *first,
                                const struct shell_command *command);

/* The pattern for people: "git push|pull". Caller frees. */
char *prefix_rule_text(const struct prefix_rule *rule);

/* --- hosts --- */

enum rule_protocol {
    RULE_PROTOCOL_HTTP,
    RULE_PROTOCOL_HTTPS,
    RULE_PROTOCOL_SOCKS5_TCP,
    RULE_PROTOCOL_SOCKS5_UDP,
};

/* What a word of a rule stands for. */
struct rule_word {
    const char *text;
    int value;
};

/* Their names, ended by one without text: "http"; "https", "https_connect", "http-connect";
 * "socks5_tcp"; "socks5_udp". */
extern const struct rule_word rule_protocols[];

bool rule_protocol_parse(const char *word, enum rule_protocol *ret);
const char *rule_protocol_name(enum rule_protocol protocol);

struct host_rule {
    char *host; /* as host_rule_host() gives it */
    enum rule_protocol protocol;
    enum rule_verdict verdict; /* RULE_KEEP is "allow": a rule about a host leaves no sandbox */
    char *justification;       /* NULL: none */
    enum rule_layer layer;
    const char *file; /* lives as long as the rules do */
    struct rule_place place;
};

void host_rule_done(struct host_rule *rule);

/* The form in which hosts are compared: no blanks around, lower case, no dot at the end, no port,
 * no brackets. Caller frees. ERR_INVALID for what names no single host. */
char *host_rule_host(const char *text, struct err *err);

/* --- which programs a name may mean --- */

/* host_executable: where a program of that name lies. */
struct host_program {
    char *name;
    struct strv paths; /* absolute, clean */
    enum rule_layer layer;
};

void host_program_done(struct host_program *program);

enum host_program_match {
    HOST_PROGRAM_UNKNOWN, /* no entry has the name */
    HOST_PROGRAM_LISTED,
    HOST_PROGRAM_OTHER,
};

/* Whether `path` is what its base name may mean. Where several entries know the name, all of them
 * have to list it. */
enum host_program_match host_program_find(const struct host_program *programs, size_t len,
                                          const char *path);
