/* See approval.h. The two languages, TOML and JSON, have a reader each, because what an error says
 * about the place differs (a line here, a path there); what may be said is one table for both. */
#include "policy/config/approval.h"

#include "base/json.h"
#include "base/str.h"
#include "policy/config/config_reader.h"

#include <stdbool.h>
#include <stddef.h>

static const char *const mode_names[] = {[APPROVAL_ON_REQUEST] = "on-request",
                                         [APPROVAL_UNTRUSTED] = "untrusted",
                                         [APPROVAL_GRANULAR] = "granular",
                                         [APPROVAL_NEVER] = "never",
                                         NULL};

/* Bit i of enum approval_question is the i-th. */
const char *const approval_switches[] = {
    "sandbox_approval", "rules", "skill_approval", "request_permissions", "mcp_elicitations", NULL};

enum {
    SWITCHES_OPTIONAL = APPROVAL_QUESTION_SKILLS | APPROVAL_QUESTION_PERMISSIONS,
};

/* Whether true lets a question be asked, or refuses it. */
enum sense { GRANTS, REFUSES };
static const char *const sense_names[] = {[GRANTS] = "granular", [REFUSES] = "reject", NULL};

int approval_policy_parse(const char *word, struct approval_policy *ret, struct err *err)
{
    const char *wanted = str_eq(word, "on-failure") ? mode_names[APPROVAL_ON_REQUEST] : word;

    for (int i = 0; mode_names[i]; i++) {
        if (!str_eq(mode_names[i], wanted))
            continue;
        *ret = (struct approval_policy){.mode = (enum approval_mode)i,
                                        .questions = APPROVAL_QUESTIONS_ALL};
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "\"%.60s\" is no approval policy; there are untrusted, on-request, granular "
                   "and never",
                   word);
}

const char *approval_mode_name(enum approval_mode mode)
{
    return mode_names[mode];
}

/* `said`: the switches that are there, `on`: those of them that are true. The first switch that has
 * to be said and is not; NULL with the policy in `ret`. */
static const char *granular(enum sense sense, unsigned said, unsigned on,
                            struct approval_policy *ret)
{
    for (size_t i = 0; approval_switches[i]; i++)
        if (!((said | SWITCHES_OPTIONAL) & 1u << i))
            return approval_switches[i];
    *ret =
        (struct approval_policy){.mode = APPROVAL_GRANULAR,
                                 .questions = sense == GRANTS ? on : APPROVAL_QUESTIONS_ALL & ~on};
    return NULL;
}

/* --- JSON --- */

static int read_json_switches(const struct json_at *table, enum sense sense,
                              struct approval_policy *ret, struct err *err)
{
    const char *missing;
    unsigned said = 0;
    unsigned on = 0;

    if (json_at_object(table, err) || json_at_check_keys(table, approval_switches, NULL, err))
        return -1;
    for (size_t i = 0; approval_switches[i]; i++) {
        struct json_at at = json_at_field(table, approval_switches[i]);
        bool is_on = false;

        if (!at.value)
            continue;
        if (json_at_bool(&at, &is_on, err))
            return -1;
        said |= 1u << i;
        on |= is_on ? 1u << i : 0;
    }
    missing = granular(sense, said, on, ret);
    return missing ? json_at_fail(table, err, "%s is missing; say true or false", missing) : 0;
}

int approval_policy_from_json(const struct json_at *at, struct approval_policy *ret,
                              struct err *err)
{
    struct err why;

    if (json_is_string(at->value)) {
        if (approval_policy_parse(json_string_value(at->value), ret, &why))
            return json_at_fail(at, err, "%s", why.msg);
        return 0;
    }
    if (!json_is_object(at->value))
        return json_at_fail(at, err, "should be a word or {\"granular\": {...}}");
    if (json_at_check_keys(at, sense_names, NULL, err))
        return -1;
    for (int i = GRANTS; sense_names[i]; i++) {
        struct json_at table = json_at_field(at, sense_names[i]);

        if (table.value && json_object_size(at->value) == 1)
            return read_json_switches(&table, (enum sense)i, ret, err);
    }
    return json_at_fail(at, err, "should have one key, which is granular (or reject)");
}

json_t *approval_policy_to_json(const struct approval_policy *policy)
{
    json_t *switches;

    if (policy->mode != APPROVAL_GRANULAR)
        return json_string(approval_mode_name(policy->mode));
    switches = json_object();
    for (size_t i = 0; approval_switches[i]; i++)
        json_object_set_new(switches, approval_switches[i],
                            json_boolean(policy->questions & 1u << i));
    return json_pack("{s:o}", "granular", switches);
}

/* --- TOML --- */

static int read_toml_switches(struct config *config, const struct toml_node *table,
                              enum sense sense, struct err *err)
{
    const char *missing;
    unsigned said = 0;
    unsigned on = 0;

    if (config_want(config, table, TOML_TABLE, err))
        return -1;
    for (size_t i = 0; approval_switches[i]; i++) {
        const struct toml_node *node;

        if (config_item(config, table, approval_switches[i], TOML_BOOLEAN, &node, err))
            return -1;
        said |= node ? 1u << i : 0;
        on |= node && node->boolean ? 1u << i : 0;
    }
    missing = granular(sense, said, on, &config->approval);
    return missing ? config_fail(config, table, err,
                                 "approval_policy.%s: %s is missing; say true or false", table->key,
                                 missing)
                   : 0;
}

int config_read_approval(struct config *config, struct err *err)
{
    const struct toml_node *node = toml_find(config->root, "approval_policy");
    struct err why;

    if (config_bool(config, config->root, "yes_means_unsandboxed", &config->yes_means_unsandboxed,
                    err))
        return -1;
    if (!node)
        return 0;
    config->has_approval = true;
    if (node->kind == TOML_STRING) {
        if (approval_policy_parse(node->string, &config->approval, &why))
            return config_fail(config, node, err, "approval_policy: %s", why.msg);
        return 0;
    }
    for (int i = GRANTS; sense_names[i]; i++) {
        const struct toml_node *table = toml_find(node, sense_names[i]);

        if (table && node->len == 1)
            return read_toml_switches(config, table, (enum sense)i, err);
    }
    return config_fail(config, node, err,
                       "approval_policy should be a word or one table, granular (or reject)");
}

bool config_yes_means_unsandboxed(const struct config *config)
{
    return config && config->yes_means_unsandboxed;
}

const struct approval_policy *config_approval_policy(const struct config *config)
{
    return config && config->has_approval ? &config->approval : NULL;
}
