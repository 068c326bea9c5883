/* Which config file counts, and which paths of this host belong to Cordon because they rule the
 * next run: no command may write them, whatever its profile says. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "workspace/rule_layers.h"

struct config;

#define CONFIG_NAME "config.toml" /* in the config directory */

struct config_file {
    char *path;            /* absolute; NULL when there is no file */
    struct config *config; /* NULL when there is no file */
    char *text;            /* what it was made of; NULL when there is no file */
    char *home;            /* the user's home directory, for "~/"; NULL when not known */
    char *dir;             /* the config directory, there or not; NULL when not known */
    struct strv own_paths; /* clean: the config directory and the file, there or not */
};

/* Reads `named` (relative: counts from `base`), which has to be there; with NULL, the config.toml
 * of $CORDON_HOME or else of ~/.config/cordon, if it is. */
int config_file_load(const char *named, const char *base, struct config_file *ret, struct err *err);
void config_file_done(struct config_file *file);

/* Only finds `home` and `own_paths`; reads nothing. */
int config_file_place(struct config_file *ret, struct err *err);

/* Whose rules count; borrows from `file`. */
struct rule_owner config_file_owner(const struct config_file *file);
