/* Entries of a permission profile as people write them. */
#pragma once

#include "base/err.h"
#include "policy/profile.h"

#include <stdbool.h>

/* One entry from the text that a person writes, on the command line or as a key in config.toml:
 * ":root", ":minimal", ":workspace_roots" (also ":project_roots", also with "/SUBPATH"), ":tmpdir",
 * ":slash_tmp", an absolute path, "~/path" (needs `home`), a path relative to `base`, or a glob
 * (policy/glob.h). Globs only deny; with another access only "DIR/" and two stars is allowed, and
 * means DIR. ERR_INVALID when it is none of these. */
enum profile_unknown {
    PROFILE_UNKNOWN_REFUSE, /* any other ":token" is an error */
    PROFILE_UNKNOWN_KEEP,   /* it becomes an entry of kind unknown */
};

struct profile_text {
    const char *text;
    enum access access;
    enum profile_unknown unknown;
    const char *origin;
    const char *home; /* NULL: "~/" is an error */
    const char *base; /* absolute; NULL: a relative path is an error */
};
int profile_add_text(struct profile *profile, const struct profile_text *options, struct err *err);

/* ":root", ":workspace_roots" and so on: one of the names above. */
bool profile_text_is_special(const char *name);

/* The other way round: "/srv", ":tmpdir", ":workspace_roots/.git"; caller frees. */
char *profile_entry_text(const struct profile_entry *entry);

/* Relative, not empty, no empty, "." or ".." component. */
bool profile_subpath_is_valid(const char *subpath);
