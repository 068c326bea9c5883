/* Running a pattern. See ere.h.
 *
 * The machine is in a set of states, each with the place in the text where its attempt began; one
 * byte takes the whole set to the next one. A state is entered once per byte, so a byte costs at
 * most the length of the program, and there is nothing to go back to. States are kept in the order
 * in which their attempts began, so the first to enter a state is the leftmost, and once there is a
 * match all attempts behind its beginning are dropped. (Pike's variant of Thompson's machine,
 * without sub-matches.) */
#include "exec/ere.h"

#include "base/alloc.h"
#include "exec/ere_program.h"

#include <ctype.h>
#include <stdlib.h>

struct state {
    int step;
    size_t start; /* where the attempt began */
};

struct states {
    struct state *items;
    size_t len;
};

struct ere {
    struct ere_program program;
    struct states now;
    struct states next;
    size_t *entered; /* per step: the round in which it was entered last */
    size_t round;
    int *pending;         /* steps still to enter */
    struct ere_set first; /* bytes that a match can begin with */
    bool can_be_empty;    /* or hangs on what is around it */
};

struct run {
    struct ere *ere;
    const char *text;
    size_t len;
    unsigned flags;
    bool has_match;
    struct ere_span match;
};

static bool is_word(char c)
{
    return !(c & 0x80) && (isalnum(c) || c == '_'); /* whatever the locale says */
}

static bool is_edge(const struct run *run, size_t at)
{
    bool before = at > 0 && is_word(run->text[at - 1]);
    bool after = at < run->len && is_word(run->text[at]);

    return before != after;
}

/* Whether a step that consumes nothing lets an attempt pass at `at`. */
static bool passes(const struct run *run, enum ere_op op, size_t at)
{
    if (op == ERE_BEGIN)
        return at == 0 && !(run->flags & ERE_NOT_BEGIN);
    if (op == ERE_END)
        return at == run->len && !(run->flags & ERE_NOT_END);
    return is_edge(run, at) == (op == ERE_EDGE);
}

static void take_match(struct run *run, size_t start, size_t at)
{
    if (run->has_match && start > run->match.at)
        return;
    run->has_match = true;
    run->match = (struct ere_span){.at = start, .len = at - start};
}

/* Enters a step and all that can be reached from it without consuming a byte. */
static void enter(struct run *run, struct states *states, struct state state, size_t at)
{
    struct ere *ere = run->ere;
    size_t len = 0;

    ere->pending[len++] = state.step;
    while (len) {
        int index = ere->pending[--len];
        const struct ere_step *step = &ere->program.steps[index];

        if (ere->entered[index] == ere->round)
            continue;
        ere->entered[index] = ere->round;
        if (step->op == ERE_MATCH) {
            take_match(run, state.start, at);
        } else if (step->op == ERE_BYTE || step->op == ERE_SET) {
            states->items[states->len++] = (struct state){.step = index, .start = state.start};
        } else if (step->op == ERE_JUMP || step->op == ERE_SPLIT) {
            ere->pending[len++] = index + step->a;
            if (step->op == ERE_SPLIT)
                ere->pending[len++] = index + step->b;
        } else if (passes(run, step->op, at)) {
            ere->pending[len++] = index + 1;
        }
    }
}

static bool consumes(const struct ere *ere, const struct ere_step *step, uint8_t byte)
{
    return step->op == ERE_BYTE ? step->a == byte : ere_set_has(&ere->program.sets[step->a], byte);
}

/* Takes all states over the byte at `at`. */
static void advance(struct run *run, size_t at)
{
    struct ere *ere = run->ere;
    struct states now = ere->now;

    ere->now = ere->next;
    ere->next = now;
    ere->now.len = 0;
    ere->round++;
    for (size_t i = 0; i < now.len; i++) {
        struct state state = now.items[i];

        if (run->has_match && state.start > run->match.at)
            break;
        if (!consumes(ere, &ere->program.steps[state.step], (uint8_t)run->text[at]))
            continue;
        state.step++;
        enter(run, &ere->now, state, at + 1);
    }
}

bool ere_find(struct ere *ere, const char *text, size_t len, unsigned flags,
              struct ere_span *ret_span)
{
    struct run run = {.ere = ere, .text = text, .len = len, .flags = flags};

    ere->now.len = 0;
    ere->round++;
    for (size_t at = 0; at <= len; at++) {
        if (!run.has_match) {
            while (!ere->now.len && !ere->can_be_empty && at < len &&
                   !ere_set_has(&ere->first, (uint8_t)text[at]))
                at++;
            enter(&run, &ere->now, (struct state){.step = 0, .start = at}, at);
        }
        if (at == len || (run.has_match && !ere->now.len))
            break;
        advance(&run, at);
    }
    if (run.has_match)
        *ret_span = run.match;
    return run.has_match;
}

/* Finds out what a match can begin with, from the steps that are reached without a byte. */
static void find_first(struct ere *ere)
{
    const struct ere_program *program = &ere->program;
    size_t len = 0;

    ere->round++;
    ere->pending[len++] = 0;
    while (len) {
        int index = ere->pending[--len];
        const struct ere_step *step = &program->steps[index];

        if (ere->entered[index] == ere->round)
            continue;
        ere->entered[index] = ere->round;
        if (step->op == ERE_JUMP || step->op == ERE_SPLIT) {
            ere->pending[len++] = index + step->a;
            if (step->op == ERE_SPLIT)
                ere->pending[len++] = index + step->b;
        } else if (step->op == ERE_BYTE || step->op == ERE_SET) {
            for (int byte = 0; byte < 256; byte++)
                if (consumes(ere, step, (uint8_t)byte))
                    ere_set_add(&ere->first, (uint8_t)byte);
        } else {
            ere->can_be_empty = true;
        }
    }
}

struct ere *ere_new(const char *pattern, struct err *err)
{
    struct ere *ere = alloc_zero(1, sizeof *ere);
    size_t len;

    if (ere_parse(pattern, &ere->program, err)) {
        ere_free(ere);
        return NULL;
    }
    len = ere->program.len;
    ere->now.items = alloc_zero(len, sizeof *ere->now.items);
    ere->next.items = alloc_zero(len, sizeof *ere->next.items);
    ere->entered = alloc_zero(len, sizeof *ere->entered);
    ere->pending = alloc_zero(len * 2 + 1, sizeof *ere->pending);
    find_first(ere);
    return ere;
}

void ere_free(struct ere *ere)
{
    if (!ere)
        return;
    ere_program_done(&ere->program);
    free(ere->now.items);
    free(ere->next.items);
    free(ere->entered);
    free(ere->pending);
    free(ere);
}
