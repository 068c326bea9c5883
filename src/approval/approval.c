/* See approval.h. A question is shown to people as text, sent to programs as JSON, and remembered,
 * when it was answered for the session, by its keys: JSON texts that are equal for calls that are
 * the same. */
#include "approval/approval.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/utf8.h"
#include "policy/profile.h"
#include "rules/shell/command_view.h"

#include <stdint.h>
#include <string.h>

static const char *const decision_names[APPROVAL_DECISIONS] = {
    [APPROVAL_APPROVED] = "approved",
    [APPROVAL_FOR_SESSION] = "approved_for_session",
    [APPROVAL_WITH_RULE] = "approved_execpolicy_amendment",
    [APPROVAL_UNCONFINED] = "approved_without_sandbox",
    [APPROVAL_DENIED] = "denied",
    [APPROVAL_TIMED_OUT] = "timed_out",
    [APPROVAL_ABORT] = "abort",
    [APPROVAL_NO_BY_RULE] = "denied_execpolicy_amendment",
};

static const char *const kind_names[] = {
    [APPROVAL_KIND_COMMAND] = "command",
    [APPROVAL_KIND_RETRY] = "retry",
    [APPROVAL_KIND_HELD] = "held",
};

void approval_request_copy(const struct approval_request *question, struct approval_request *ret)
{
    *ret = (struct approval_request){
        .id = alloc_str(question->id),
        .kind = question->kind,
        .cwd = alloc_str(question->cwd),
        .reason = alloc_str(question->reason),
        .covers = alloc_str(question->covers),
        .programs = alloc_str(question->programs),
        .is_wider = question->is_wider,
        .offers = question->offers,
        .number = question->number,
        .host = {alloc_str(question->host.name), question->host.port, question->host.protocol},
    };
    strv_push_all(&ret->argv, strv_view(&question->argv));
    strv_push_all(&ret->variables, strv_view(&question->variables));
    strv_push_all(&ret->proposal, strv_view(&question->proposal));
    strv_push_all(&ret->keys, strv_view(&question->keys));
}

void approval_request_done(struct approval_request *question)
{
    free(question->id);
    strv_done(&question->argv);
    free(question->cwd);
    free(question->reason);
    free(question->covers);
    free(question->programs);
    strv_done(&question->variables);
    strv_done(&question->proposal);
    free(question->host.name);
    strv_done(&question->keys);
    *question = (struct approval_request){0};
}

void approval_answer_done(struct approval_answer *answer)
{
    free(answer->reason);
    *answer = (struct approval_answer){0};
}

const char *approval_decision_name(enum approval_decision decision)
{
    return decision_names[decision];
}

bool approval_decision_is_yes(enum approval_decision decision)
{
    return decision <= APPROVAL_UNCONFINED;
}

bool approval_offers(const struct approval_request *question, enum approval_decision decision)
{
    return question->offers & 1u << decision;
}

int approval_decision_parse(const char *word, const struct approval_request *question,
                            enum approval_decision *ret, struct err *err)
{
    AUTO(buf_done) struct buf list = {0};

    buf_init(&list, SIZE_MAX / 2);
    for (int i = 0; i < APPROVAL_DECISIONS; i++) {
        if (!approval_offers(question, (enum approval_decision)i))
            continue;
        if (str_eq(word, decision_names[i])) {
            *ret = (enum approval_decision)i;
            return 0;
        }
        buf_appendf(&list, "%s%s", list.len ? ", " : "", decision_names[i]);
    }
    return err_set(err, ERR_INVALID, "\"%s\" is not one of the decisions offered: %s", word,
                   list.data ? list.data : "none");
}

static json_t *offers_to_json(const struct approval_request *question)
{
    json_t *json = json_array();

    for (int i = 0; i < APPROVAL_DECISIONS; i++)
        if (approval_offers(question, (enum approval_decision)i))
            json_array_append_new(json, json_string(decision_names[i]));
    return json;
}

static json_t *host_to_json(const struct approval_host *host)
{
    return host->name ? json_pack("{s:s, s:i, s:s}", "host", host->name, "port", (int)host->port,
                                  "protocol", network_protocol_words[host->protocol])
                      : json_null();
}

json_t *approval_request_to_json(const struct approval_request *question)
{
    bool has_proposal = approval_offers(question, APPROVAL_WITH_RULE) && !question->host.name;

    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", json_lossy(question->id),
        "kind", kind_names[question->kind], "argv", json_lossy_list(strv_view(&question->argv)),
        "cwd", json_lossy(question->cwd), "reason", json_lossy(question->reason), "covers",
        json_lossy(question->covers), "programs", json_lossy(question->programs), "variables",
        json_lossy_list(strv_view(&question->variables)), "proposed_execpolicy_amendment",
        has_proposal ? json_lossy_list(strv_view(&question->proposal)) : json_null(), "network",
        host_to_json(&question->host), "available_decisions", offers_to_json(question));
}

json_t *approval_answer_to_json(const struct approval_answer *answer)
{
    return json_pack("{s:s, s:s, s:o}", "decision", approval_decision_name(answer->decision), "by",
                     answer->by, "reason", json_lossy(answer->reason));
}

/* --- keys: under which texts a yes for the session is remembered --- */

/* Words need not be UTF-8, and two that are not must not become the same. */
static json_t *key_word(const char *word)
{
    AUTO_FREE char *text = NULL;
    size_t len = strlen(word);

    if (utf8_is_valid(word, len))
        return json_string(word);
    text = alloc_zero(base64_encoded_len(len) + 1, 1);
    base64_encode(word, len, text);
    return json_pack("{s:s}", "base64", text);
}

static json_t *key_words(char *const *words)
{
    json_t *json = json_array();

    for (; *words; words++)
        json_array_append_new(json, key_word(*words));
    return json;
}

/* A script of one plain command, with nothing left to expand, is that command. */
static json_t *key_command(char *const *argv)
{
    const char *text = argv[0] ? shell_wrapper_script(argv) : NULL;
    AUTO(shell_script_done) struct shell_script script = {0};
    const struct shell_command *command;

    if (!text)
        return json_pack("{s:o}", "argv", key_words(argv));
    shell_script_parse(text, strlen(text), &script);
    command = script.commands.items;
    if (!script.opaque && script.commands.len == 1 && command->exact == command->words.len)
        return json_pack("{s:o}", "argv", key_words(strv_view(&command->words)));
    return json_pack("{s:o, s:o}", "flag", key_word(argv[1]), "script", key_word(text));
}

static json_t *key_entry(const struct profile_entry *entry)
{
    return json_pack("[i, s, o, o]", (int)entry->path_kind, access_name(entry->access),
                     entry->path ? key_word(entry->path) : json_null(),
                     entry->subpath ? key_word(entry->subpath) : json_null());
}

static json_t *key_overlay(const struct profile_overlay *overlay)
{
    json_t *entries = json_array();

    for (size_t i = 0; overlay && i < overlay->entries.len; i++)
        json_array_append_new(entries, key_entry(&overlay->entries.items[i]));
    return json_pack("{s:i, s:o}", "network", overlay ? (int)overlay->network : 0, "entries",
                     entries);
}

/* Two sandboxes are the same when their profiles say the same. */
static json_t *key_sandbox(const struct profile *profile, char *const *roots)
{
    json_t *entries = json_array();

    for (size_t i = 0; profile && i < profile->entries.len; i++)
        json_array_append_new(entries, key_entry(&profile->entries.items[i]));
    return json_pack("{s:i, s:i, s:o, s:o}", "kind", profile ? (int)profile->kind : -1, "network",
                     profile ? (int)profile->network : -1, "entries", entries, "roots",
                     roots ? key_words(roots) : json_null());
}

/* What the call is about, what it gets beyond its profile, and that. Takes `subject`. */
static char *key_of(const struct approval_call *call, json_t *subject)
{
    AUTO_JSON json_t *json = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o}", "subject", subject, "permissions",
        sandbox_permissions_name(call->permissions), "additional", key_overlay(call->additional),
        "programs", call->programs ? key_word(call->programs) : json_null(), "variables",
        call->variables ? key_words(strv_view(call->variables)) : json_null(), "sandbox",
        key_sandbox(call->profile, call->roots));

    return json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

static void file_keys(const struct approval_call *call, struct strv *ret)
{
    size_t len = 0;

    while (call->patched[len])
        if (++len > APPROVAL_FILES_MAX)
            return;
    for (size_t i = 0; i < len; i++) {
        AUTO_FREE char *key = key_of(call, json_pack("{s:o}", "file", key_word(call->patched[i])));

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
        strv_push_take(ret, key_of(call, json_pack("{s:o, s:o}", "command", key_command(call->argv),
                                                   "cwd", key_word(call->cwd))));
}

char *approval_held_key(const char *what, char *const *places)
{
    AUTO_JSON json_t *json = json_pack("{s:s, s:o}", "held", what, "places", key_words(places));

    return json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
}

/* --- for people --- */

static void add_word(struct buf *text, const char *word)
{
    if (*word && !word[strcspn(word, " \t\n\"'\\$`;&|<>()*?[]#~!{}")]) {
        buf_append_str(text, word);
        return;
    }
    buf_append_str(text, "'");
    for (size_t len; *word; word += len) {
        len = strcspn(word, "'");
        buf_append(text, word, len);
        if (word[len] == '\'') {
            buf_append_str(text, "'\\''");
            len++;
        }
    }
    buf_append_str(text, "'");
}

char *approval_plain_text(const char *text)
{
    return utf8_plain(text ? text : "");
}

char *approval_command_text(char *const *argv)
{
    AUTO(buf_done) struct buf words = {0};

    buf_init(&words, SIZE_MAX / 2);
    for (; *argv; argv++) {
        buf_append_str(&words, words.len ? " " : "");
        add_word(&words, *argv);
    }
    return approval_plain_text(words.data);
}

char *approval_host_text(const struct approval_host *host)
{
    return alloc_strf("%s to %s, at every port", network_protocol_words[host->protocol],
                      host->name);
}

char *approval_host_key(const struct approval_host *host)
{
    char *const what[] = {(char *)network_protocol_words[host->protocol], host->name, NULL};

    return approval_held_key("host at every port", what);
}

char *approval_word_text(const char *word)
{
    AUTO_FREE char *copy = alloc_str(word);
    char *const argv[] = {copy, NULL};

    return approval_command_text(argv);
}

/* "; for the session: also every later patch of /w/a, /w/b"; "" for none. Caller frees. */
static char *later_patches(char *const *files)
{
    enum { SHOWN_MAX = 10 };
    AUTO(buf_done) struct buf text = {0};
    size_t len = 0;

    buf_init(&text, SIZE_MAX / 2);
    for (; files && files[len]; len++)
        if (len < SHOWN_MAX)
            buf_appendf(&text, "%s%s", len ? ", " : "; for the session: also every later patch of ",
                        files[len]);
    if (len > SHOWN_MAX)
        buf_appendf(&text, " and %zu more files", len - SHOWN_MAX);
    return alloc_str(text.data ? text.data : "");
}

static char *covers_once(const struct approval_scope *scope)
{
    static const char retry[] = "; and once more without a sandbox, should it refuse something";
    const char *and_retry = scope->covers_retry ? retry : "";

    if (scope->where == RUN_UNCONFINED)
        return alloc_str("this command without a sandbox: it may do whatever you may, files and "
                         "network");
    if (scope->widened)
        return alloc_strf("this command in its sandbox (profile %s), and beyond that %s%s",
                          scope->profile, scope->widened, and_retry);
    return alloc_strf("this command in its sandbox (profile %s)%s", scope->profile, and_retry);
}

char *approval_covers(const struct approval_scope *scope)
{
    AUTO_FREE char *once = covers_once(scope);
    AUTO_FREE char *later = later_patches(scope->patched);

    return alloc_strf("%s%s", once, later);
}
