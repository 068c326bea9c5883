/* Presets for tools on this host: where their files are, and what they add to a workspace.
 *
 * A file is NAME.toml in the folder "presets" of the config directory, or the one that comes with
 * Cordon. Nowhere else: a workspace has none. What a preset has commands keep lies in a directory of
 * Cordon's, CACHE_DIR/NAME below the home directory, which they share, and which nothing outside of
 * a sandbox is told of. Where a tool makes the files of a project by links to its cache, it is one for each
 * workspace, CACHE_DIR/NAME/FOLDER (folder_name.h): a command in one could change the files of another one. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "policy/config/preset.h"

#include <stdbool.h>
#include <stddef.h>

struct access_map;
struct profile;

#define PRESETS_DIR "presets"                   /* in the config directory: the user's */
#define PRESETS_CACHE_DIR ".cache/cordon/tools" /* below the home directory */

/* --- their files --- */

struct preset_file {
    char *name;
    char *path;
    bool is_own;   /* the user's */
    bool is_twice; /* and in the place of one that comes with Cordon */
};

struct preset_files {
    struct preset_file *items; /* by name */
    size_t len;
    size_t cap;
};

/* `config_dir` NULL: not known, so none is the user's. */
int preset_files_find(const char *config_dir, struct preset_files *ret, struct err *err);
void preset_files_done(struct preset_files *files);

/* ERR_NOT_FOUND names the nearest. `ret_path` may be NULL; caller frees. */
int preset_load(const char *config_dir, const char *name, struct preset *ret, char **ret_path,
                struct err *err);

/* --- what they come to --- */

/* Of all presets of a workspace; zeroed is none. */
struct presets {
    struct strv places;      /* below the home directory: directories that are opened */
    struct strv paths;       /* the same, canonical */
    struct strv env;         /* "NAME=value"; of two with one name the later counts */
    struct strv offline_env; /* likewise */
};

void presets_done(struct presets *presets);
void presets_copy(const struct presets *presets, struct presets *ret);

struct presets_context {
    const char *config_dir; /* NULL: not known */
    const char *home;       /* NULL: not known */
    const char *workspace;  /* canonical: what it is known by; NULL: nothing, as "/" */
    char *const *env;       /* of commands without presets: for {env.NAME} */
    char *const *own_paths; /* what belongs to Cordon */
    const struct access_map
        *map; /* what the profile means without them; NULL: there is no sandbox, so the
                                    preset is only looked at */
};

/* Adds the preset of this name: to `presets`, and its entries to `profile`. Makes its directory.
 * ERR_FORBIDDEN when the profile denies or protects what it would open. */
int presets_add(const struct presets_context *context, const char *name, struct presets *presets,
                struct profile *profile, struct err *err);

/* Makes what is missing of their directories, and sees that it is still what it was. */
int presets_make(const struct presets *presets, const char *home, struct err *err);

/* Each of them can be written by `map`, where it is restricted: nothing narrower stands in the way. */
int presets_check(const struct presets *presets, const struct access_map *map, struct err *err);

/* The variables, for a network that is `is_offline` or not: one of each name. */
void presets_env(const struct presets *presets, bool is_offline, struct strv *ret);
