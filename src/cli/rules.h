/* What the files of `cordon rules` share, and what `cordon explain` says of rules, too. */
#pragma once

#include "base/strv.h"
#include "cli/config_file.h"
#include "rules/rules_disk.h"

#include <stdbool.h>

struct buf;
struct json_t;
struct rules_check;

/* Texts are borrowed from argv. */
struct rules_options {
    struct strv files;
    const char *host;
    const char *protocol;
    const char *decision;
    const char *sandbox;
    const char *justification;
    bool wants_json;
};

/* Where the rules come from: the files of the options, or the layers. */
struct rules_source {
    const struct rules_options *options;
    struct config_file config;
    struct rules_dirs places;
    char *project; /* of places */
};

int rules_source_init(struct rules_source *ret, const struct rules_options *options,
                      struct err *err);
void rules_source_done(struct rules_source *source);

/* Prints and frees `json` when that was asked for, else prints the text. An exit status. */
int rules_print(const struct rules_options *options, struct json_t *json, const struct buf *text);

/* Subcommands (rules_list.c): `words` is what stands behind the options; an exit status. */
int rules_list(const struct rules_options *options, char **words);
int rules_remove(const struct rules_options *options, char **words);

/* Of a command, for people. */
void rules_check_print(const struct rules_check *check, struct buf *text);
