/* What Cordon writes into one file of a client: put there, looked at, taken out again. */
#pragma once

#include "setup/json_edit.h"
#include "setup/toml_edit.h"

#include <sys/types.h>

enum entry_form {
    ENTRY_JSON,  /* a value at a place */
    ENTRY_TABLE, /* a table of TOML */
    ENTRY_FILE,  /* the whole file */
};

struct entry {
    char *path;   /* absolute */
    char *inside; /* the user's folder, or the project's: nothing is written out of it */
    mode_t mode;  /* of a file that is made */
    enum entry_form form;
    struct json_place place; /* ENTRY_JSON */
    json_t *value;
    bool (*is_ours)(const json_t *value); /* of what is there: Cordon may have written it */
    const char *base;                     /* the text of a new file, without the entry; NULL: {} */
    struct toml_block block;              /* ENTRY_TABLE; its body is `text` */
    char *text; /* ENTRY_FILE: all of it, beginning with the line `mark` */
    const char *mark;
};

void entry_done(struct entry *entry);

enum entry_state { ENTRY_MISSING, ENTRY_SAME, ENTRY_OLDER, ENTRY_FOREIGN };
extern const char *const entry_state_words[];

/* Fails when the file cannot be read, or is not what it should be. */
int entry_look(const struct entry *entry, enum entry_state *ret, struct err *err);

enum entry_change { ENTRY_UNCHANGED, ENTRY_WRITTEN, ENTRY_REMOVED, ENTRY_FILE_REMOVED };
extern const char *const entry_change_words[];

struct entry_result {
    enum entry_change done;
    char *backup; /* NULL: nothing was kept; caller frees */
};

/* ERR_FORBIDDEN for one that is not ours. */
int entry_put(const struct entry *entry, struct entry_result *ret, struct err *err);

/* Takes it out, with what is empty then and was not there before; and the file, when nothing else is in it and it was made
 * by entry_put(). */
int entry_remove(const struct entry *entry, struct entry_result *ret, struct err *err);

/* What a person would paste: with the keys around it. */
void entry_print(const struct entry *entry, struct buf *ret);
