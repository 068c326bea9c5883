/* What was held while a command ran, in the questions of its result. */
#pragma once

struct held_event;
struct json_t;

/* Adds the question when it is asked, and at last its answer, for how long it was held, and whether
 * what was asked for was done. Of what needed no question, all of that at once. */
void questions_note_held(struct json_t *questions, const struct held_event *event);
