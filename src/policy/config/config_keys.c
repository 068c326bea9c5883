/* See config_keys.h.
 *
 * A config file may be one of Codex's, with many keys that are none of our business: those are
 * known, and silently ignored. Everything else is most likely a slip of the pen, and since a slip
 * in a policy can leave something open, it is told, with the nearest key that means something.
 * Warnings are not errors, so that a file for a newer program still works. */
#include "policy/config/config_keys.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "policy/config/config_approval.h"
#include "policy/config/config_reader.h"
#include "policy/profile_text.h"

#include <stdlib.h>
#include <string.h>

/* Ours first, then Codex's. */
static const char *const top_keys[] = {
    "approval_policy",
    "default_permissions",
    "permissions",
    "projects",
    "sandbox_mode",
    "sandbox_workspace_write",
    "shell_environment_policy",

    "agents",
    "allow_login_shell",
    "analytics",
    "approvals_reviewer",
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
    "hooks",
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
    "network",
    "network_proxy",
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

static const char *const workspace_keys[] = {"writable_roots", "network_access",
                                             "exclude_tmpdir_env_var", "exclude_slash_tmp", NULL};

static const char *const environment_keys[] = {
    "inherit", "ignore_default_excludes",  "exclude", "include_only",
    "set",     "experimental_use_profile", "filters", NULL};

static const char *const permission_keys[] = {"description", "extends", "workspace_roots",
                                              "filesystem",  "network", "allow_nested_namespaces",
                                              NULL};

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
                                           "dangerously_allow_non_loopback_proxy",
                                           "dangerously_allow_all_unix_sockets",
                                           "mitm",
                                           NULL};

static void warn(struct config *config, const struct toml_node *node, const char *prefix,
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

/* Finding the nearest key costs, and nobody reads a thousand warnings. */
static bool is_enough(const struct config *config)
{
    return config->warnings_len >= CONFIG_WARNINGS_MAX;
}

static void warn_unknown(struct config *config, const struct toml_node *node, const char *prefix,
                         const char *const *known)
{
    const char *nearest;

    if (is_enough(config))
        return;
    nearest = str_nearest(node->key, known);
    warn(config, node, prefix, nearest,
         nearest
             ? alloc_strf("unknown key \"%s%s\", did you mean \"%s\"?", prefix, node->key, nearest)
             : alloc_strf("unknown key \"%s%s\"", prefix, node->key));
}

static bool is_known(const char *key, const char *const *known)
{
    while (*known && !str_eq(*known, key))
        known++;
    return *known != NULL;
}

static void warn_table(struct config *config, const struct toml_node *table, const char *prefix,
                       const char *const *known)
{
    for (size_t i = 0; table && i < table->len; i++)
        if (table->kind == TOML_TABLE && !is_known(table->items[i].key, known))
            warn_unknown(config, &table->items[i], prefix, known);
}

static void warn_specials(struct config *config, const struct toml_node *files, const char *prefix)
{
    for (size_t i = 0; i < files->len && !is_enough(config); i++) {
        const char *key = files->items[i].key;

        if (files->kind == TOML_TABLE && key[0] == ':' && !profile_text_is_special(key))
            warn(config, &files->items[i], prefix, NULL,
                 alloc_strf("the special path \"%s\" is not known here and has no effect", key));
    }
}

static void warn_permissions(struct config *config, const struct toml_node *profile)
{
    AUTO_FREE char *prefix = alloc_strf("permissions.%s.", profile->key);
    AUTO_FREE char *network_prefix = alloc_strf("%snetwork.", prefix);
    AUTO_FREE char *files_prefix = alloc_strf("%sfilesystem.", prefix);
    const struct toml_node *files = toml_find(profile, "filesystem");

    warn_table(config, profile, prefix, permission_keys);
    warn_table(config, toml_find(profile, "network"), network_prefix, network_keys);
    if (files)
        warn_specials(config, files, files_prefix);
    if ((!files || (files->kind == TOML_TABLE && files->len == 0)) &&
        !toml_find(profile, "extends") && !is_enough(config))
        warn(config, profile, "permissions.", NULL,
             alloc_strf("[permissions.%s] has no filesystem entries, so it denies everything",
                        profile->key));
}

static void warn_without_effect(struct config *config)
{
    const struct toml_node *permissions = toml_find(config->root, "default_permissions");
    const struct toml_node *profile = toml_find(config->root, "profile");
    const struct toml_node *chosen = NULL;

    if (profile && profile->kind == TOML_STRING)
        chosen = toml_find(toml_find(config->root, "profiles"), profile->string);
    if (permissions && config->sandbox_mode)
        warn(config, permissions, "", NULL,
             alloc_str("default_permissions has no effect, because sandbox_mode is set"));
    if (toml_find(chosen, "sandbox_mode"))
        warn(config, toml_find(chosen, "sandbox_mode"), "profiles.*.", NULL,
             alloc_str("a sandbox_mode in [profiles] has no effect here, only the one at the top"));
}

void config_warn_keys(struct config *config)
{
    const struct toml_node *permissions = toml_find(config->root, "permissions");
    const struct toml_node *approval = toml_find(config->root, "approval_policy");

    for (size_t i = 0; i < config->root->len; i++) {
        const struct toml_node *node = &config->root->items[i];

        if (!is_known(node->key, top_keys) && !str_starts(node->key, "experimental_"))
            warn_unknown(config, node, "", top_keys);
    }
    warn_table(config, toml_find(config->root, "sandbox_workspace_write"),
               "sandbox_workspace_write.", workspace_keys);
    warn_table(config, toml_find(config->root, "shell_environment_policy"),
               "shell_environment_policy.", environment_keys);
    warn_table(config, toml_find(approval, "granular"), "approval_policy.granular.",
               approval_switches);
    warn_table(config, toml_find(approval, "reject"), "approval_policy.reject.", approval_switches);
    for (size_t i = 0; permissions && i < permissions->len; i++)
        if (permissions->kind == TOML_TABLE)
            warn_permissions(config, &permissions->items[i]);
    warn_without_effect(config);
}
