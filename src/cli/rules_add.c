/* `cordon rules add`: appends one rule. Unless it is told otherwise the rule spares the prompt and
 * keeps the sandbox; what it grants is said. */
#include "cli/rules.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/console.h"
#include "rules/banned_prefix.h"

#include <stdint.h>
#include <unistd.h>

/* ERR_INVALID for a --sandbox that does not go with the decision. */
static int choose_verdict(const struct rules_options *options, enum rule_verdict *ret,
                          struct err *err)
{
    bool is_allow = !options->decision || str_eq(options->decision, "allow");

    if (options->sandbox && (!is_allow || options->host))
        return err_set(err, ERR_INVALID,
                       "--sandbox says what a command is granted that is allowed; leave it out of "
                       "other rules");
    if (!is_allow)
        *ret = str_eq(options->decision, "prompt") ? RULE_PROMPT : RULE_FORBIDDEN;
    else
        *ret = options->sandbox && str_eq(options->sandbox, "bypass") ? RULE_BYPASS : RULE_KEEP;
    return 0;
}

/* Caller frees; NULL on failure. */
static char *make_line(const struct rules_options *options, char **words, struct err *err)
{
    enum rule_verdict verdict = RULE_PROMPT;

    if (choose_verdict(options, &verdict, err))
        return NULL;
    if (!options->host)
        return rule_line_for_prefix(words, verdict, options->justification, err);
    return rule_line_for_host(options->host, rules_options_protocol(options), verdict,
                              options->justification, err);
}

/* The file that is appended to; caller frees. */
static char *choose_file(const struct rules_source *source, struct err *err)
{
    const struct strv *files = &source->options->files;
    AUTO_FREE char *folder = NULL;

    if (files->len > 1) {
        err_set(err, ERR_INVALID, "a rule is added to one file; give --rules once");
        return NULL;
    }
    if (files->len) {
        folder = getcwd(NULL, 0);
        return path_clean(folder ? folder : "/", files->items[0]);
    }
    if (!source->places.user) {
        err_set(err, ERR_INVALID, "the config folder is not known; set CORDON_HOME");
        return NULL;
    }
    folder = path_join(source->places.user, RULES_FOLDER);
    return path_join(folder, RULES_DEFAULT);
}

static void warn(const struct rules_options *options, char **words)
{
    bool is_allow = !options->decision || str_eq(options->decision, "allow");

    if (!options->host && is_allow && prefix_is_banned(words))
        console_say("this allows whatever %s can be made to run; a longer rule is safer", words[0]);
}

static int append(const struct rules_source *source, const char *line, const char *path)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    enum rules_append outcome;
    struct err err;

    if (rules_append(path, source->places.home, line, &outcome, &err))
        return console_fail(&err);
    console_line(&text, "%s %s", outcome == RULES_APPENDED ? "added to" : "already in", path);
    console_line(&text, "  %s", line);
    return rules_print(source->options,
                       json_pack("{s:o, s:o, s:b}", "file", json_lossy(path), "rule",
                                 json_lossy(line), "added", outcome == RULES_APPENDED),
                       &text);
}

int rules_add(const struct rules_options *options, char **words)
{
    AUTO(rules_source_done) struct rules_source source = {.options = options};
    AUTO_FREE char *line = NULL;
    AUTO_FREE char *path = NULL;
    struct err err;

    if (!options->host == !*words) {
        console_say("say what the rule is about: cordon rules add -- WORD..., or --host NAME");
        return EXIT_FAILED;
    }
    if (rules_source_init(&source, options, &err))
        return console_fail(&err);
    line = make_line(options, words, &err);
    path = line ? choose_file(&source, &err) : NULL;
    if (!path)
        return console_fail(&err);
    warn(options, words);
    return append(&source, line, path);
}
