/* What the setters of all functions share: errors at the place of a value, and the words that it
 * may be. */
#include "rules/file/rule_draft.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/str.h"
#include "rules/file/rule_token.h"

#include <stdlib.h>
#include <string.h>

void rule_draft_done(struct rule_draft *draft)
{
    prefix_rule_done(&draft->prefix);
    host_rule_done(&draft->host);
    host_program_done(&draft->program);
    free(draft->justification);
}

int rule_draft_fail(const struct rule_draft *draft, const struct rule_value *value, struct err *err,
                    const char *text)
{
    return rule_fail(draft->file->origin.file, value->place, err, "%s", text);
}

int rule_draft_want_string(const struct rule_draft *draft, const struct rule_value *value,
                           const char *what, struct err *err)
{
    if (value->kind == RULE_VALUE_STRING)
        return 0;
    return rule_fail(draft->file->origin.file, value->place, err, "%s is one string, not a list",
                     what);
}

int rule_draft_want_list(const struct rule_draft *draft, const struct rule_value *value,
                         const char *what, struct err *err)
{
    if (value->kind != RULE_VALUE_LIST)
        return rule_fail(draft->file->origin.file, value->place, err, "%s is a list: [...]", what);
    if (!value->len)
        return rule_fail(draft->file->origin.file, value->place, err,
                         "%s is an empty list; it needs an item", what);
    return 0;
}

/* The index of the value among the words. */
int rule_draft_word(const struct rule_draft *draft, const struct rule_value *value,
                    const char *const *words, size_t *ret, struct err *err)
{
    AUTO(buf_done) struct buf list;

    buf_init(&list, sizeof err->msg);
    for (size_t i = 0; words[i]; i++) {
        if (value->kind == RULE_VALUE_STRING && str_eq(words[i], value->text)) {
            *ret = i;
            return 0;
        }
        buf_appendf(&list, "%s\"%s\"", i ? ", " : "", words[i]);
    }
    if (value->kind == RULE_VALUE_LIST)
        return rule_fail(draft->file->origin.file, value->place, err,
                         "a list is not one of the words %s", list.data);
    return rule_fail(draft->file->origin.file, value->place, err,
                     "\"%.40s\" is not one of the words %s", value->text, list.data);
}

int rule_draft_justification(struct rule_draft *draft, const struct rule_value *value,
                             struct err *err)
{
    if (rule_draft_want_string(draft, value, "justification", err))
        return -1;
    if (!value->text[strspn(value->text, " \t\r\n")])
        return rule_draft_fail(draft, value, err,
                               "justification is blank; give a reason or leave it out");
    free(draft->justification);
    draft->justification = alloc_str(value->text);
    return 0;
}
