/* A preset: what one tool needs to work in a sandbox, as a TOML file (docs/presets.md). Pure: which
 * files there are, and what they come to on this host, is workspace/presets.h.
 *
 *     preset_parse()     text -> struct preset; every mistake is an error, with file, line and the
 *                        nearest key
 *     preset_expand()    one of its variables, with what stands for {cache}, {home} and {env.NAME}
 *     preset_done() */
#pragma once

#include "base/err.h"
#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

enum { PRESET_SIZE_MAX = 64 * 1024 }; /* bytes of text */

/* A directory of the tool outside of the sandbox, which commands may read where it is there. */
struct preset_outside {
    char *path;      /* below the home directory, relative: ".gradle/caches" */
    struct strv env; /* is set when the directory is there, in place of the same in `env` */
};

/* Variables are "NAME=TEXT", with the text as it was written. */
struct preset {
    char *about;        /* one line */
    char *why;          /* what is opened, what is not, and why; NULL: nothing is said */
    bool per_workspace; /* its directory is that of one workspace, not shared by all */
    struct strv hosts;  /* names of the servers that the tool asks by default, as patterns */
    struct strv
        hosts_from; /* "PATH KEY": lines "KEY = URL" of a file below the home directory name more */
    struct strv write;       /* below the home directory, relative: opened as they are */
    struct strv env;         /* for every command */
    struct strv offline_env; /* and for those without a network */
    struct preset_outside *outside;
    size_t outside_len;
    size_t outside_cap;
};

/* Lower-case letters, digits, ".", "_" and "-" in the middle: never more than the name of a file. */
bool preset_name_is_valid(const char *name);

/* ERR_INVALID; the message starts with "FILE:LINE: ". `ret` is overwritten. */
int preset_parse(const char *text, size_t len, const char *file, struct preset *ret,
                 struct err *err);
void preset_done(struct preset *preset);

/* The hosts, with their ports where they are given, of the URLs that lines "KEY = URL" of a tool's
 * configuration have, also "...:KEY = URL"; what is none is left out. */
void preset_read_hosts(const char *text, const char *key, struct strv *ret);

struct preset_places {
    const char *cache; /* the preset's own directory */
    const char *home;
    char *const *env; /* for {env.NAME}; what is not there is empty; NULL: nothing is */
};

/* One variable, with the value in the place of its text; without blanks at the ends of that, where an empty
 * {env.NAME} would leave one. Caller frees. */
char *preset_expand(const char *variable, const struct preset_places *places);
