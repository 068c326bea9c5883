/* A permission profile as a value: what a command may do, in the user's words. Nothing in here
 * looks at the host; policy/resolve.h turns a profile into literal paths.
 *
 *     profile_init_*() or profile_from_json() or config_profile()         make one
 *     profile_entries_add(), profile_add_text(), profile_overlay_apply()  change it
 *     profile_resolve()                                                   what it means here
 *     profile_done()
 *
 * A zeroed struct is a valid profile: managed, restricted, no entries (everything denied), network
 * restricted. The words and shapes are those of Codex (docs/compatibility.md). */
#pragma once

#include "base/err.h"
#include "policy/access.h"
#include "policy/limit.h"

#include <stdbool.h>
#include <stddef.h>

enum profile_kind {
    PROFILE_MANAGED,  /* Cordon builds the sandbox */
    PROFILE_DISABLED, /* no sandbox, network open; files and network below do not matter */
    PROFILE_EXTERNAL, /* the host isolates the files by other means; only the network is ours */
};

enum profile_files {
    PROFILE_FILES_RESTRICTED,   /* the entries decide, everything else is denied */
    PROFILE_FILES_UNRESTRICTED, /* the whole disk may be written; there are no entries */
};

enum profile_path_kind {
    PROFILE_PATH_LITERAL,       /* `path`: absolute */
    PROFILE_PATH_GLOB,          /* `path`: pattern (policy/glob.h), deny only; a relative one counts
                                   from every workspace root */
    PROFILE_PATH_ROOT,          /* "/" */
    PROFILE_PATH_MINIMAL,       /* what programs need to start: /usr, /bin, /lib, ... */
    PROFILE_PATH_PROJECT_ROOTS, /* every workspace root, or `subpath` below each */
    PROFILE_PATH_TMPDIR,        /* $TMPDIR, when set */
    PROFILE_PATH_SLASH_TMP,     /* /tmp */
    PROFILE_PATH_GPU,           /* the device nodes of graphics cards that are there */
    PROFILE_PATH_UNKNOWN,       /* a special path of a newer program: `path` names it; kept, and
                                   ignored when the profile is resolved */
};

enum profile_missing {
    PROFILE_MISSING_DEFAULT, /* a missing path is still protected or denied */
    PROFILE_MISSING_SKIP,    /* no entry when nothing is there */
};

/* What becomes of what the sandbox refuses. */
enum profile_watch {
    PROFILE_WATCH_FACTS, /* everything is told, by the guard */
    PROFILE_WATCH_OFF,   /* what the output of a command that failed says is told */
    PROFILE_WATCH_ASK,   /* told, and held while somebody is asked, where somebody can be */
    PROFILE_WATCH_LEARN, /* told, and a timeline has what is read, too */
};

/* What a command has at /tmp and /var/tmp, unless an entry is about just that path. */
enum profile_tmp {
    PROFILE_TMP_HOST,    /* what the entries say of the host's */
    PROFILE_TMP_PRIVATE, /* folders of its workspace, which it may write */
};

/* What a command may do with the repository that its workspace is, or lies in. */
enum profile_git {
    PROFILE_GIT_READ, /* read it */
    PROFILE_GIT_COMMIT, /* and write what git writes, but not what git runs or is led by; or make one */
};

/* What rules and command classes are asked about. */
enum profile_judge {
    PROFILE_JUDGE_COMMAND,    /* the command as it is given */
    PROFILE_JUDGE_EVERY_EXEC, /* and each program that it executes */
};

struct profile_entry {
    enum profile_path_kind path_kind;
    enum access access;
    enum profile_missing missing;
    bool asks;           /* deny, but not of a glob: reading may be asked about */
    bool is_of_host_tmp; /* it counts with PROFILE_TMP_HOST only */
    char *path;          /* literal, glob, unknown; else NULL */
    char *subpath; /* project roots, unknown; NULL for none; relative, no "." or ".." component */
    char *origin;  /* who wrote it, for people: "config.toml:12", "--deny", "built-in read-only" */
};

struct profile_entries {
    struct profile_entry *items; /* owned, with all strings */
    size_t len;
    size_t cap;
};

struct profile {
    enum profile_kind kind;
    enum profile_files files;
    struct profile_entries entries;
    struct network_policy network_policy; /* counts with NETWORK_PROXIED */
    struct profile_entries unix_sockets; /* literal: to be connected to from a restricted network */
    unsigned glob_scan_max_depth;        /* levels below a glob's fixed part; 0: no limit */
    enum network_access network;
    enum profile_watch watch;
    enum profile_judge judge;
    enum profile_tmp tmp;
    enum profile_git git;
    bool allow_nested_namespaces; /* the command may make namespaces of its own */
    struct resource_limits limits;
    char *id;      /* name it was asked for by, NULL when it has none */
    char *extends; /* name of its parent, NULL when it has none */
};

extern const char *const profile_git_words[];   /* "read", "commit"; NULL-terminated */
extern const char *const profile_judge_words[]; /* "command", "every-exec"; NULL-terminated */
/* "facts", "off", "ask", "learn"; NULL-terminated */
extern const char *const profile_watch_words[];
extern const char *const profile_tmp_words[]; /* "host", "private"; NULL-terminated */

/* Adds a copy of `entry`; an origin of NULL becomes "permission profile". */
void profile_entries_add(struct profile_entries *entries, const struct profile_entry *entry);

void profile_done(struct profile *profile);
void profile_copy(const struct profile *profile, struct profile *ret);

/* The built-in profiles. `ret` is overwritten. */
enum profile_exclude { PROFILE_EXCLUDE_TMPDIR = 1, PROFILE_EXCLUDE_SLASH_TMP = 2 };

struct profile_workspace {
    enum network_access network;
    unsigned exclude;         /* of enum profile_exclude */
    char *const *extra_roots; /* absolute, writable; NULL-terminated; NULL for none */
    const char *origin;       /* NULL: "built-in workspace-write" */
};
void profile_init_read_only(struct profile *ret, enum network_access network);
void profile_init_workspace_write(struct profile *ret, const struct profile_workspace *options);
void profile_init_danger_full_access(struct profile *ret);

/* ":read-only", ":workspace", ":danger-full-access", and the sandbox modes "read-only",
 * "workspace-write", "danger-full-access", with private temporary folders. false for any other
 * name; `ret` is untouched then. */
bool profile_init_builtin(struct profile *ret, const char *name);

/* The one name by which a built-in profile is told of, whichever of its two it was asked for by: that of the
 * sandbox mode. NULL for any other name; static. */
const char *profile_builtin_name(const char *name);

/* Origins do not count. */
bool profile_entry_equal(const struct profile_entry *a, const struct profile_entry *b);

/* --- entries as people write them --- */

/* One entry from the text that a person writes, on the command line or as a key in config.toml:
 * ":root", ":minimal", ":workspace_roots" (also ":project_roots", also with "/SUBPATH"), ":tmpdir",
 * ":slash_tmp", ":gpu", an absolute path, "~/path" (needs `home`), a path relative to `base`, or a glob
 * (policy/glob.h). Globs only deny; with another access only "DIR/" and two stars is allowed, and
 * means DIR. ERR_INVALID for anything else. */
enum profile_unknown {
    PROFILE_UNKNOWN_REFUSE, /* any other ":token" is an error */
    PROFILE_UNKNOWN_KEEP,   /* it becomes an entry of kind unknown */
};

struct profile_text {
    const char *text;
    enum access access;
    bool asks; /* as in an entry */
    enum profile_unknown unknown;
    const char *origin;
    const char *home; /* NULL: "~/" is an error */
    const char *base; /* absolute; NULL: a relative path is an error */
};
int profile_add_text(struct profile *profile, const struct profile_text *options, struct err *err);

/* A Unix socket that may be connected to: an absolute path, "~/path", or one relative to `base`.
 * The access does not matter. */
int profile_add_socket(struct profile *profile, const struct profile_text *options,
                       struct err *err);

/* ":root", ":workspace_roots" and so on: one of the names above. */
bool profile_text_is_special(const char *name);

/* Relative, not empty, no empty, "." or ".." component. */
bool profile_subpath_is_valid(const char *subpath);

/* --- additional permissions for one command, laid over a profile --- */

enum overlay_network { OVERLAY_NETWORK_UNSET, OVERLAY_NETWORK_ENABLED, OVERLAY_NETWORK_DISABLED };

/* A zeroed one asks for nothing. */
struct profile_overlay {
    enum overlay_network network;
    struct profile_entries entries;
    unsigned glob_scan_max_depth; /* 0: not given */
};

void profile_overlay_done(struct profile_overlay *overlay);
bool profile_overlay_is_empty(const struct profile_overlay *overlay);

/* Cleans literal paths lexically (symlinks stay), drops repeated entries; a glob with an access
 * other than deny is ERR_INVALID. */
int profile_overlay_normalise(struct profile_overlay *overlay, struct err *err);

/* Both: network enabled if either enables it, entries united, the larger scan depth. */
void profile_overlay_merge(const struct profile_overlay *a, const struct profile_overlay *b,
                           struct profile_overlay *ret);

/* The effect on a profile: entries appended to a restricted one, and a restricted network enabled
 * when the overlay enables it. An overlay never narrows, and never lifts the managed proxy. */
void profile_overlay_apply(struct profile *profile, const struct profile_overlay *overlay);
