/* What an accept does, written down: before, so that whoever finds it after a kill can go on, and after, so that it can be taken
 * back. accepted/N/journal in the layer's folder; beside it, as accepted/N/I, what item I replaced. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "layer/change.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the contents get to the real files. */
enum item_how {
    HOW_MOVE = 'm', /* the layer's file itself */
    HOW_STAGE =
        's', /* a copy of it, beside the journal: commands live, or it is a part of its hunks */
    HOW_FAR = 'f', /* a copy below a name of ours beside the real one: another file system */
};

enum item_state {
    ITEM_PLANNED = 'p',
    ITEM_DONE = 'd',
    ITEM_LEFT = 'l',   /* it stayed in the layer */
    ITEM_UNDONE = 'u', /* taken back */
};

struct journal_item {
    enum change_kind kind; /* A, M (also of another type), D; MODE of a directory */
    enum item_how how;
    bool is_dir;
    bool is_forced; /* over a conflict */
    bool is_copy;
    bool stays;      /* the layer keeps what it has there: commands live, or it is a part of it */
    bool is_undoing; /* chosen by the undo that is under way */
    size_t root;
    int step;
    int first_step;
    char *path;                /* below the root */
    struct change_stamp layer; /* before */
    struct change_stamp real;  /* before; zero: nothing */
    int64_t layer_mtime_ns;
    int64_t real_mtime_ns;
    uint64_t staged; /* inode of the copy; 0: none */
    /* afterwards */
    enum item_state state;
    struct change_stamp after; /* of the real one; zero: gone */
};

/* A directory in which names change: its mtime is to come back. */
struct journal_folder {
    size_t root;
    char *path;
    struct change_stamp before;
    int64_t mtime_ns;
    struct change_stamp after; /* mode 0: not known */
};

enum journal_phase {
    JOURNAL_PLANNED, /* nothing was done but copies */
    JOURNAL_DECIDED, /* has to be done, or what is left of it */
    JOURNAL_DONE,    /* says what was done */
    JOURNAL_UNDO_PLANNED,
    JOURNAL_UNDO_DECIDED,
};

enum journal_what { JOURNAL_ACCEPT = 'a', JOURNAL_DROP = 'd' };

struct journal {
    enum journal_what what;
    uint64_t when_ns; /* CLOCK_REALTIME */
    struct journal_item *items;
    size_t len;
    size_t cap;
    struct journal_folder *folders;
    size_t folders_len;
    size_t folders_cap;
    enum journal_phase phase;
    size_t whole;   /* bytes of it that were read: behind them is what a kill cut off */
    size_t settled; /* the same up to the last results; 0: there are none */
};

enum { JOURNAL_MAX = 512 << 20 };

struct journal_item *journal_add(struct journal *journal);
void journal_done(struct journal *journal);

/* Parts of the text, to be appended in this order: plan, decision, results, and for each undo plan, decision, results. false:
 * it would be too long. */
bool journal_put_plan(struct buf *text, const struct journal *journal);
bool journal_put_decision(struct buf *text, const struct journal *journal);
bool journal_put_results(struct buf *text, const struct journal *journal);
bool journal_put_undo(struct buf *text,
                      const struct journal *journal); /* of those that are `is_undoing` */

/* A text that ends too early is one that a kill cut: what is whole counts. ERR_INVALID: it is none of ours. */
int journal_parse(const char *text, size_t len, struct journal *ret, struct err *err);
