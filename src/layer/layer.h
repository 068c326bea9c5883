/* A change layer: what commands wrote, kept apart from the real files until somebody accepts it.
 *
 *     layer_create(), layer_open()     it is ours then: no other process changes it
 *     layer_cover()                    which directories it lies over
 *     layer_view()                     for the sandbox: each launch in it enters, and begins a step when
 *                                      nothing of the layer was alive
 *     change_list(), change_accept(), ...   (change.h, accept.h)
 *     layer_close()
 *
 * On disk, in the folder of all layers, which no command sees:
 *
 *     ID/layer.json       what it is: enum layer_state follows from it and from who has the lock
 *     ID/lock             whoever mounts or changes it has it
 *     ID/steps/0007.json  a step: who wrote, when, and how it ended
 *     ID/roots/0/0007/up  what step 7 wrote below root 0, as overlayfs keeps it; wk is the kernel's
 *     ID/tmp/             /tmp and /var/tmp of its commands; never listed
 *     ID/accepted/0003/   what accepting replaced, and the journal of it (journal.h)
 *
 * A step's up is mounted once, on top of those before it; when it has ended it is only read, or
 * taken from. docs/decisions/0039-layers.md says why it is as it is. */
#pragma once

#include "base/err.h"
#include "base/strv.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct access_map;
struct json_t;
struct layer;

/* --- what one is --- */

enum layer_state {
    LAYER_QUIET,    /* nothing of it lives */
    LAYER_ALIVE,    /* this process, or the one that has the lock, has commands in it */
    LAYER_ORPHANED, /* who had it was killed in the middle of a step; it is whole */
    LAYER_SUSPECT, /* the machine went down since it was written: contents may be missing, and nothing is
                       accepted but by force */
};

extern const char
    *const layer_state_words[]; /* "quiet", "alive", "orphaned", "suspect"; NULL-terminated */

struct layer_root {
    char *path; /* canonical, absolute */
    dev_t dev;  /* these two of the directory that it is about */
    ino_t ino;
    bool is_direct; /* left out: what is written there is written */
    bool is_near;   /* the layer is on its file system: accepting moves */
};

struct layer_step {
    int number;       /* 1, 2, ... */
    struct strv argv; /* of its first command */
    char *cwd;        /* NULL: not known */
    struct timespec
        begun; /* clock_stamp_ns(): its base time; what others changed since then may conflict */
    struct timespec ended; /* zero: it has not */
    int wait_status;       /* of the first command, as from waitpid(2); -1: not known */
    unsigned commands;     /* that ran in it */
    int squashed_from;     /* the first of the steps that it is made of; 0: just itself */
    bool
        is_shared; /* somebody outside may have files open in which it wrote: what is accepted are copies */
};

/* --- all of a user --- */

struct layer_info {
    char *id;   /* 16 hexadecimal digits */
    char *name; /* NULL: none */
    enum layer_state state;
    char *held_by; /* who has the lock, for people: "cordon serve (4711)"; NULL: nobody */
    struct timespec created;
    struct timespec used; /* end of its last step */
    struct layer_root *roots;
    size_t roots_len;
    size_t steps;
    size_t accepts;           /* that can be undone */
    struct timespec accepted; /* the last of these */
    uint64_t bytes;           /* on disk; only with `counts_bytes` of layers_list() */
};

struct layer_infos {
    struct layer_info *items; /* newest use first */
    size_t len;
    size_t cap;
};

/* $XDG_STATE_HOME/cordon/layers and, for roots on other file systems, the like in /var/tmp and in /dev/shm, whether they are
 * there or not; for masks. Appended. */
void layers_folders(struct strv *ret);

/* Reads only, and takes no lock. What cannot be read is left out, with a line in `ret_problems`. */
int layers_list(bool counts_bytes, struct layer_infos *ret, struct strv *ret_problems,
                struct err *err);
void layer_infos_done(struct layer_infos *infos);

/* Removes those that nobody has used for `age_s` seconds, that are quiet, and in which nothing is left to accept;
 * with `with_changes` those, too. Names of them are appended. */
int layers_prune(uint64_t age_s, bool with_changes, struct strv *ret_gone, struct err *err);

/* The same without changes, if it was not done today: for whoever makes layers. */
void layers_prune_daily(uint64_t age_s);

/* The id of the layer that has this name or id, or the only id that begins with four digits or more; NULL: there is none.
 * Caller frees. */
char *layers_find_id(const char *word);

/* --- one of them --- */

struct layer_options {
    const char *name;    /* NULL: none; letters, digits, "-_.", not 16 hexadecimal digits */
    char *const *direct; /* canonical: roots that are left out; NULL: none */
    bool has_git;        /* --layer-git: git directories are written in the layer */
    uint64_t max_bytes;  /* 0: no limit but the disk's */
    const char *held_by; /* as in struct layer_info; static */
};

enum layer_use {
    LAYER_READ, /* no lock: it may change under us */
    LAYER_CHANGE, /* waits a second for the lock; ERR_BUSY names who has it. Recovers from a kill first */
};

/* NULL on failure. `name` is an id, a name, or NULL: the one used last that lies over `cwd` (its deepest root, then its
 * last use). ERR_NOT_FOUND says which there are. */
struct layer *layer_open(const char *name, const char *cwd, enum layer_use use, const char *held_by,
                         struct err *err);

/* A new one, empty, LAYER_CHANGE. ERR_CONFLICT: there is one of that name. */
struct layer *layer_create(const struct layer_options *options, struct err *err);

/* The lock goes, and the mounts when nothing is in them. Of one that never had a step nothing stays. */
void layer_close(struct layer *layer);

/* Removes it from the disk; only when quiet (ERR_BUSY). Closes it in any case. */
int layer_remove(struct layer *layer, struct err *err);

/* --- one that two processes of ours work on ---
 *
 * The server has a layer open whose commands it runs; what takes long is done by a program of its own (main.c),
 * which gets the descriptor of the lock. It has either the layer to itself then (nothing lives, and nobody enters
 * meanwhile), or knows that commands live in it. */

struct layer_adoption {
    int lock;      /* descriptor of the lock, which is held; taken over, also on failure */
    int users;     /* namespaces of the step that lives there; taken over, too; -1: none */
    int mounts;    /* the same */
    bool is_alive; /* commands live, in the other process: LAYER_ALIVE, and never quiet */
    const char *
        held_by; /* who has it from now on is this process, as if it had opened it (LAYER_CHANGE): it may cover,
                            begin steps, and lets the lock go at the end. NULL: it stays another's, who only lends it: closing
                            it leaves the lock and everything else as it is */
};

/* Waits for nothing and recovers nothing: who took the lock has. */
struct layer *layer_adopt(const char *id, const struct layer_adoption *adoption, struct err *err);

/* What it has on the disk, of a layer with `max_bytes` (else 0). Who has been told once counts no more by itself: that is for
 * the other process. */
int layer_count_bytes(const struct layer *layer, uint64_t *ret, struct err *err);
void layer_tell_bytes(struct layer *layer, uint64_t bytes);
bool layer_has_limit(const struct layer *layer);

int layer_lock(const struct layer *layer); /* borrowed; -1: LAYER_READ */

/* Reads again what the other process may have changed: the steps. Nothing when it is not quiet. */
int layer_reload(struct layer *layer, struct err *err);

const char *layer_id(const struct layer *layer);
const char *layer_name(const struct layer *layer);     /* the id if it has none */
const char *layer_own_name(const struct layer *layer); /* NULL: none */
const char *layer_folder(const struct layer *layer);
int layer_fd(const struct layer *layer); /* of its folder; the layer's */
bool layer_is_in_memory(
    const struct layer *layer); /* no disk can keep it: it goes with the machine */
bool layer_has_git(const struct layer *layer);
enum layer_state layer_state(const struct layer *layer);
const struct layer_root *layer_roots(const struct layer *layer, size_t *ret_len);
const struct layer_step *layer_steps(const struct layer *layer, size_t *ret_len); /* oldest first */

/* Makes it lie over every writable directory of the map, but for what is direct, private temporary folders and
 * caches of Cordon's; those nested in another are part of that. Replaces in the map what its commands have of their own:
 * /tmp and /var/tmp (`source`). Grows when the map has more; only when quiet then (ERR_BUSY). ERR_UNSUPPORTED with the
 * reason and the remedy where overlayfs is not to be had: a mount below a root (named), a file system that cannot be
 * a lower one, a writable file, no namespaces. */
int layer_cover(struct layer *layer, struct access_map *map, struct err *err);

/* The same of the map of a command of which nothing is to be added: it is what was covered, perhaps widened by somebody's
 * yes, and what the layer does not lie over yet is written directly. */
void layer_cover_none(const struct layer *layer, struct access_map *map);

/* What launches enter: borrowed by the sandbox; good until layer_close(). */
struct sandbox_view *layer_view(struct layer *layer);

/* Mounts the next step's overlays ahead, when the layer is quiet and a step of it has been mounted before: the launch that begins it
 * finds them, if nothing that they depend on has changed. What fails here the launch tells. What takes long, to leave the mounts of the
 * step before, is begun in a process of its own: then its end is to be waited for, by the descriptor that is returned (borrowed; readable
 * then), and this called again. Else -1. */
int layer_prepare(struct layer *layer);

/* They go. What changes steps in this process does it by itself; one to which the lock is lent cannot. */
void layer_unprepare(struct layer *layer);

/* Nothing of it is alive: no launch is open, and no process of an earlier holder is left. */
bool layer_is_quiet(const struct layer *layer);

/* Told when the last launch of a step is over; from within launch_done(), so the callee only takes note. */
void layer_on_quiet(struct layer *layer, void (*on_quiet)(void *data, struct layer *layer),
                    void *data);

/* Drops what the kernel has cached of the real files, so that commands that live see what others changed. Blocks for
 * 0.1 ms, or up to a second with many names cached. Nothing when quiet. */
int layer_refresh(struct layer *layer, struct err *err);

/* Takes a step out of the stack, with what it wrote; quiet only. ERR_CONFLICT names the path that a later step has
 * changed, too. */
int layer_undo_step(struct layer *layer, int number, struct err *err);

/* Steps in which nothing is (any more: it was taken or dropped) go, but for the last one where something was accepted: what is
 * taken back goes there. Nothing when not quiet. */
int layer_tidy(struct layer *layer, struct err *err);

/* Old steps become one when there are LAYER_STEPS_MANY, before a launch has to see to it; nothing when not quiet. */
enum { LAYER_STEPS_MANY = 48 };
int layer_squash(struct layer *layer, struct err *err);

/* O_PATH descriptor of the directory in which root `root` lies really; ERR_CONFLICT when it is another than the
 * layer was made for. `up` of a step: -1 with ERR_NOT_FOUND when that wrote nothing there. The caller closes. */
int layer_open_root(const struct layer *layer, size_t root, struct err *err);
int layer_open_up(const struct layer *layer, size_t root, int step, struct err *err);
