/* The names of the writes that a job has taken, so that one that is sent twice is written once
 * (spec/exec-server.md, process/write). Internal to job.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITE_IDS_MAX 4096 /* kept; the oldest is forgotten first */

struct write_id {
    uint64_t hash;
    char *text;
};

/* Zeroed it is empty. */
struct write_ids {
    struct write_id *items;
    size_t len;
    size_t cap;
    size_t oldest; /* once there are WRITE_IDS_MAX */
};

void write_ids_done(struct write_ids *ids);
bool write_ids_has(const struct write_ids *ids, const char *id);
void write_ids_add(struct write_ids *ids, const char *id);
