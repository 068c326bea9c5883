/* What accept.c, undo.c, drop.c and recover.c share: an accept that is under way, and its paths one by one (swap.c). Nobody else
 * reads it. */
#pragma once

#include "layer/accept.h"
#include "layer/journal.h"
#include "layer/known.h"
#include "layer/trees.h"

#include <stdbool.h>
#include <stddef.h>

struct work {
    struct layer *layer;
    struct trees *trees;
    struct known *known; /* work_known() */
    struct journal journal;
    int accepted; /* descriptor of the folder of all accepts */
    int number;   /* 0: none yet */
    int dir;      /* of its folder */
    bool is_quiet;
    bool is_going_on; /* after a kill: some of it may be done */
    const struct accept_text *text;
    struct accept_result *result;
    char *exposed; /* the folder that was exposed last; NULL: none */
    size_t exposed_root;
};

/* Opens what there is; `work_done()` in any case. */
int work_init(struct work *work, struct layer *layer, struct accept_result *result,
              struct err *err);
void work_done(struct work *work);

/* Makes the folder of a new accept, or opens that of an old one, and says that it is under way. */
int work_begin(struct work *work, int number, struct err *err);

/* What names change in can be written in, until the modes are given back, at the end at the latest. */
void work_lend(struct work *work);

/* It is not under way any more. With `keeps` its folder stays. */
int work_end(struct work *work, bool keeps, struct err *err);

/* The number of the one that is under way; 0: none. */
int work_under_way(const struct work *work, struct err *err);

/* Reads the journal of a number, and cuts off what a kill left behind its end. */
int work_read(struct work *work, struct err *err);

/* Cuts the journal off after so many bytes. */
int work_cut(struct work *work, size_t len, struct err *err);

typedef bool journal_put(struct buf *text, const struct journal *journal);
int work_write(struct work *work, journal_put *const *parts, struct err *err); /* with one write */

/* Those that there are, in no order; appended. */
int work_numbers(const struct work *work, struct strv *ret, struct err *err);

void work_leave(struct work *work, size_t root, const char *path, enum left_why why,
                const char *detail);
char *work_path(const struct work *work, size_t root, const char *path); /* absolute */

struct known *work_known(struct work *work); /* read when it is asked for; the work's */

/* The folders in which items have names, for the journal. */
void work_note_folders(struct work *work);

/* After the last item: stamps of all, the mtimes of directories, what is known.
 * After the taking back of one mtimes come back. */
int work_settle_accept(struct work *work, struct err *err);
int work_settle_undo(struct work *work, struct err *err);

/* What is decided is done: the paths, the results, the end. */
int accept_carry_out(struct work *work, struct err *err); /* accept.c */
int undo_carry_out(struct work *work, struct err *err);   /* undo.c */
int drop_carry_out(struct work *work, struct err *err);   /* drop.c */

/* --- swap.c: one path. What cannot be done is reported to the result, and the item's state says so. --- */

/* Makes room for what is kept of all items, when the plan is whole. */
int swap_make_folders(const struct work *work, struct err *err);

/* Makes the copies that it needs. -1: nothing was made. */
int swap_prepare(struct work *work, struct journal_item *item, struct err *err);
void swap_take(struct work *work, struct journal_item *item);
void swap_dress(struct work *work, const struct journal_item *item); /* a folder that was made */
bool swap_was_prepared(const struct journal_item *item);

/* The old one, which is kept, is not what it was when it was replaced. */
bool swap_was_written_late(struct work *work, const struct journal_item *item);

int swap_prepare_back(struct work *work, struct journal_item *item, struct err *err);
void swap_back(struct work *work, struct journal_item *item);

/* Removes what prepare made. */
void swap_withdraw(struct work *work, const struct journal_item *item);
