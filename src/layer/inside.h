/* What the files of this room that keep a layer share: layer.c opens, store.c has the disk, cover.c and step.c what
 * is mounted, squash.c what becomes of steps. Nobody else reads it. */
#pragma once

#include "base/buf.h"
#include "layer/layer.h"
#include "layer/layer_json.h"
#include "sandbox/linux/overlay.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define LAYER_MOUNT_NAME "cordon-layer-" /* and the id: the source of its mounts */

enum {
    STEPS_MAX = 64,     /* more are squashed: 64 lower layers are mounted in 0.5 ms */
    STEP_NAME_MAX = 16, /* "0007" */
    DISCARDED_MAX = 64
};

struct layer {
    struct layer_record record;
    char *folder;          /* canonical */
    int fd;                /* of it */
    int lock;              /* -1: for reading alone */
    bool is_adopted;       /* the lock is another's: so are the commands in it */
    bool is_alive_outside; /* and they live */
    bool is_held;          /* for reading: somebody else has the lock */
    bool is_suspect;
    bool has_stepped; /* there is, or was, a step */
    const char *held_by;

    struct step_record *records; /* by number */
    size_t records_len;
    size_t records_cap;
    struct layer_step *steps; /* the same without what is ours alone; borrows from `records` */
    int last_number;          /* given to a step, perhaps one that is gone */

    struct sandbox_view view;
    struct strv view_roots; /* `view.roots` */
    struct strv real;       /* absolute: what lies below roots and is shown as it really is */
    bool *is_covered;       /* of each root: the map had it, so it has to be there */
    struct overlay_namespace space; /* of the last step, or of the next one */
    int mounted_step;               /* that has ended, and has it still; 0: none */
    struct overlay_apart apart;     /* is about to leave that, or to forget what is cached */
    bool is_prepared;               /* the next one's: nobody is in it */
    bool is_cached;                 /* but somebody was */
    struct buf seen;                /* what it lies over, and... */
    struct buf uppers;              /* what its uppers were, when it was made (next.c) */
    unsigned launches;              /* open */
    unsigned
        discarded; /* steps without changes that are in the trash: it is emptied when many are, and at the close */
    int first_status;   /* of the step's only command that has ended; -1 */
    uint64_t bytes;     /* counted last, with max_bytes */
    bool is_told_bytes; /* by layer_tell_bytes() */
    void (*on_quiet)(void *data, struct layer *layer);
    void *on_quiet_data;
};

/* --- store.c: the disk --- */

enum store_base {
    STORE_STATE,
    STORE_VAR_TMP,
    STORE_MEMORY,
    STORE_BASES,
};

/* A descriptor of the folder of layers, made when it is missing and `makes`; ERR_NOT_FOUND when it is not there.
 * `ret_path`: canonical; the caller frees. */
int store_open_base(enum store_base base, bool makes, char **ret_path, struct err *err);

/* What failed did so since this process is in a sandbox, where no layer can be had, if it is: then that is said. Returns -1. */
int store_explain(struct err *err);

/* The folder of a layer in it; checked. */
int store_open_layer(int base, const char *id, struct err *err);

/* The file of that name in `dir`, whole; ERR_NOT_FOUND where there is none. */
int store_read(int dir, const char *name, struct buf *ret, struct err *err);

/* Puts it in the place of what is there, whole or not at all. */
bool store_is_full(const struct err *err); /* there is no room on the disk, or none for the user */
int store_write(int dir, const char *name, const struct buf *text, struct err *err);

/* Makes a folder of ours, if it is not there; or opens it, too. */
int store_make(int dir, const char *name, struct err *err);
int store_make_dir(int dir, const char *name, mode_t mode, struct err *err);

/* Moves `name` in `dir` to the trash of the layer; nothing where there is none. */
int store_discard(const struct layer *layer, int dir, const char *name, struct err *err);

/* Removes all in the folder `trash`, which is on one file system, however deep it is. */
int store_drain(int trash, struct err *err);

/* Empties the trash of the layer. */
int store_empty_trash(const struct layer *layer, struct err *err);

/* Calls `each` with the name of every entry but "." and "..", until it returns something else than 0, which is
 * returned. -1 also when the folder cannot be read; a missing one is empty. */
int store_list(int dir, const char *name, int (*each)(void *data, const char *name), void *data,
               struct err *err);

/* "roots/0/0007", "steps/0007.json"; `ret` has to have room for it */
enum { STORE_NAME_MAX = 64, STEP_NEXT = 0 /* "roots/0/next" */ };
void store_step_dir(size_t root, int step, const char *part, char ret[STORE_NAME_MAX]);
void store_step_file(int step, char ret[STORE_NAME_MAX]);

/* A number as in the name of a step; 0: none. */
int store_step_number(const char *text, const char *suffix);

const char *store_boot(void); /* this boot's id; static */

/* Whether an overlay over the directory `root` has worked in the folder of layers `base` since the machine was started;
 * and that it has. Who loses a line of it tries again. */
bool store_has_worked(int base, const struct stat *root);
void store_note_worked(int base, const struct stat *root);

/* 1: the step has something of the root that a command wrote; 0: nothing, or directories alone that it went through. */
int store_has_written(const struct layer *layer, size_t root, int step, struct err *err);

/* The bytes on the disk of what was written in the steps of the layer. */
int store_count_bytes(const struct layer *layer, uint64_t *ret, struct err *err);

/* --- layer.c --- */

#define LAYER_FILE "layer.json"

int layer_save(const struct layer *layer, struct err *err); /* layer.json */
int layer_save_step(const struct layer *layer, const struct step_record *record, struct err *err);
struct step_record *layer_step_find(const struct layer *layer, int number); /* NULL: none */
struct step_record *layer_step_add(struct layer *layer, int number);
void layer_steps_changed(struct layer *layer); /* after every change of `records` */

/* The id of the layer that has just this name; NULL: there is none. Caller frees. */
char *layers_find_name(const char *name);

/* Who has the lock, for people; the caller frees. NULL: nobody. */
char *layer_holder(const struct layer *layer);

struct layer *layer_open_at(int base, const char *base_path, const char *id, enum layer_use use,
                            const char *held_by, struct err *err);

/* Moves an empty layer, which has no step yet, to another folder of layers. */
int layer_move(struct layer *layer, enum store_base base, struct err *err);

/* --- step.c --- */

void step_view_init(struct layer *layer);

/* Sets its base time back as far as the wall clock was since it began. */
void step_settle_clock(struct step_record *record);

/* Takes the step out, with all that it wrote. */
int step_remove(struct layer *layer, int number, struct err *err);

/* After a kill: steps that have begun have ended. */
int step_recover(struct layer *layer, struct err *err);

/* --- next.c --- */

/* The mounts of the next step stand, made now or ahead. */
int next_prepare(struct layer *layer, struct err *err);

/* They are those of `step`, whose record is written; the view has them. */
int next_take(struct layer *layer, int step, struct err *err);

/* Of a step whose uppers are empty, and always were, they become the next one's again, and its folders with them; else false. */
bool next_give_back(struct layer *layer, int step);

/* What is prepared goes to the trash; what fails here is found by the next holder. */
void next_drop_folders(struct layer *layer);

/* The newest step before `step` that has something of the root, else the root itself: a descriptor (O_PATH). */
int next_open_below(const struct layer *layer, size_t root, int step, struct err *err);

/* --- squash.c --- */

/* Merges the oldest steps until there are at most STEPS_MAX - 1. */
int squash_steps(struct layer *layer, struct err *err);
int squash_recover(struct layer *layer, struct err *err);

/* --- orphan.c --- */

/* Waits until no process of an earlier holder has the layer mounted. */
int orphan_wait(const struct layer *layer, struct err *err);
