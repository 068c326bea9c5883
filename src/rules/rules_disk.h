/* Where rules lie on the disk: reading layers, and appending to a file. */
#pragma once

#include "base/err.h"
#include "rules/file/rule.h"

struct buf;
struct rules;
struct rules_origin;

#define RULES_ADMINISTRATOR "/etc/cordon" /* of the whole host */
#define RULES_DIR "rules"                 /* in the directory of a layer */
#define RULES_DEFAULT "default.rules"     /* in there: what is appended to */

/* Directories that hold a directory "rules"; all absolute, NULL: there is no such layer. */
struct rules_dirs {
    const char *user;
    const char *project; /* only of a project that the user trusts: its ".cordon" and ".codex" count
                          */
    const char *administrator;
    const char *home; /* for "~/" in files; NULL when not known */
};

/* What is called for every file of the layers, in the order of precedence and of paths: regular
 * files whose name ends in ".rules". A directory that cannot be listed comes as `origin->file` with
 * the reason in `failure`, which is NULL otherwise; a missing one is fine. */
struct rules_visitor {
    void (*visit)(void *data, const struct rules_origin *origin, const struct err *failure);
    void *data;
};
void rules_visit(const struct rules_dirs *places, const struct rules_visitor *visitor);

/* The text of one file; at most RULES_SIZE_MAX bytes. */
int rules_read(const char *path, struct buf *ret, struct err *err);

/* Adds all files of the layers. What cannot be read or parsed is a problem of `rules`. */
void rules_load_layers(struct rules *rules, const struct rules_dirs *places);

/* One file, which has to be there. A failure is a problem of `rules`, too. */
int rules_load_file(struct rules *rules, const char *path, const char *home, struct err *err);

/* --- changing --- */

/* `prefix_rule(pattern=["git", "push"], decision="prompt")` for the words (NULL-terminated, at
 * least one), as Codex writes it; for RULE_KEEP with sandbox="keep". `justification` may be NULL.
 * Caller frees. ERR_INVALID for a word that is not UTF-8. */
char *rule_line_for_prefix(char *const *words, enum rule_verdict verdict, const char *justification,
                           struct err *err);

/* The same for a host. ERR_INVALID for what is no host. */
char *rule_line_for_host(const char *host, enum rule_protocol protocol, enum rule_verdict verdict,
                         const char *justification, struct err *err);

enum rules_append { RULES_APPENDED, RULES_THERE_ALREADY };

/* Appends the line, unless the file has the same one; the directory of `path` is made when only that
 * is missing. Others that append at the same time wait; a reader sees the old file or the new
 * one. Nothing is changed when the file does not parse, before or after. */
int rules_append(const char *path, const char *home, const char *line, enum rules_append *ret,
                 struct err *err);

/* The same for a line that somebody has said yes to; every directory that is missing is made. */
int rules_append_made(const char *path, const char *home, const char *line, struct err *err);

/* Takes a line away again: the one of this number (from 1), which has to be just this text. Everything
 * else of the file stays as it is. As above with others, and when the file does not parse. */
int rules_delete(const char *path, const char *home, unsigned number, const char *line,
                 struct err *err);
