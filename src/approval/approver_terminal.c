/* See approver_terminal.h. Only the keys on offer are taken; anything else asks again; an end of the
 * input is a no. */
#include "approval/approver_terminal.h"

#include "approval/approval.h"
#include "approval/prompt.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

struct approver_terminal {
    struct approver approver; /* first */
    struct prompt *prompt;
    char *who;
    struct terminal_question *questions; /* that are asked now, or wait for it */
};

struct terminal_question {
    struct prompt_item item; /* first */
    struct approver_terminal *approver;
    struct terminal_question *next;
    const struct approval_request *question;
};

struct key {
    char key;
    enum approval_decision decision;
    const char *text;
};

static const struct key keys[] = {
    {'y', APPROVAL_APPROVED, "yes, this once"},
    {'s', APPROVAL_FOR_SESSION, "yes, and do not ask again in this session"},
    {'a', APPROVAL_WITH_RULE, "yes, and always allow what begins with: "},
    {'u', APPROVAL_UNCONFINED, "yes, this once and without any sandbox"},
    {'n', APPROVAL_DENIED, "no"},
    {'q', APPROVAL_ABORT, "no, and stop"},
};

static void question_free(struct terminal_question *asked)
{
    struct terminal_question **at = &asked->approver->questions;

    while (*at != asked)
        at = &(*at)->next;
    *at = asked->next;
    free(asked);
}

/* --- what is shown --- */

static void write_keys(const struct prompt_item *item, struct buf *text)
{
    const struct approval_request *question = ((const struct terminal_question *)item)->question;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        AUTO_FREE char *prefix = NULL;

        if (!approval_offers(question, keys[i].decision))
            continue;
        if (keys[i].decision == APPROVAL_WITH_RULE)
            prefix = approval_command_text(strv_view(&question->proposal));
        buf_appendf(text, "  [%c] %s%s\n", keys[i].key, keys[i].text, prefix ? prefix : "");
    }
    buf_append_str(text, "> ");
}

static void write_question(const struct prompt_item *item, struct buf *text)
{
    const struct terminal_question *asked = (const struct terminal_question *)item;
    const struct approval_request *question = asked->question;
    const char *who = asked->approver->who;
    AUTO_FREE char *command = approval_command_text(strv_view(&question->argv));
    AUTO_FREE char *cwd = approval_plain_text(question->cwd);
    AUTO_FREE char *reason = approval_plain_text(question->reason);
    AUTO_FREE char *covers = approval_plain_text(question->covers);

    buf_appendf(text, "\ncordon: %s\n    %s\n",
                question->kind == APPROVAL_KIND_RETRY ? "run this once more?" : "run this command?",
                command);
    if (who)
        buf_appendf(text, "  for:     %s\n", who);
    buf_appendf(text, "  in:      %s\n  because: %s\n  a yes covers: %s\n", cwd, reason, covers);
}

/* --- its answer --- */

/* A line of exactly one key: "unsure" begins like a yes without any sandbox. */
static const struct key *find_key(const struct approval_request *question, const char *line)
{
    line += strspn(line, " ");
    if (!*line || line[1 + strspn(line + 1, " \r\n")])
        return NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if ((*line | 0x20) == keys[i].key && approval_offers(question, keys[i].decision))
            return &keys[i];
    return NULL;
}

static bool take_line(struct prompt_item *item, const char *line)
{
    struct terminal_question *asked = (struct terminal_question *)item;
    struct approvals *approvals = asked->approver->approver.approvals;
    const struct key *key = line ? find_key(asked->question, line) : NULL;
    struct approval_answer answer = {.decision = APPROVAL_DENIED, .by = "terminal"};
    AUTO_FREE char *id = alloc_str(asked->question->id);
    struct err ignored; /* it is open, and offers this */

    if (line && !key)
        return false;
    if (key)
        answer.decision = key->decision;
    prompt_done(asked->approver->prompt, item);
    question_free(asked);
    approvals_answer(approvals, id, &answer, &ignored);
    return true;
}

/* --- asking --- */

static void terminal_ask(struct approver *approver, const struct approval_request *question)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;
    struct terminal_question *asked = alloc_zero(1, sizeof *asked);
    struct err ignored; /* then the next approver has it */

    *asked = (struct terminal_question){
        .item = {.write = write_question, .write_keys = write_keys, .take = take_line},
        .approver = terminal,
        .next = terminal->questions,
        .question = question,
    };
    terminal->questions = asked;
    if (prompt_add(terminal->prompt, &asked->item, &ignored) == 0)
        return;
    question_free(asked);
    approvals_pass(approver->approvals, question->id);
}

static void terminal_withdraw(struct approver *approver, const char *id)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;

    for (struct terminal_question *asked = terminal->questions; asked; asked = asked->next)
        if (str_eq(asked->question->id, id)) {
            prompt_remove(terminal->prompt, &asked->item);
            question_free(asked);
            return;
        }
}

static void terminal_free(struct approver *approver)
{
    struct approver_terminal *terminal = (struct approver_terminal *)approver;

    while (terminal->questions) {
        prompt_remove(terminal->prompt, &terminal->questions->item);
        question_free(terminal->questions);
    }
    free(terminal->who);
    free(terminal);
}

struct approver *approver_terminal_new(struct prompt *prompt, const char *who)
{
    struct approver_terminal *terminal = alloc_zero(1, sizeof *terminal);

    terminal->approver = (struct approver){
        .ask = terminal_ask, .withdraw = terminal_withdraw, .free = terminal_free};
    terminal->prompt = prompt;
    terminal->who = alloc_str(who);
    return &terminal->approver;
}
