/* See prefix_rule.h. Words are compared as they are: no globs, no case, no look at the disk. A word
 * that a shell may still expand fits nothing for sure, and could fit anything. */
#include "rules/file/prefix_rule.h"

#include "base/buf.h"
#include "base/str.h"
#include "rules/shell/shell_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void prefix_rule_done(struct prefix_rule *rule)
{
    for (size_t i = 0; i < rule->len; i++)
        strv_done(&rule->words[i]);
    free(rule->words);
    free(rule->justification);
    *rule = (struct prefix_rule){.len = 0};
}

enum prefix_fit prefix_rule_fit(const struct prefix_rule *rule, const char *first,
                                const struct shell_command *command)
{
    size_t known = rule->len < command->exact ? rule->len : command->exact;

    if (!strv_has(&rule->words[0], first))
        return PREFIX_OTHER;
    for (size_t i = 1; i < known; i++)
        if (!strv_has(&rule->words[i], command->words.items[i]))
            return PREFIX_OTHER;
    if (known == rule->len)
        return PREFIX_FITS;
    return command->exact < command->words.len ? PREFIX_MAYBE : PREFIX_OTHER;
}

/* Quoted, when it would not be one word otherwise. */
static void word_print(const char *word, struct buf *ret)
{
    bool is_plain = *word && !strpbrk(word, " \t\n|\"'\\[]");

    buf_append_str(ret, is_plain ? "" : "\"");
    buf_append_str(ret, word);
    buf_append_str(ret, is_plain ? "" : "\"");
}

char *prefix_rule_text(const struct prefix_rule *rule)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < rule->len; i++)
        for (size_t j = 0; j < rule->words[i].len; j++) {
            buf_append_str(&text, j ? "|" : i ? " " : "");
            word_print(rule->words[i].items[j], &text);
        }
    return buf_take(&text);
}

const char *rule_decision_name(enum rule_verdict verdict)
{
    static const char *const names[] = {[RULE_NONE] = "none",
                                        [RULE_BYPASS] = "allow",
                                        [RULE_KEEP] = "allow",
                                        [RULE_PROMPT] = "prompt",
                                        [RULE_FORBIDDEN] = "forbidden"};

    return names[verdict];
}

const char *rule_sandbox_name(enum rule_verdict verdict)
{
    return verdict == RULE_BYPASS ? "bypass" : verdict == RULE_KEEP ? "keep" : NULL;
}

const char *rule_layer_name(enum rule_layer layer)
{
    static const char *const names[] = {[RULE_LAYER_USER] = "user",
                                        [RULE_LAYER_PROJECT] = "project",
                                        [RULE_LAYER_ADMINISTRATOR] = "administrator",
                                        [RULE_LAYER_OPTION] = "option"};

    return names[layer];
}
