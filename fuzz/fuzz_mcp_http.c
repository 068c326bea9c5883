/* What a stranger sends over HTTP to the door of MCP, in two pieces: the first byte says where it is cut. The same
 * requests have to come out of it as in one piece, none of them beyond a limit, and an answer of the door says why. */
#include "fuzz.h"

#include "base/auto.h"
#include "mcp/http/door.h"
#include "mcp/http/events.h"
#include "mcp/http/intake.h"
#include "mcp/http/mirror.h"
#include "mcp/message.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void judge(const struct http_request *request)
{
    const struct door_situation situation = {
        .address = "http://127.0.0.1:80", .port = 80, .is_loopback = true};
    const struct mcp_message message = {.kind = MCP_REQUEST, .method = "tools/call"};
    const char *id = http_head_field(&request->head, "Last-Event-ID");
    struct door_answer answer = door_lets_in(request, &situation);
    struct event_id event;
    char words[120];

    mirror_mismatch(&request->head, &message, words, sizeof words);
    check(!answer.status == !answer.text);
    answer = door_routes(request);
    check(!answer.status == !answer.text);
    if (id && event_id_parse(id, &event))
        check(strlen(id) >= 3);
}

/* A number for all that came out of it so far. */
static void take(struct intake *intake, uint64_t *sum)
{
    for (;;) {
        enum intake_state was = intake->state;
        enum intake_state state = intake_step(intake);

        if (state == INTAKE_HEAD_READ) {
            judge(&intake->request);
            intake_take_body(intake);
        } else if (state == INTAKE_WHOLE) {
            check(intake->body.len <= INTAKE_BODY_MAX);
            *sum = (*sum + intake->body.len + 1) * 31;
            intake_next(intake);
        } else {
            if (state == INTAKE_WRONG && was != INTAKE_WRONG)
                *sum += (uint64_t)intake->status;
            if (state == was || state == INTAKE_WRONG)
                return;
        }
    }
}

static uint64_t feed(const char *bytes, size_t len, size_t cut)
{
    AUTO(intake_done) struct intake intake;
    uint64_t sum = 0;

    intake_init(&intake);
    intake_append(&intake, bytes, cut);
    take(&intake, &sum);
    if (intake_room(&intake) >= len - cut)
        intake_append(&intake, bytes + cut, len - cut);
    take(&intake, &sum);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data + 1;

    if (!size || size > INTAKE_AHEAD_MAX)
        return 0;
    check(feed(bytes, size - 1, 0) == feed(bytes, size - 1, (size - 1) * data[0] / 256));
    return 0;
}
