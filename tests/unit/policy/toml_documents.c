/* Reads TOML for tests/e2e/test_toml.py: every line of stdin is a document, as a JSON string; every
 * line of stdout is {"tree": ...} or {"error": "LINE:COLUMN: ..."}. */
#include "toml_json.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, stdin) > 0) {
        json_t *text = json_loads(line, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        struct err err = {0};
        struct toml_node *root =
            toml_parse(json_string_value(text), json_string_length(text), &err);
        json_t *answer = root ? json_pack("{s:o}", "tree", toml_to_json(root))
                              : json_pack("{s:s}", "error", err.msg);

        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(answer);
        json_decref(text);
        toml_free(root);
    }
    free(line);
    return 0;
}
