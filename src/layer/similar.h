/* Texts with much the same lines: of new ones and gone ones those that may be one that was moved and edited. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct similar_file {
    size_t at; /* the caller's number */
    size_t root;
    const char *name; /* borrowed */
    bool is_added;
};

struct similar_text {
    struct similar_file file;
    uint64_t *lines; /* hashes, sorted */
    size_t len;
    size_t votes;  /* lines of the text that is looked at */
    bool is_taken; /* it is no more to be paired */
};

struct similar_pair {
    size_t added, gone; /* numbers of theirs */
};

struct similar {
    struct similar_text *texts;
    size_t texts_len, texts_cap;
    size_t lines; /* of all texts */
    uint64_t bytes;
    struct similar_pair *pairs;
    size_t pairs_len, pairs_cap;
};

/* Whether one of that size is to be added: not when it is large, or all together are. */
bool similar_wants(const struct similar *similar, uint64_t size);
void similar_add(struct similar *similar, const char *text, size_t len,
                 const struct similar_file *file);

/* Fills in `pairs`: each file is in one at most. */
void similar_find(struct similar *similar);
void similar_done(struct similar *similar);
