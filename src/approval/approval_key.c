/* See approval_key.h. */
#include "approval/approval_key.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "policy/profile_overlay.h"
#include "rules/shell/command_view.h"

#include <string.h>

/* Words need not be UTF-8, and two that are not must not become the same. */
static json_t *word_to_json(const char *word)
{
    AUTO_FREE char *text = NULL;
    size_t len = strlen(word);

    if (utf8_is_valid(word, len))
        return json_string(word);
    text = alloc_zero(base64_encoded_len(len) + 1, 1);
    base64_encode(word, len, text);
    return json_pack("{s:s}", "base64", text);
}

static json_t *words_to_json(char *const *words)
{
    json_t *json = json_array();

    for (; *words; words++)
        json_array_append_new(json, word_to_json(*words));
    return json;
}

/* The words of the one plain command of a script, with nothing left to expand; NULL when it is
 * anything else. */
static const struct shell_command *only_command(const struct shell_script *script)
{
    const struct shell_command *command = script->commands.items;

    if (script->opaque || script->commands.len != 1 || command->exact != command->words.len)
        return NULL;
    return command;
}

static json_t *command_to_json(char *const *argv)
{
    const char *text = argv[0] ? shell_wrapper_script(argv) : NULL;
    AUTO(shell_script_done) struct shell_script script = {0};
    const struct shell_command *command;

    if (!text)
        return json_pack("{s:o}", "argv", words_to_json(argv));
    shell_script_parse(text, strlen(text), &script);
    command = only_command(&script);
    if (command)
        return json_pack("{s:o}", "argv", words_to_json(strv_view(&command->words)));
    return json_pack("{s:o, s:o}", "flag", word_to_json(argv[1]), "script", word_to_json(text));
}

static json_t *entry_to_json(const struct profile_entry *entry)
{
    return json_pack("[i, s, o, o]", (int)entry->path_kind, access_name(entry->access),
                     entry->path ? word_to_json(entry->path) : json_null(),
                     entry->subpath ? word_to_json(entry->subpath) : json_null());
}

static json_t *overlay_to_json(const struct profile_overlay *overlay)
{
    json_t *entries = json_array();

    for (size_t i = 0; overlay && i < overlay->entries.len; i++)
        json_array_append_new(entries, entry_to_json(&overlay->entries.items[i]));
    return json_pack("{s:i, s:o}", "network", overlay ? (int)overlay->network : 0, "entries",
                     entries);
}

/* What the call is about and what it gets beyond its profile. Takes `subject`. */
static char *key_of(const struct approval_call *call, json_t *subject)
{
    AUTO_JSON json_t *json = json_pack("{s:o, s:s, s:o}", "subject", subject, "permissions",
                                       sandbox_permissions_name(call->permissions), "additional",
                                       overlay_to_json(call->additional));

    return json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

static char *command_key(const struct approval_call *call)
{
    return key_of(call, json_pack("{s:o, s:o}", "command", command_to_json(call->argv), "cwd",
                                  word_to_json(call->cwd)));
}

static void file_keys(const struct approval_call *call, struct strv *ret)
{
    size_t len = 0;

    while (call->patched[len])
        if (++len > APPROVAL_FILES_MAX)
            return;
    for (size_t i = 0; i < len; i++) {
        AUTO_FREE char *key =
            key_of(call, json_pack("{s:o}", "file", word_to_json(call->patched[i])));

        if (!strv_has(ret, key))
            strv_push_take(ret, TAKE_PTR(key));
    }
    strv_sort(ret);
}

void approval_keys(const struct approval_call *call, struct strv *ret)
{
    if (call->patched)
        file_keys(call, ret);
    else
        strv_push_take(ret, command_key(call));
}
