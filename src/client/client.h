/* What `cordon --connect URL ...` can do, one function for each command.
 *
 * Each returns 0 with the exit status, or -1 with an error that says what to do about it. Bytes go
 * to stdout and stderr, and come from stdin; everything else is said through `console`. */
#pragma once

#include "base/err.h"
#include "client/connection.h"
#include "process/resource_limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json_t;

/* How the client speaks to a person: given by the layer above, which owns the terminal. */
struct client_console {
    /* One line on stderr. */
    void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

    /* One JSON value on stdout; an exit status. */
    int (*print_json)(const struct json_t *json);

    /* Whether the terminal is raw from here on, so that lines bring their own carriage return. */
    void (*set_raw)(bool is_raw);
};

enum { CLIENT_NO = 1 }; /* exit status: there was nothing to do it to */

struct client {
    struct connection_options server;
    const struct client_console *console;
};

enum client_stdin { CLIENT_STDIN_PIPE, CLIENT_STDIN_NULL };

enum client_run_flags {
    CLIENT_RUN_TTY = 1,
    CLIENT_RUN_DETACHED = 2, /* prints the id, and leaves it to itself */
    CLIENT_RUN_QUIET = 4,    /* says nothing about the sandbox */
};

/* What the executor of a Cordon does with a command, as `cordon run` does: with it the command is an exec/run
 * at the server, which no other client sees, and without it a process/start. */
struct client_execution {
    const char *approval; /* policy word; NULL: as the server's configuration says */
    bool yes_means_unsandboxed;
    uint64_t timeout_ns; /* 0: none */
    uint64_t kill_after_ns;
    uint64_t max_output;
    struct resource_limits limits;
    unsigned topics;      /* of enum timeline_topic */
    const char *trace_to; /* a file of ours; NULL: its lines are said */
    bool reports_later;
    bool is_json; /* shows nothing; prints the document at the end */
};

struct client_run {
    char *const *argv;
    char *const *env;         /* NAME=VALUE or NAME, which is ours; NULL-terminated; may be NULL */
    const char *inherit;      /* "all", "core", "none"; NULL: all, or what the configuration says */
    char *const *env_include; /* these two may be NULL */
    char *const *env_exclude;
    const char *cwd;     /* at the server; NULL: its own directory */
    const char *profile; /* of the server's user; NULL: as the server's configuration says */
    const char *network; /* "restricted", ...; NULL: as the profile says, as are the next */
    const char *watch;
    const char *judge;
    const char *tmp;
    const char *git;
    const char *mode;  /* "require", "disabled"; NULL: auto */
    bool has_protect;  /* `protect` counts; otherwise it is as the configuration says */
    char *const *deny; /* these may be NULL */
    char *const *readable;
    char *const *writable;
    char *const *sockets;
    char *const *presets;
    char *const *protect;
    const struct network_policy *hosts;
    enum client_stdin input;
    unsigned flags;
    const struct client_execution *execution; /* NULL: nothing of it is wanted */
    const char *hook; /* a program of ours that is asked first; absolute; NULL: none */
    char *const *hook_env;
    uint64_t approval_timeout_ns; /* 0: none */
};

/* The status is the command's. */
int client_run(const struct client *client, const struct client_run *options, int *ret_status,
               struct err *err);

enum client_format { CLIENT_TEXT, CLIENT_JSON };
int client_ps(const struct client *client, enum client_format format, int *ret_status,
              struct err *err);

/* The table that it prints: `processes` is the array of process/list, `now_ns` the wall clock. One
 * line each behind a line of headings; session ids are as short as they can be. Pure. */
void ps_table(const json_t *processes, uint64_t now_ns, struct buf *ret);

/* A place in the output of a process. */
enum client_position_kind { CLIENT_POSITION_BYTE, CLIENT_POSITION_LAST, CLIENT_POSITION_END };
struct client_position {
    enum client_position_kind kind;
    uint64_t bytes; /* from the start, or before the end */
};
int client_position_parse(const char *text, struct client_position *ret, struct err *err);

/* The key, or short sequence of keys, that leaves a terminal without ending what runs in it. */
enum { DETACH_KEY_MAX = 8 }; /* keys in a sequence */

struct detach_key {
    char keys[DETACH_KEY_MAX];
    size_t len;  /* 0: there is none */
    size_t held; /* of them were pressed, and not passed on */
};

/* "ctrl-\", "ctrl-p,ctrl-q", "~,.", "none": keys with commas between, each one character or "ctrl-"
 * and one of a to z, [ \ ] ^ _. */
int detach_key_parse(const char *text, struct detach_key *ret, struct err *err);

/* Looks at what was typed. `ret` gets the bytes to pass on, at most len + DETACH_KEY_MAX of them;
 * returns whether the key was pressed: nothing behind it is passed on then. */
bool detach_key_filter(struct detach_key *key, const char *typed, size_t len, char *ret,
                       size_t *ret_len);

enum client_attach_mode { CLIENT_ATTACH_WRITE, CLIENT_ATTACH_READ_ONLY };
struct client_attach {
    const char *id;
    struct client_position from;
    enum client_attach_mode mode;
    struct detach_key *key;
    const char *key_text; /* for people */
};

/* The status is the command's when it ends, and 0 after the detach key. */
int client_attach(const struct client *client, const struct client_attach *options, int *ret_status,
                  struct err *err);

enum client_logs_mode { CLIENT_LOGS_SO_FAR, CLIENT_LOGS_FOLLOW };
struct client_logs {
    const char *id;
    struct client_position from;
    enum client_logs_mode mode;
};
int client_logs(const struct client *client, const struct client_logs *options, int *ret_status,
                struct err *err);

struct client_kill {
    const char *id;
    const char *signal; /* "TERM", "SIGTERM", "15", ...; NULL: TERM */
    uint64_t grace_ns;  /* TERM: until KILL follows */
};

/* CLIENT_NO when it had ended already. */
int client_kill(const struct client *client, const struct client_kill *options, int *ret_status,
                struct err *err);

/* Opens a port of it at the server: [ADDR:]HOSTPORT:PORT. */
int client_publish(const struct client *client, const char *id, const char *publication,
                   int *ret_status, struct err *err);

/* One of the two is "remote:PATH"; the other may be "-". */
int client_cp(const struct client *client, const char *from, const char *to, int *ret_status,
              struct err *err);
