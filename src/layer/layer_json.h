/* What a layer writes down about itself: layer.json and steps/NNNN.json, as text. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"
#include "layer/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RECORD_MAX = 1 << 18, /* bytes of a file */
    RECORD_ROOTS_MAX = 256,
    RECORD_ID_LEN = 16,
    RECORD_BOOT_MAX = 64,
};

/* layer.json */
struct layer_record {
    char id[RECORD_ID_LEN + 1];
    char *name; /* NULL: none */
    char boot[RECORD_BOOT_MAX +
              1]; /* the boot in which the numbers of the roots' devices were seen */
    struct timespec created;
    bool has_git;
    uint64_t max_bytes;
    struct strv direct;
    struct layer_root *roots;
    size_t roots_len;
    size_t roots_cap;
};

/* steps/NNNN.json */
struct step_record {
    struct layer_step step;
    char boot[RECORD_BOOT_MAX + 1]; /* the one in which it was written */
    int64_t clock;   /* ns from CLOCK_BOOTTIME to CLOCK_REALTIME when it began: shows jumps */
    int merging;     /* the step before it that is being merged into it; 0: none */
    bool is_removed; /* it is none any more; what is left of it has to go */
};

/* `path` is for messages. */
int layer_record_parse(const char *text, size_t len, const char *path, struct layer_record *ret,
                       struct err *err);
int step_record_parse(const char *text, size_t len, const char *path, struct step_record *ret,
                      struct err *err);

void layer_record_format(const struct layer_record *record, struct buf *ret);
void step_record_format(const struct step_record *record, struct buf *ret);

void layer_record_done(struct layer_record *record);
void step_record_done(struct step_record *record);

struct layer_root *layer_record_add_root(struct layer_record *record, const char *path);

/* 16 hexadecimal digits, small ones. */
bool layer_id_is_valid(const char *text);

/* A name that a layer may have; ERR_INVALID says what is wrong. */
int layer_name_check(const char *name, struct err *err);
