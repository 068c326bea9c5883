/* What was learnt as a [permissions.NAME] table, and its place in the user's config file. */
#pragma once

#include "base/err.h"
#include "cli/learn_needs.h"

#include <stdbool.h>

struct buf;

struct learn_profile {
    const char *name;
    const char *base;      /* of `extends` */
    const char *home;      /* canonical, for "~/"; NULL: not known */
    char *const *presets;  /* for tools, that it was run with */
    const char *tmp;       /* "host", "private": as an option has it; NULL: none does */
    char *const *specials; /* ":gpu": special paths that options opened */
    char *const *argv;     /* what was run */
    int status;            /* how it ended */
    bool is_enabled;       /* the network was, and the base's is not */
    const struct network_policy *asked; /* what options say of hosts */
    const char *git; /* "read", "commit": as an option has it, or as it was needed; NULL: none */
    const struct learn_needs *needs;
};

/* Before the run: whether learn_profile_write() would find room for a table of this name. ERR_INVALID for what is no
 * word, for the name of a built-in profile, and for one that is taken. */
int learn_profile_check(const char *name, const char *path, bool replaces, struct err *err);

/* The presets for tools (`cordon presets`) that would give commands a cache of their own in place of what the
 * profile opens, and the tools outside believe. */
void learn_profile_presets(const struct learn_profile *profile, struct strv *ret);

/* The table, with what needed each entry, and what no entry opens, as comments. No text of the command's can
 * be anything else in it. */
void learn_profile_print(const struct learn_profile *profile, struct buf *ret);

/* Puts the table behind what the config file at `path` has; the file is made if it is not there. A table of that name is
 * ERR_INVALID, but with `replaces` one that came from here is taken away. Nothing is changed unless
 * the new text is right. */
int learn_profile_write(const struct learn_profile *profile, const char *path, bool replaces,
                        struct err *err);
