/* See config.h: loading, the general keys, and mistakes. Profiles are in config_profile.c.
 *
 * A config file may be one of Codex's, with many keys that mean nothing here: those are
 * known, and silently ignored. Everything else is most likely a typing mistake, and since one
 * in a policy can leave something open, it is reported, with the nearest key that means something:
 * as an error, and in a file of Codex's, which may be for a newer program, as a warning. */
#include "policy/config/config.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "policy/config/config_reader.h"
#include "policy/config/toml.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- typed reading --- */

int config_fail(const struct config *config, const struct toml_node *node, struct err *err,
                const char *fmt, ...)
{
    AUTO_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    err_set(err, ERR_INVALID, "%s:%u: %s", config->file, node->line, text ? text : fmt);
    return -1;
}

int config_want(const struct config *config, const struct toml_node *node, enum toml_kind kind,
                struct err *err)
{
    if (node->kind == kind)
        return 0;
    return config_fail(config, node, err, "%s should be %s, and is %s",
                       node->key ? node->key : "this", toml_kind_name(kind),
                       toml_kind_name(node->kind));
}

int config_item(const struct config *config, const struct toml_node *table, const char *key,
                enum toml_kind kind, const struct toml_node **ret, struct err *err)
{
    const struct toml_node *node = toml_find(table, key);

    if (node && config_want(config, node, kind, err))
        return -1;
    *ret = node;
    return 0;
}

int config_bool(const struct config *config, const struct toml_node *table, const char *key,
                bool *ret, struct err *err)
{
    const struct toml_node *node;

    if (config_item(config, table, key, TOML_BOOLEAN, &node, err))
        return -1;
    if (node)
        *ret = node->boolean;
    return 0;
}

int config_word(const struct config *config, const struct toml_node *node, const char *const *words,
                unsigned *ret, struct err *err)
{
    AUTO(buf_done) struct buf all = {.max = SIZE_MAX / 2};
    const char *nearest;

    if (config_want(config, node, TOML_STRING, err))
        return -1;
    for (unsigned i = 0; words[i]; i++) {
        if (str_eq(words[i], node->string)) {
            *ret = i;
            return 0;
        }
        buf_appendf(&all, "%s\"%s\"", !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    nearest = str_nearest(node->string, words);
    if (nearest)
        return config_fail(config, node, err, "%s: \"%.60s\" is not known, did you mean \"%s\"?",
                           node->key ? node->key : "this", node->string, nearest);
    return config_fail(config, node, err, "%s: \"%.60s\" is not known; it is one of %s",
                       node->key ? node->key : "this", node->string, all.data);
}

/* --- mistakes --- */

enum { CONFIG_WARNINGS_MAX = 50 };

/* Ours first, then Codex's. */
static const char *const top_keys[] = {
    "approval_policy",
    "audit",
    "default_permissions",
    "layers",
    "limits",
    "mcp",
    "permissions",
    "projects",
    "protect",
    "sandbox",
    "sandbox_mode",
    "sandbox_workspace_write",
    "shell_environment_policy",
    "undo",
    "ws_auth",
    "yes_means_unsandboxed",

    "agents",
    "analytics",
    "apps",
    "audio",
    "background_terminal_max_timeout",
    "chatgpt_base_url",
    "check_for_update_on_startup",
    "cli_auth_credentials_store",
    "commit_attribution",
    "compact_prompt",
    "developer_instructions",
    "disable_paste_burst",
    "disable_response_storage",
    "features",
    "feedback",
    "file_opener",
    "forced_chatgpt_workspace_id",
    "forced_login_method",
    "ghost_snapshot",
    "hide_agent_reasoning",
    "history",
    "instructions",
    "js_repl_node_module_dirs",
    "js_repl_node_path",
    "log_dir",
    "marketplaces",
    "mcp_oauth_callback_port",
    "mcp_oauth_callback_url",
    "mcp_oauth_credentials_store",
    "mcp_servers",
    "memories",
    "model",
    "model_auto_compact_token_limit",
    "model_availability_nux",
    "model_catalog_json",
    "model_context_window",
    "model_instructions_file",
    "model_max_output_tokens",
    "model_provider",
    "model_providers",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_reasoning_summary_format",
    "model_supports_reasoning_summaries",
    "model_verbosity",
    "notice",
    "notify",
    "openai_base_url",
    "oss_provider",
    "otel",
    "personality",
    "plan_mode_reasoning_effort",
    "plugins",
    "preferred_auth_method",
    "profile",
    "profiles",
    "project_doc_fallback_filenames",
    "project_doc_max_bytes",
    "project_root_markers",
    "realtime",
    "review_model",
    "service_tier",
    "show_raw_agent_reasoning",
    "skills",
    "sqlite_home",
    "suppress_unstable_features_warning",
    "tool_output_token_limit",
    "tools",
    "tui",
    "web_search",
    "windows",
    "windows_wsl_setup_acknowledged",
    "zsh_path",
    NULL,
};

/* Codex's, too, and about what a command may do. Whoever writes one for Cordon expects something of it. */
static const char *const policy_keys[] = {
    "allow_login_shell", "approvals_reviewer", "hooks", "network", "network_proxy", NULL,
};

static const char *const audit_keys[] = {"trace", NULL};

static const char *const workspace_keys[] = {"writable_roots", "network_access",
                                             "exclude_tmpdir_env_var", "exclude_slash_tmp", NULL};

static const char *const environment_keys[] = {
    "inherit", "ignore_default_excludes",  "exclude", "include_only",
    "set",     "experimental_use_profile", "filters", NULL};

static const char *const permission_keys[] = {"description", "extends", "workspace_roots",
                                              "filesystem",  "network", "allow_nested_namespaces",
                                              "watch",       "judge",   "with",
                                              "limits",      "gpu",     "tmp",
                                              "git",         NULL};

static const char *const network_keys[] = {"enabled",
                                           "mode",
                                           "domains",
                                           "unix_sockets",
                                           "proxy_url",
                                           "enable_socks5",
                                           "socks_url",
                                           "enable_socks5_udp",
                                           "allow_upstream_proxy",
                                           "allow_local_binding",
                                           "host_ports",
                                           "publish",
                                           "dangerously_allow_non_loopback_proxy",
                                           "dangerously_allow_all_unix_sockets",
                                           "credentials",
                                           "mitm",
                                           NULL};

static const char *const mitm_keys[] = {"hooks", "actions", NULL};

/* Takes `text` over. */
static void note(struct config *config, const struct toml_node *node, const char *prefix,
                 const char *nearest, char *text)
{
    config->warnings = alloc_grow(config->warnings, config->warnings_len, &config->warnings_cap,
                                  sizeof *config->warnings);
    config->warnings[config->warnings_len++] =
        (struct config_warning){.file = alloc_str(config->file),
                                .line = node->line,
                                .key = alloc_strf("%s%s", prefix, node->key ? node->key : ""),
                                .nearest = nearest,
                                .text = text};
}

/* Finding the nearest key takes time, and a thousand warnings are not read. */
static bool is_enough(const struct config *config)
{
    return config->warnings_len >= CONFIG_WARNINGS_MAX;
}

static bool is_one_of(const char *const *words, const char *word)
{
    while (*words && !str_eq(*words, word))
        words++;
    return *words;
}

/* Each key of the table that is not one of `known`. */
static void note_unknown(struct config *config, const struct toml_node *table, const char *prefix,
                         const char *const *known)
{
    for (size_t i = 0; table && table->kind == TOML_TABLE && i < table->len; i++) {
        const struct toml_node *node = &table->items[i];
        const char *nearest;

        if (is_one_of(known, node->key) || (!*prefix && (str_starts(node->key, "experimental_") ||
                                                         is_one_of(policy_keys, node->key))))
            continue;
        if (is_enough(config))
            return;
        nearest = str_nearest(node->key, known);
        note(config, node, prefix, nearest,
             nearest ? alloc_strf("unknown key \"%s%s\", did you mean \"%s\"?", prefix, node->key,
                                  nearest)
                     : alloc_strf("unknown key \"%s%s\"", prefix, node->key));
    }
}

static void note_permissions(struct config *config, const struct toml_node *profile)
{
    AUTO_FREE char *prefix = alloc_strf("permissions.%s.", profile->key);
    AUTO_FREE char *network_prefix = alloc_strf("%snetwork.", prefix);
    AUTO_FREE char *mitm_prefix = alloc_strf("%smitm.", network_prefix);
    AUTO_FREE char *files_prefix = alloc_strf("%sfilesystem.", prefix);
    AUTO_FREE char *limits_prefix = alloc_strf("%slimits.", prefix);
    const struct toml_node *files = toml_find(profile, "filesystem");

    note_unknown(config, profile, prefix, permission_keys);
    note_unknown(config, toml_find(profile, "limits"), limits_prefix, config_limit_keys);
    note_unknown(config, toml_find(profile, "network"), network_prefix, network_keys);
    note_unknown(config, toml_find(toml_find(profile, "network"), "mitm"), mitm_prefix, mitm_keys);
    for (size_t i = 0; files && i < files->len && !is_enough(config); i++) {
        const char *key = files->items[i].key;
        AUTO_FREE char *name = alloc_strn(key, strcspn(key, "/")); /* something in it may follow */

        if (files->kind == TOML_TABLE && key[0] == ':' && !profile_text_is_special(name))
            note(config, &files->items[i], files_prefix, NULL,
                 alloc_strf("the special path \"%s\" is not known here and has no effect", key));
    }
}

/* Every key that is not known, and what is known to be without effect; about CONFIG_WARNINGS_MAX at
 * most. */
static void note_mistakes(struct config *config)
{
    const struct toml_node *root = config->root;
    const struct toml_node *permissions = toml_find(root, "permissions");
    const struct toml_node *approval = toml_find(root, "approval_policy");
    const struct toml_node *environment = toml_find(root, "shell_environment_policy");
    const struct toml_node *default_name = toml_find(root, "default_permissions");
    const struct toml_node *profile = toml_find(root, "profile");
    const struct toml_node *mode = NULL;

    note_unknown(config, root, "", top_keys);
    for (size_t i = 0; !config->is_codexs && policy_keys[i]; i++)
        if (toml_find(root, policy_keys[i]))
            note(config, toml_find(root, policy_keys[i]), "", NULL,
                 alloc_strf("%s is a key of Codex's, and has no effect here", policy_keys[i]));
    note_unknown(config, toml_find(root, "audit"), "audit.", audit_keys);
    note_unknown(config, toml_find(root, "mcp"), "mcp.", config_mcp_keys);
    note_unknown(config, toml_find(root, "undo"), "undo.", config_undo_keys);
    note_unknown(config, toml_find(root, "layers"), "layers.", config_layers_keys);
    note_unknown(config, toml_find(root, "limits"), "limits.", config_limit_keys);
    note_unknown(config, toml_find(root, "sandbox_workspace_write"), "sandbox_workspace_write.",
                 workspace_keys);
    note_unknown(config, environment, "shell_environment_policy.", environment_keys);
    if (!config->is_codexs && toml_find(environment, "experimental_use_profile"))
        note(config, toml_find(environment, "experimental_use_profile"),
             "shell_environment_policy.", NULL,
             alloc_str("experimental_use_profile has no effect here"));
    note_unknown(config, toml_find(approval, "granular"), "approval_policy.granular.",
                 approval_switches);
    note_unknown(config, toml_find(approval, "reject"), "approval_policy.reject.",
                 approval_switches);
    for (size_t i = 0; permissions && i < permissions->len; i++)
        if (permissions->kind == TOML_TABLE)
            note_permissions(config, &permissions->items[i]);
    if (default_name && config->sandbox_mode)
        note(config, default_name, "", NULL,
             alloc_str("default_permissions has no effect, because sandbox_mode is set"));
    if (profile && profile->kind == TOML_STRING)
        mode = toml_find(toml_find(toml_find(root, "profiles"), profile->string), "sandbox_mode");
    if (mode)
        note(config, mode, "profiles.*.", NULL,
             alloc_str("a sandbox_mode in [profiles] has no effect here, only the one at the top"));
}

/* What fails closed, but hardly as it was meant. */
static void note_empty_profiles(struct config *config)
{
    const struct toml_node *permissions = toml_find(config->root, "permissions");

    for (size_t i = 0; permissions && permissions->kind == TOML_TABLE && i < permissions->len;
         i++) {
        const struct toml_node *profile = &permissions->items[i];
        const struct toml_node *files = toml_find(profile, "filesystem");

        if ((!files || (files->kind == TOML_TABLE && files->len == 0)) &&
            !toml_find(profile, "extends") && !is_enough(config))
            note(config, profile, "permissions.", NULL,
                 alloc_strf("[permissions.%s] has no filesystem entries, so it denies everything",
                            profile->key));
    }
}

/* The first one as the error. */
static int refuse_mistakes(const struct config *config, struct err *err)
{
    const struct config_warning *first = config->warnings;

    if (!config->warnings_len)
        return 0;
    return err_set(err, ERR_INVALID, "%s:%u: %s", first->file, first->line, first->text);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->warnings_len; i++) {
        free(config->warnings[i].file);
        free(config->warnings[i].key);
        free(config->warnings[i].text);
    }
    free(config->warnings);
    environment_policy_done(&config->environment);
    protect_choice_done(&config->protect);
    toml_free(config->root);
    free(config->file);
    free(config);
}

static void config_free_slot(struct config **slot)
{
    config_free(*slot);
}

/* --- [shell_environment_policy] --- */

static int read_patterns(const struct config *config, const struct toml_node *table,
                         const char *key, struct strv *ret, struct err *err)
{
    const struct toml_node *list;

    if (config_item(config, table, key, TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        if (config_want(config, &list->items[i], TOML_STRING, err))
            return -1;
        strv_push(ret, list->items[i].string);
    }
    return 0;
}

static int read_set(const struct config *config, const struct toml_node *table, struct strv *ret,
                    struct err *err)
{
    const struct toml_node *set;

    if (config_item(config, table, "set", TOML_TABLE, &set, err))
        return -1;
    for (size_t i = 0; set && i < set->len; i++) {
        const struct toml_node *item = &set->items[i];

        if (config_want(config, item, TOML_STRING, err))
            return -1;
        if (!item->key[0] || strchr(item->key, '='))
            return config_fail(config, item, err, "\"%s\" is no name for a variable", item->key);
        strv_pushf(ret, "%s=%s", item->key, item->string);
    }
    return 0;
}

static int read_environment(struct config *config, struct err *err)
{
    static const char *const inherit_words[] = {
        [ENVIRONMENT_ALL] = "all", [ENVIRONMENT_CORE] = "core", [ENVIRONMENT_NONE] = "none", NULL};
    static const char *const filter_words[] = {"include", "exclude", NULL};
    struct environment_policy *policy = &config->environment;
    const struct toml_node *table;
    const struct toml_node *inherit_node;
    const struct toml_node *filters;
    unsigned inherit = 0;
    unsigned word;
    bool ignore = false;

    if (config_item(config, config->root, "shell_environment_policy", TOML_TABLE, &table, err))
        return -1;
    if (!table)
        return 0;
    inherit_node = toml_find(table, "inherit");
    if (inherit_node && config_word(config, inherit_node, inherit_words, &inherit, err))
        return -1;
    if (config_bool(config, table, "ignore_default_excludes", &ignore, err) ||
        read_patterns(config, table, "exclude", &policy->exclude, err) ||
        read_patterns(config, table, "include_only", &policy->include_only, err) ||
        config_item(config, table, "filters", TOML_TABLE, &filters, err))
        return -1;
    /* the newer spelling of the two lists: pattern = "include" or "exclude" */
    for (size_t i = 0; filters && i < filters->len; i++) {
        const struct toml_node *item = &filters->items[i];

        if (config_word(config, item, filter_words, &word, err))
            return -1;
        strv_push(word ? &policy->exclude : &policy->include_only, item->key);
    }
    policy->inherit = (enum environment_inherit)inherit;
    policy->defaults = ignore ? ENVIRONMENT_DEFAULTS_OFF : ENVIRONMENT_DEFAULTS_ON;
    return read_set(config, table, &policy->set, err);
}

/* --- [audit] --- */

static int read_audit(struct config *config, struct err *err)
{
    static const char *const words[] = {"files", "network", "exec",
                                        NULL}; /* in order of the bits */
    const struct toml_node *table;
    const struct toml_node *list;
    unsigned word;

    if (config_item(config, config->root, "audit", TOML_TABLE, &table, err))
        return -1;
    if (!table)
        return 0;
    if (config_item(config, table, "trace", TOML_ARRAY, &list, err))
        return -1;
    for (size_t i = 0; list && i < list->len; i++) {
        if (config_word(config, &list->items[i], words, &word, err))
            return -1;
        config->audit_trace |= 1u << word;
    }
    return 0;
}

/* --- protected names --- */

static int read_protect(struct config *config, struct err *err)
{
    const struct toml_node *list;
    struct err why;

    if (config_item(config, config->root, "protect", TOML_ARRAY, &list, err))
        return -1;
    config->protect.is_made = list;
    for (size_t i = 0; list && i < list->len; i++) {
        const struct toml_node *item = &list->items[i];

        if (config_want(config, item, TOML_STRING, err))
            return -1;
        if (protect_choice_add(&config->protect, item->string, &why))
            return config_fail(config, item, err, "protect: %s", why.msg);
    }
    return 0;
}

const struct protect_choice *config_protect(const struct config *config)
{
    return config && config->protect.is_made ? &config->protect : NULL;
}

/* --- loading --- */

/* `ret` is static; NULL: there is no such key. */
static int read_word(const struct config *config, const char *key, const char *const *words,
                     const char **ret, struct err *err)
{
    const struct toml_node *node = toml_find(config->root, key);
    unsigned word;

    if (node && config_word(config, node, words, &word, err))
        return -1;
    *ret = node ? words[word] : NULL;
    return 0;
}

/* The keys outside of profiles. */
static int read_general(struct config *config, struct err *err)
{
    static const char *const modes[] = {"read-only", "workspace-write", "danger-full-access", NULL};
    /* those that need no file: where secrets lie is said where the server is started */
    static const char *const ws_auth[] = {"user-token", "own-processes", NULL};
    /* none at all is said by a profile, or for one command */
    static const char *const sandbox[] = {"auto", "require", "landlock", NULL};
    const struct toml_node *root = config->root;
    const struct toml_node *name;
    const struct toml_node *unused;

    if (read_word(config, "sandbox_mode", modes, &config->sandbox_mode, err) ||
        config_read_approval(config, err) || read_environment(config, err) ||
        config_read_mcp(config, err) || config_read_layer(config, err) || read_audit(config, err) ||
        read_protect(config, err) || read_word(config, "ws_auth", ws_auth, &config->ws_auth, err) ||
        read_word(config, "sandbox", sandbox, &config->sandbox, err) ||
        config_read_limits(config, root, &config->limits, err) ||
        config_item(config, root, "default_permissions", TOML_STRING, &name, err) ||
        config_item(config, root, "permissions", TOML_TABLE, &unused, err) ||
        config_item(config, root, "sandbox_workspace_write", TOML_TABLE, &unused, err))
        return -1;
    config->default_permissions = name ? name->string : NULL;
    return 0;
}

static bool is_in_codexs_dir(const char *file)
{
    static const char dir[] = "/.codex";
    const char *end = strrchr(file, '/');

    return end && (size_t)(end - file) >= sizeof dir - 1 &&
           memcmp(end - (sizeof dir - 1), dir, sizeof dir - 1) == 0;
}

struct config *config_load(const char *text, size_t len, const char *file, struct err *err)
{
    AUTO(config_free_slot) struct config *config = NULL;
    struct err why;

    if (len > CONFIG_SIZE_MAX) {
        err_set(err, ERR_LIMIT, "%s: longer than %d bytes", file, CONFIG_SIZE_MAX);
        return NULL;
    }
    config = alloc_zero(1, sizeof *config);
    config->file = alloc_str(file);
    config->is_codexs = is_in_codexs_dir(file);
    config->root = toml_parse(text, len, &why);
    if (!config->root) {
        err_set(err, why.code, "%s:%s", file, why.msg); /* it starts with "LINE:COLUMN: " */
        return NULL;
    }
    if (read_general(config, err))
        return NULL;
    note_mistakes(config);
    if (!config->is_codexs && refuse_mistakes(config, err))
        return NULL;
    note_empty_profiles(config);
    return TAKE_PTR(config);
}

const struct config_warning *config_warnings(const struct config *config, size_t *ret_len)
{
    *ret_len = config->warnings_len;
    return config->warnings;
}

const struct environment_policy *config_environment(const struct config *config)
{
    return &config->environment;
}

unsigned config_audit_trace(const struct config *config)
{
    return config ? config->audit_trace : 0;
}

const char *config_ws_auth(const struct config *config)
{
    return config ? config->ws_auth : NULL;
}

const char *config_sandbox(const struct config *config)
{
    return config ? config->sandbox : NULL;
}

const char *config_default_profile(const struct config *config)
{
    return config->sandbox_mode ? config->sandbox_mode : config->default_permissions;
}

/* --- trusted projects --- */

/* [projects."/path"] trust_level = "trusted", as Codex writes it. The nearest directory that is
 * listed decides, so that a part of a trusted project can be excepted; a word that is not known
 * gives no trust. */
static bool is_trusted(const struct toml_node *project)
{
    const struct toml_node *level = toml_find(project, "trust_level");

    return level && level->kind == TOML_STRING && str_eq(level->string, "trusted");
}

void config_trusted_paths(const struct config *config, struct strv *ret)
{
    const struct toml_node *projects = config ? toml_find(config->root, "projects") : NULL;

    for (size_t i = 0; projects && i < projects->len; i++) {
        const struct toml_node *project = &projects->items[i];

        if (!is_trusted(project) || !path_is_clean(project->key))
            continue;
        strv_push_take(ret, path_join(project->key, ".cordon"));
        strv_push_take(ret, path_join(project->key, ".codex"));
    }
}

char *config_trusted_project(const struct config *config, const char *dir)
{
    const struct toml_node *projects = config ? toml_find(config->root, "projects") : NULL;
    AUTO_FREE char *at = alloc_str(dir);

    for (;;) {
        const struct toml_node *level = toml_find(toml_find(projects, at), "trust_level");
        char *parent;

        if (level)
            return level->kind == TOML_STRING && str_eq(level->string, "trusted") ? TAKE_PTR(at)
                                                                                  : NULL;
        if (str_eq(at, "/"))
            return NULL;
        parent = path_parent(at);
        free(at);
        at = parent;
    }
}
