/* For tests/e2e/test_shell_words.py: what src/rules reads out of scripts. On stdin records of
 * "LENGTH\n" and that many bytes, each a script of `bash -c`; per record one line of JSON on
 * stdout:
 *
 *     {"opaque": REASON or null, "offset": N, "commands": [[WORD...]...], "exact": [N...],
 *      "inside": [[WORD...]...], "danger": "none" | "forced-rm" | "other"}
 *
 * `commands` is empty when opaque. */
#include "base/auto.h"
#include "base/json.h"
#include "rules/shell/command_class.h"
#include "rules/shell/command_view.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *words_to_json(const struct shell_commands *commands)
{
    json_t *list = json_array();

    for (size_t i = 0; i < commands->len; i++) {
        json_t *words = json_array();

        for (size_t word = 0; word < commands->items[i].words.len; word++)
            json_array_append_new(words, json_lossy(commands->items[i].words.items[word]));
        json_array_append_new(list, words);
    }
    return list;
}

static json_t *exact_to_json(const struct shell_commands *commands)
{
    json_t *list = json_array();

    for (size_t i = 0; i < commands->len; i++)
        json_array_append_new(list, json_integer((json_int_t)commands->items[i].exact));
    return list;
}

static json_t *script_to_json(char *text, size_t len)
{
    static const char *const dangers[] = {"none", "forced-rm", "other"};
    char shell[] = "bash", option[] = "-c";
    char *const argv[] = {shell, option, text, NULL};
    AUTO(shell_script_done) struct shell_script script = {0};
    AUTO(command_view_done) struct command_view view = {0};

    shell_script_parse(text, len, &script);
    command_view_make(argv, &view);
    return json_pack("{s:s? s:I s:o s:o s:o s:s}", "opaque", script.opaque, "offset",
                     (json_int_t)script.offset, "commands", words_to_json(&script.commands),
                     "exact", exact_to_json(&script.commands), "inside",
                     words_to_json(&view.inside), "danger", dangers[command_view_danger(&view)]);
}

int main(void)
{
    size_t len;

    while (scanf("%zu", &len) == 1) {
        AUTO_FREE char *text = calloc(len + 1, 1);
        AUTO_JSON json_t *json = NULL;

        if (!text || getchar() != '\n' || fread(text, 1, len, stdin) != len) {
            fputs("show_commands: not LENGTH, line feed and that many bytes\n", stderr);
            return 2;
        }
        json = script_to_json(text, len);
        json_dumpf(json, stdout, JSON_COMPACT);
        putchar('\n');
    }
    return 0;
}
