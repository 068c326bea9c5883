/* What the parts of `cordon rules` share. */
#pragma once

#include "base/strv.h"
#include "cli/config_file.h"
#include "rules/rules_disk.h"

#include <stdbool.h>

struct buf;
struct json_t;
struct rules_check;

/* Which options were given, so that those that mean nothing are not ignored. */
enum rules_option {
    RULES_OPTION_RULES = 1 << 0,
    RULES_OPTION_JSON = 1 << 1,
    RULES_OPTION_HOST = 1 << 2,
    RULES_OPTION_PROTOCOL = 1 << 3,
    RULES_OPTION_DECISION = 1 << 4,
    RULES_OPTION_SANDBOX = 1 << 5,
    RULES_OPTION_JUSTIFICATION = 1 << 6,
};

/* Texts are borrowed from argv. */
struct rules_options {
    unsigned given; /* of enum rules_option */
    struct strv files;
    const char *host;
    const char *protocol;
    const char *decision;
    const char *sandbox;
    const char *justification;
};

/* Where the rules come from: the files of the options, or the layers. */
struct rules_source {
    const struct rules_options *options;
    struct config_file config;
    struct rules_places places;
    char *project; /* of places */
};

int rules_source_init(struct rules_source *ret, const struct rules_options *options,
                      struct err *err);
void rules_source_done(struct rules_source *source);

/* The protocol of the options, https without one. */
enum rule_protocol rules_options_protocol(const struct rules_options *options);

/* Prints and frees `json` when that was asked for, else prints the text. */
int rules_print(const struct rules_options *options, struct json_t *json, const struct buf *text);

/* What `cordon rules check` says for people. */
void rules_check_print(const struct rules_check *check, struct buf *text);

/* The subcommands; `words` is what stands behind the options. Each returns the exit status. */
int rules_check(const struct rules_options *options, char **words);
int rules_add(const struct rules_options *options, char **words);
int rules_test(const struct rules_options *options, char **words);
