/* Steps of layers that end: their counts, for those who ran something in them and those who watch. */
#pragma once

#include <jansson.h>

struct call;
struct layer;
struct layer_entry;
struct server;

/* Listens for the end of steps of an open layer. */
void layer_steps_begin(struct layer_entry *entry);

/* Answers with `result` (taken over) and in it "changes", what step `step` changed so far. `id` NULL: nothing is added. */
void layer_reply(struct call *call, json_t *result, const char *id, int step);

/* What is in the layer has changed otherwise: what is watched outside follows. */
void layer_steps_look(struct layer_entry *entry);

/* Mounts the next step ahead, when nothing lives and nothing has the layer to itself. */
void layer_steps_prepare(struct layer_entry *entry);

/* Calls that wait are answered without. */
void layer_steps_end(struct layer_entry *entry);
