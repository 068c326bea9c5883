/* See start.h. The sandbox is described in the shape that an unmodified Codex client sends
 * (spec/exec-server.md 6), so any exec server understands it, and there is one unless the person
 * asks for none by name. The environment is the server's, without what looks like a secret. */
#include "client/start.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "client/remote_path.h"
#include "policy/profile.h"
#include "policy/profile_json.h"

#include <stdlib.h>
#include <string.h>

static json_t *argv_to_json(char *const *argv, struct err *err)
{
    AUTO_JSON json_t *json = json_array();

    for (size_t i = 0; argv[i]; i++) {
        if (json_array_append_new(json, json_string(argv[i])) == 0)
            continue;
        err_set(err, ERR_INVALID,
                "argument %zu of the command is no UTF-8; only that goes over "
                "the wire",
                i);
        return NULL;
    }
    return TAKE_PTR(json);
}

static int env_add(json_t *env, const char *assignment, struct err *err)
{
    const char *equals = strchr(assignment, '=');
    AUTO_FREE char *name =
        alloc_strn(assignment, equals ? (size_t)(equals - assignment) : strlen(assignment));
    const char *value = equals ? equals + 1 : getenv(name);

    if (!*name)
        return err_set(err, ERR_INVALID, "--env \"%s\" has no name; NAME=VALUE or NAME is right",
                       assignment);
    if (value && json_object_set_new(env, name, json_string(value)))
        return err_set(err, ERR_INVALID, "--env %s: only UTF-8 goes over the wire", name);
    return 0;
}

/* Laid over the server's own. */
static json_t *env_to_json(const struct client_run *options, const struct start_place *place,
                           struct err *err)
{
    AUTO_JSON json_t *env = json_object();

    if (options->flags & CLIENT_RUN_TTY && place->term)
        json_object_set_new(env, "TERM", json_string(place->term));
    for (size_t i = 0; options->env && options->env[i]; i++)
        if (env_add(env, options->env[i], err))
            return NULL;
    return TAKE_PTR(env);
}

static int sandbox_to_json(const struct client_run *options, const char *cwd, json_t **ret,
                           struct err *err)
{
    const char *name = options->profile ? options->profile : "workspace-write";
    AUTO(profile_done) struct profile profile = {0};

    if (!profile_init_builtin(&profile, name))
        return err_set(err, ERR_INVALID,
                       "--profile \"%s\": read-only, workspace-write or danger-full-access is "
                       "right; profiles of a config file are for this machine",
                       name);
    if (profile.kind == PROFILE_DISABLED) {
        *ret = json_null();
        return 0;
    }
    if (options->network)
        profile.network =
            str_eq(options->network, "enabled") ? NETWORK_ENABLED : NETWORK_RESTRICTED;
    *ret = json_pack("{s:o, s:s, s:s, s:[s]}", "permissions", profile_to_json(&profile),
                     "windowsSandboxLevel", "disabled", "cwd", cwd, "workspaceRoots", cwd);
    return 0;
}

static void add_terminal(const struct start_place *place, json_t *params)
{
    json_object_set_new(params, "tty", json_true());
    if (!place->size.rows || !place->size.columns)
        return;
    json_object_set_new(params, "rows", json_integer(place->size.rows));
    json_object_set_new(params, "columns", json_integer(place->size.columns));
}

json_t *start_params(const struct client_run *options, const struct start_place *place,
                     struct err *err)
{
    AUTO_FREE char *cwd = remote_path_uri(place->folder, options->cwd, err);
    AUTO_JSON json_t *argv = NULL;
    AUTO_JSON json_t *env = NULL;
    AUTO_JSON json_t *params = NULL;
    json_t *sandbox = NULL;

    if (!cwd)
        return NULL;
    argv = argv_to_json(options->argv, err);
    env = argv ? env_to_json(options, place, err) : NULL;
    if (!env || sandbox_to_json(options, cwd, &sandbox, err))
        return NULL;
    params =
        json_pack("{s:s, s:O, s:s, s:O, s:b, s:b, s:o, s:{s:s, s:b, s:[], s:{}, s:[]}}",
                  "processId", place->id, "argv", argv, "cwd", cwd, "env", env, "tty", 0,
                  "pipeStdin", options->input == CLIENT_STDIN_PIPE, "sandbox", sandbox, "envPolicy",
                  "inherit", "all", "ignoreDefaultExcludes", 0, "exclude", "set", "includeOnly");
    if (options->flags & CLIENT_RUN_TTY)
        add_terminal(place, params);
    return TAKE_PTR(params);
}
