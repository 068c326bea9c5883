/* `.rules` files: the input is a file. Beside memory errors: an error begins with file, line and
 * column and ends in words; what the file says about a command does not depend on whether it is
 * loaded once or twice; a broken file allows nothing; and a line that Cordon writes for a word of
 * the input is read back as that word. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "base/utf8.h"
#include "rules/rules.h"
#include "rules/rules_disk.h"
#include "rules/shell/shell_words.h"

#include <stdlib.h>
#include <string.h>

static const struct rules_origin origin = {.file = "f.rules", .home = "/home/u"};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct rules *load(const char *text, size_t len, int times, bool *ret_ok)
{
    struct rules *rules = rules_new();
    struct err err;

    *ret_ok = true;
    for (int i = 0; i < times; i++)
        if (rules_add_text(rules, &origin, text, len, &err)) {
            *ret_ok = false;
            check(err.code == ERR_INVALID);
            check(str_starts(err.msg, "f.rules:"));
            check(strlen(err.msg) > strlen("f.rules:1:1: "));
        }
    rules_seal(rules);
    return rules;
}

static enum rule_verdict decide(const struct rules *rules, const struct strv *words)
{
    const struct shell_command command = {.words = *words, .exact = words->len};
    struct rules_decision decision;
    enum rule_verdict verdict;

    rules_decide(rules, &command, &decision);
    verdict = decision.verdict;
    check((decision.len > 0) == (rules_decision_match(&decision) != NULL));
    rules_decision_done(&decision);
    return verdict;
}

/* Every command that stands in an example. */
static void check_commands(const char *text, size_t len, const struct rules *once,
                           const struct rules *twice, bool is_ok)
{
    struct rules_file file;
    struct err err;

    (void)rules_file_parse(&origin, text, len, &file, &err);
    for (size_t i = 0; i < file.examples_len; i++) {
        const struct strv *words = &file.examples[i].words;
        enum rule_verdict verdict;

        if (!words->len)
            continue; /* of an example that made the file fail */
        verdict = decide(once, words);
        check(verdict == decide(twice, words));
        check(is_ok || verdict >= RULE_PROMPT);
    }
    rules_file_done(&file);
}

static void check_line(const char *word)
{
    char *const words[] = {(char *)word, NULL};
    AUTO(strv_done) struct strv command = {0};
    struct err err;
    AUTO_FREE char *line = rule_line_for_prefix(words, RULE_FORBIDDEN, NULL, &err);
    struct rules *rules;
    bool is_ok;

    check(line || !utf8_is_valid(word, strlen(word)));
    if (!line)
        return;
    rules = load(line, strlen(line), 1, &is_ok);
    strv_push(&command, word);
    check(is_ok && decide(rules, &command) == RULE_FORBIDDEN);
    rules_free(rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    AUTO_FREE char *word = alloc_strn(text, size);
    bool is_ok;
    bool is_ok_twice;
    struct rules *once = load(text, size, 1, &is_ok);
    struct rules *twice = load(text, size, 2, &is_ok_twice);

    check(is_ok == is_ok_twice);
    check_commands(text, size, once, twice, is_ok);
    if (*word)
        check_line(word);
    rules_free(once);
    rules_free(twice);
    return 0;
}
