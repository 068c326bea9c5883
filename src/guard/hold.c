/* See hold.h. Nothing that was read of a call is used after the question: after a yes it is looked at
 * anew, as if it came now, and what the yes covers is among what the command may do. So whatever was
 * rewritten, swapped or moved meanwhile is judged as it is then; and it is asked about once, so a call
 * that has become another one is refused.
 *
 * That a caller has ended the kernel tells by its descriptor (pidfd_open(2)), not by the listener. */
#include "guard/hold.h"

#include "base/auto.h"
#include "guard/grant.h"
#include "guard/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct question {
    struct question *next;
    uint64_t id;
    struct grants wanted; /* what a yes is about, kept open */
};

struct held {
    struct held *next;
    uint64_t question; /* id */
    struct k_seccomp_notif notif;
    struct answer otherwise;
    int end; /* readable when the caller has ended */
    size_t packet_len;
    struct guard_fact packet; /* as far as `packet_len` */
};

/* --- the question --- */

/* The refused one may be written, too, by the name that it gets: if it has others. */
static bool is_moved_file(const struct request *request, const struct object *object)
{
    return request->call->kind == CALL_RENAME && object->exists && S_ISREG(object->st.st_mode) &&
           object->st.st_nlink > 1;
}

/* A private directory of the sandbox's is nowhere else. */
static bool has_outside(const struct request *request, const struct object *object)
{
    AUTO(place_done) struct place outside = {.dir = -1, .lock = -1};

    return place_outside(request->command, &object->place, &outside);
}

/* All that a yes has to cover for this call. */
static bool want(const struct request *request, struct object *const objects[2], struct grants *ret)
{
    struct grant *items = calloc(2 * GRANTS_OF_CALL, sizeof *items);

    *ret = (struct grants){.items = items};
    if (!items)
        return false;
    for (int i = 0; i < 2 && objects[i]; i++) {
        if (!objects[i]->is_denied && !has_outside(request, objects[i]))
            return false;
        if (!objects[i]->is_denied)
            continue;
        if (!grant_wanted(request, objects[i], &items[ret->len]))
            return false;
        ret->len++;
        if (!is_moved_file(request, objects[i]))
            continue;
        if (!grant_wanted_file(request, objects[i], &items[ret->len]))
            return false;
        ret->len++;
    }
    return ret->len > 0;
}

static bool is_covered(const struct request *request, const struct grants *grants,
                       const struct object *object)
{
    return !object->is_denied || grants_cover(request, &request->command->grants, object) ||
           grants_cover(request, grants, object);
}

/* One of these whose yes would be enough. */
static struct question *find_question(struct question *question, const struct request *request,
                                      struct object *const objects[2])
{
    while (question && !(is_covered(request, &question->wanted, objects[0]) &&
                         (!objects[1] || is_covered(request, &question->wanted, objects[1]))))
        question = question->next;
    return question;
}

/* What a yes covers of the object, for people: "" is the object itself, or nothing. */
static void write_covers(const struct object *object, const struct grants *wanted, bool is_first,
                         char ret[PATH_MAX + 1])
{
    const bool needs = object && object->is_denied;

    snprintf(ret, PATH_MAX + 1, "%s", needs && !is_first ? object->path : "");
    for (uint32_t i = 0; needs && i < wanted->len; i++) {
        const char *folder = wanted->items[i].path;

        if (wanted->items[i].kind == GRANT_CONTENTS && map_is_within(object->path, folder) &&
            (!object->exists || strcmp(folder, object->path) == 0))
            snprintf(ret, PATH_MAX + 1, "%s/", folder);
    }
}

/* The packet goes on with what a yes covers; its length. */
static size_t write_question(struct object *const objects[2], const struct grants *wanted,
                             struct guard_fact *packet, size_t len)
{
    char covers[PATH_MAX + 1];

    for (int i = 0; i < 2; i++) {
        write_covers(objects[i], wanted, i == 0, covers);
        memcpy((char *)packet + len, covers, strlen(covers) + 1);
        len += strlen(covers) + 1;
    }
    return len;
}

static void question_free(struct question *question)
{
    grants_done(&question->wanted);
    free(question);
}

/* NULL: it cannot be asked. */
static struct question *ask(const struct request *request, struct object *const objects[2],
                            const struct guard_fact *packet, size_t len)
{
    struct holds *holds = &request->command->holds;
    struct question *question;
    struct guard_fact asked;

    if (holds->questions_len == QUESTIONS_MAX)
        return NULL;
    question = calloc(1, sizeof *question);
    if (!question)
        return NULL;
    memcpy(&asked, packet, len);
    asked.kind = GUARD_FACT_ASKED;
    asked.id = request->command->last_id + 1;
    if (want(request, objects, &question->wanted)) {
        len = write_question(objects, &question->wanted, &asked, len);
        if (facts_send(request->command, &asked, len)) {
            question->id = ++request->command->last_id;
            question->next = holds->questions;
            holds->questions = question;
            holds->questions_len++;
            return question;
        }
    }
    question_free(question);
    return NULL;
}

/* A program that was told no tries again: access(2) and then open(2), the next name, the next round. The
 * last REFUSED_MAX are remembered. */
static void remember_refused(struct holds *holds, struct question *question)
{
    struct question **at = &holds->refused;

    question->next = holds->refused;
    holds->refused = question;
    for (int i = 0; i < REFUSED_MAX && *at; i++)
        at = &(*at)->next;
    if (*at) {
        question_free(*at);
        *at = NULL;
    }
}

static struct question *question_take(struct holds *holds, uint64_t id)
{
    for (struct question **at = &holds->questions; *at; at = &(*at)->next) {
        struct question *question = *at;

        if (question->id != id)
            continue;
        *at = question->next;
        holds->questions_len--;
        return question;
    }
    return NULL;
}

/* --- the calls --- */

/* A child of ours may have a copy of the descriptor for a moment, so that closing it is not enough. */
static void held_free(struct command *command, struct held *held)
{
    epoll_ctl(command->ends, EPOLL_CTL_DEL, held->end, NULL);
    close(held->end);
    free(held);
}

/* NULL when the caller is gone, or cannot be watched. */
static struct held *held_new(const struct request *request, const struct guard_fact *packet,
                             size_t len)
{
    struct held *held = malloc(offsetof(struct held, packet) + len);
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = held}};

    if (!held)
        return NULL;
    memset(held, 0, offsetof(struct held, packet));
    held->notif = *request->notif;
    held->end = remote_pidfd(request->thread);
    held->packet_len = len;
    memcpy(&held->packet, packet, len);
    if (held->end >= 0 && request_is_valid(request) &&
        epoll_ctl(request->command->ends, EPOLL_CTL_ADD, held->end, &event) == 0)
        return held;
    auto_close(&held->end);
    free(held);
    return NULL;
}

bool hold_call(const struct request *request, const struct fact *fact,
               struct object *const objects[2], struct answer otherwise)
{
    struct holds *holds = &request->command->holds;
    struct question *question;
    struct guard_fact packet;
    struct held *held, **at;
    size_t len;

    if (request->command->ends < 0 || request->attempt == ATTEMPT_ANSWERED)
        return false;
    if (request->attempt == ATTEMPT_AGAIN)
        return true; /* as it was */
    if (holds->calls_len == HELD_MAX || find_question(holds->refused, request, objects))
        return false;
    len = facts_write(request, fact, &packet);
    facts_name(&packet);
    held = held_new(request, &packet, len);
    if (!held)
        return false;
    question = find_question(holds->questions, request, objects);
    if (!question)
        question = ask(request, objects, &packet, len);
    if (!question) {
        held_free(request->command, held);
        return false;
    }
    held->question = question->id;
    held->packet.id = question->id;
    held->otherwise = otherwise;
    for (at = &holds->calls; *at; at = &(*at)->next)
        continue;
    *at = held; /* the first comes first */
    holds->calls_len++;
    return true;
}

static struct request request_of(struct command *command, const struct held *held,
                                 enum attempt attempt)
{
    return (struct request){
        .command = command,
        .call = call_find(held->notif.data.nr),
        .notif = &held->notif,
        .thread = (pid_t)held->notif.pid,
        .attempt = attempt,
    };
}

static void refuse(struct command *command, struct held *held)
{
    const struct request request = request_of(command, held, ATTEMPT_ANSWERED);

    if (!request_is_valid(&request))
        return;
    facts_tell_denied(command, &held->packet, held->packet_len);
    request_respond(&request, held->otherwise);
}

/* false: it stays held. */
static bool try_again(struct command *command, struct held *held, enum attempt attempt)
{
    const struct request request = request_of(command, held, attempt);
    struct answer answer;

    if (!request_is_valid(&request))
        return true;
    answer = request_handle(&request);
    if (answer.kind == ANSWER_HELD)
        return false;
    if (answer.is_granted) {
        held->packet.kind = GUARD_FACT_DONE;
        held->packet.error = answer.kind == ANSWER_ERROR ? answer.number : 0;
        held->packet.time_ns = now_ns();
        facts_send(command, &held->packet, held->packet_len);
    }
    request_respond(&request, answer);
    return true;
}

/* Takes a call off the list. */
static struct held *held_take(struct holds *holds, struct held **at)
{
    struct held *held = *at;

    *at = held->next;
    holds->calls_len--;
    return held;
}

/* Questions that no call waits for. */
static void withdraw(struct command *command)
{
    struct holds *holds = &command->holds;
    struct question *next;

    for (struct question *question = holds->questions; question; question = next) {
        const struct held *held = holds->calls;

        next = question->next;
        while (held && held->question != question->id)
            held = held->next;
        if (held)
            continue;
        facts_tell_withdrawn(command, question->id);
        question_free(question_take(holds, question->id));
    }
}

void hold_answer(struct command *command, uint64_t id, enum guard_verdict verdict)
{
    struct holds *holds = &command->holds;
    struct question *question = question_take(holds, id);
    bool is_yes = verdict == GUARD_YES;

    if (!question)
        return;
    if (is_yes) {
        is_yes = grants_add(&command->grants, &question->wanted);
        question_free(question);
    } else {
        remember_refused(holds, question);
    }
    for (struct held **at = &holds->calls; *at;) {
        struct held *held = *at;
        bool is_asked = held->question == id;

        if (is_asked && verdict == GUARD_STOP)
            remote_terminate(held->end);
        if (is_asked && !is_yes)
            refuse(command, held);
        else if ((!is_asked && !is_yes) ||
                 !try_again(command, held, is_asked ? ATTEMPT_ANSWERED : ATTEMPT_AGAIN)) {
            at = &held->next;
            continue;
        }
        held_free(command, held_take(holds, at));
    }
    withdraw(command);
}

void hold_look(struct command *command)
{
    struct holds *holds = &command->holds;
    struct epoll_event event;

    while (epoll_wait(command->ends, &event, 1, 0) > 0) {
        const struct held *ended = event.data.ptr;

        epoll_ctl(command->ends, EPOLL_CTL_DEL, ended->end, NULL);
    }
    for (struct held **at = &holds->calls; *at;) {
        const struct request request = request_of(command, *at, ATTEMPT_AGAIN);

        if (request_is_valid(&request))
            at = &(*at)->next;
        else
            held_free(command, held_take(holds, at));
    }
    withdraw(command);
}

void hold_end(struct command *command)
{
    struct holds *holds = &command->holds;

    while (holds->calls)
        held_free(command, held_take(holds, &holds->calls));
    withdraw(command);
    while (holds->refused) {
        struct question *question = holds->refused;

        holds->refused = question->next;
        question_free(question);
    }
}
