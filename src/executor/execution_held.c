/* See execution_held.h. Several may be open, and two with the same id: calls that were joined. */
#include "executor/execution_held.h"

#include "approval/held.h"
#include "base/str.h"

#include <jansson.h>
#include <stddef.h>

/* That of the event, still open; NULL: nobody had to be asked. */
static json_t *find_open(const json_t *questions, const struct held_event *event)
{
    for (size_t i = json_array_size(questions); event->question->id && i-- > 0;) {
        json_t *asked = json_array_get(questions, i);
        const char *id = json_string_value(json_object_get(asked, "id"));

        if (id && str_eq(id, event->question->id) && !json_object_get(asked, "held_ms"))
            return asked;
    }
    return NULL;
}

void questions_note_held(json_t *questions, const struct held_event *event)
{
    json_t *asked = event->step == HELD_OVER ? find_open(questions, event) : NULL;

    if (event->step == HELD_ASKED || (event->step == HELD_OVER && !asked)) {
        asked = approval_request_to_json(event->question);
        json_array_append_new(questions, asked);
    }
    if (event->step != HELD_OVER)
        return;
    if (event->answer)
        json_object_set_new(asked, "answer", approval_answer_to_json(event->answer));
    json_object_set_new(asked, "held_ms", json_integer((json_int_t)(event->held_ns / 1000000)));
    json_object_set_new(asked, "done", json_boolean(event->is_done));
}
