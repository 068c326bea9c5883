/* rules/check, rules/list and rules/add: the rules of this host for a client that wants to know, or
 * to write one down for its user. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "rules/file/rules_file.h"
#include "rules/rules_check.h"
#include "rules/rules_disk.h"
#include "server/call.h"
#include "server/client.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/rules_cache.h"
#include "server/server.h"

#include <stdlib.h>

/* Without a directory no project counts. Caller frees; NULL on failure. */
static char *read_cwd(const char *cwd, enum rpc_code *ret_code, struct err *err)
{
    return cwd ? rpc_path_parse(cwd, ret_code, err) : alloc_str("/");
}

/* What a call is about: a command or a host. */
struct subject {
    struct strv words;
    char *host; /* as host_rule_host() gives it; NULL: the words */
    enum rule_protocol protocol;
};

static void subject_done(struct subject *subject)
{
    strv_done(&subject->words);
    free(subject->host);
}

/* `ret` has the words already, which the parameter `name` gave. */
static int subject_read(struct subject *ret, const char *name, const char *host,
                        const char *protocol, struct err *err)
{
    ret->protocol = RULE_PROTOCOL_HTTPS;
    if (!host == !ret->words.len)
        return err_set(err, ERR_INVALID, "give either %s or host, one of them", name);
    if (!host && protocol)
        return err_set(err, ERR_INVALID, "protocol belongs to a host");
    if (protocol)
        (void)rule_protocol_parse(protocol, &ret->protocol); /* a word of the schema's list */
    if (!host)
        return 0;
    ret->host = host_rule_host(host, err);
    return ret->host ? 0 : err_wrap(err, "host");
}

/* --- rules/check --- */

static json_t *check_command(const struct rules *rules, const struct strv *words)
{
    AUTO(rules_check_done) struct rules_check check;

    rules_check_make(rules, strv_view(words), &check);
    return rules_check_to_json(&check);
}

static json_t *check_host(const struct rules *rules, const struct subject *subject)
{
    return rules_check_host_to_json(rules,
                                    rules_decide_host(rules, subject->host, subject->protocol));
}

void method_rules_check(struct call *call, const struct rules_check_params *params)
{
    AUTO(subject_done) struct subject subject = {0};
    enum rpc_code code = RPC_INVALID_PARAMS;
    struct err err;
    AUTO_FREE char *dir = read_cwd(params->cwd, &code, &err);
    struct rule_owner owner = server_rule_owner(call->client->server);
    struct rules *rules;

    call_words(params->argv, &subject.words);
    if (!dir || subject_read(&subject, "argv", params->host, params->protocol, &err)) {
        call_fail_with(call, code, &err);
        return;
    }
    rules = rule_layers_load(&owner, dir);
    call_reply(call,
               subject.host ? check_host(rules, &subject) : check_command(rules, &subject.words));
    rules_free(rules);
}

/* --- rules/list --- */

/* Each position of the pattern as the list of its words. */
static json_t *prefix_to_json(const struct prefix_rule *rule)
{
    json_t *pattern = json_array();

    for (size_t i = 0; i < rule->len; i++)
        json_array_append_new(pattern, json_lossy_list(strv_view(&rule->words[i])));
    return json_pack("{s:i, s:o, s:s, s:s*, s:o}", "line", (int)rule->place.line, "pattern",
                     pattern, "decision", rule_decision_name(rule->verdict), "sandbox",
                     rule_sandbox_name(rule->verdict), "justification",
                     json_lossy(rule->justification));
}

static json_t *host_to_json(const struct host_rule *rule)
{
    return json_pack("{s:i, s:o, s:s, s:s, s:o}", "line", (int)rule->place.line, "host",
                     json_lossy(rule->host), "protocol", rule_protocol_name(rule->protocol),
                     "decision", rule_decision_name(rule->verdict), "justification",
                     json_lossy(rule->justification));
}

static json_t *rules_to_json(const struct rules_file *file)
{
    json_t *list = json_array();

    for (size_t i = 0; i < file->prefixes_len; i++)
        json_array_append_new(list, prefix_to_json(&file->prefixes[i]));
    for (size_t i = 0; i < file->hosts_len; i++)
        json_array_append_new(list, host_to_json(&file->hosts[i]));
    return list;
}

/* The files as they are; an error is told of the file that has it. */
static void visit(void *data, const struct rules_origin *origin, const struct err *failure)
{
    AUTO(buf_done) struct buf text = {.max = RULES_SIZE_MAX};
    AUTO(rules_file_done) struct rules_file file = {0};
    struct err err;
    const char *why = NULL;

    if (failure)
        why = failure->msg;
    else if (rules_read(origin->file, &text, &err) ||
             rules_file_parse(origin, text.data, text.len, &file, &err) ||
             rules_file_check(&file, &err))
        why = err.msg;
    json_array_append_new(data,
                          json_pack("{s:s, s:o, s:o, s:o}", "layer", rule_layer_name(origin->layer),
                                    "file", json_lossy(origin->file), "error", json_lossy(why),
                                    "rules", rules_to_json(&file)));
}

void method_rules_list(struct call *call, const struct rules_list_params *params)
{
    enum rpc_code code = RPC_INVALID_PARAMS;
    struct err err;
    AUTO_FREE char *dir = read_cwd(params->cwd, &code, &err);
    AUTO_FREE char *project = NULL;
    struct rule_owner owner = server_rule_owner(call->client->server);
    struct rules_dirs places;
    json_t *files;

    if (!dir) {
        call_fail(call, code, "%s", err.msg);
        return;
    }
    files = json_array();
    rule_layers_find(&owner, dir, &places, &project);
    rules_visit(&places, &(struct rules_visitor){.visit = visit, .data = files});
    call_reply(call, json_pack("{s:o}", "files", files));
}

/* --- rules/add --- */

static int read_verdict(const struct rules_add_params *params, enum rule_verdict *ret,
                        struct err *err)
{
    const char *decision = params->decision;
    const char *sandbox = params->sandbox;

    bool is_allow = !decision || str_eq(decision, "allow");

    if (sandbox && (!is_allow || params->host))
        return err_set(err, ERR_INVALID,
                       "sandbox says what a command is granted that is allowed; leave it out of "
                       "other rules");
    if (is_allow)
        *ret = sandbox && str_eq(sandbox, "bypass") ? RULE_BYPASS : RULE_KEEP;
    else
        *ret = str_eq(decision, "prompt") ? RULE_PROMPT : RULE_FORBIDDEN;
    return 0;
}

/* Caller frees; NULL on failure. */
static char *make_line(const struct rules_add_params *params, struct err *err)
{
    AUTO(subject_done) struct subject subject = {0};
    const char *justification = params->justification;
    enum rule_verdict verdict = RULE_PROMPT;

    call_words(params->pattern, &subject.words);
    if (subject_read(&subject, "pattern", params->host, params->protocol, err) ||
        read_verdict(params, &verdict, err))
        return NULL;
    if (!subject.host)
        return rule_line_for_prefix(strv_view(&subject.words), verdict, justification, err);
    return rule_line_for_host(subject.host, subject.protocol, verdict, justification, err);
}

void method_rules_add(struct call *call, const struct rules_add_params *params)
{
    const struct server *server = call->client->server;
    struct err err;
    AUTO_FREE char *line = make_line(params, &err);
    const struct rule_owner owner = server_rule_owner(server);
    AUTO_FREE char *file = rule_layers_file(&owner);
    enum rules_append outcome;

    if (line && !file)
        err_set(&err, ERR_SYSTEM, "the config directory is not known; set CORDON_HOME");
    if (!line || !file || rules_append(file, server->config.home, line, &outcome, &err)) {
        call_fail_err(call, &err);
        return;
    }
    call_reply(call, json_pack("{s:o, s:o, s:b}", "file", json_lossy(file), "rule",
                               json_lossy(line), "added", outcome == RULES_APPENDED));
}
