/* environment/info and environment/status: this host, as host.h tells of it; and
 * environmentConfig/read: parts of Codex's own configuration here, the system's and the user's
 * config.toml, and requirements.toml, for a client that runs elsewhere. Only what is asked for
 * leaves the host. */
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "policy/config/toml.h"
#include "server/call.h"
#include "server/host.h"
#include "server/methods.gen.h"
#include "server/rpc_path.h"
#include "server/toml_text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void method_environment_info(struct call *call)
{
    call_reply(call, host_info());
}

void method_environment_status(struct call *call)
{
    call_reply(call, json_pack("{s:s}", "status", "ready"));
}

enum { CONFIG_MAX = 4 << 20, PATHS_MAX = 256 };

static void tree_auto(struct toml_node **slot)
{
    toml_free(*slot);
}

/* 1 with the selected text, 0 when the file is not there or has nothing of it. */
static int select_from(const char *file, const json_t *paths, struct buf *ret, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(tree_auto) struct toml_node *tree = NULL;

    if (fd_read_file(file, CONFIG_MAX, &text, err))
        return err->sys == ENOENT || err->sys == ENOTDIR ? 0 : -1;
    tree = toml_parse(text.data ? text.data : "", text.len, err);
    if (!tree || toml_text_select(tree, paths, ret, err))
        return err_wrap(err, "%s", file);
    return ret->len > 0;
}

static int add_layer(json_t *layers, const char *kind, const char *dir, const char *name,
                     const json_t *paths, struct err *err)
{
    AUTO_FREE char *file = path_join(dir, name);
    AUTO_FREE char *source = alloc_strf("%s (%s)", kind, file);
    AUTO(buf_done) struct buf text;
    int status;

    buf_init(&text, CONFIG_MAX);
    status = select_from(file, paths, &text, err);
    if (status > 0)
        json_array_append_new(layers,
                              json_pack("{s:o, s:o, s:s#}", "source", json_lossy(source), "baseDir",
                                        rpc_path_to_json(dir), "toml", text.data, text.len));
    return status < 0 ? -1 : 0;
}

static json_t *stack_to_json(json_t *layers)
{
    return json_pack("{s:O, s:i}", "layers", layers, "cloudInsertionIndex", 0);
}

/* Every path is an array of one or more keys. */
static bool are_paths(const json_t *paths)
{
    for (size_t i = 0; i < json_array_size(paths); i++)
        if (json_array_size(json_array_get(paths, i)) == 0)
            return false;
    return true;
}

static bool check_paths(struct call *call, const json_t *config, const json_t *requirements)
{
    size_t count = json_array_size(config) + json_array_size(requirements);

    if (count >= 1 && count <= PATHS_MAX && are_paths(config) && are_paths(requirements))
        return true;
    call_fail(call, RPC_INVALID_PARAMS,
              "environment config needs 1 to %d paths, each of at least one key", PATHS_MAX);
    return false;
}

void method_environment_config_read(struct call *call,
                                    const struct environment_config_read_params *params)
{
    const json_t *config_paths = params->config_paths;
    const json_t *requirements_paths = params->requirements_paths;
    AUTO_FREE char *home = host_home();
    AUTO_FREE char *codex = host_codex_home();
    AUTO_JSON json_t *config = json_array();
    AUTO_JSON json_t *requirements = json_array();
    char host[HOST_NAME_MAX + 1] = "";
    enum rpc_code code;
    struct err err;
    AUTO_FREE char *cwd = rpc_path_parse(params->cwd, &code, &err); /* only to be right */

    if (!cwd) {
        call_fail_with(call, code, &err);
        return;
    }
    if (!check_paths(call, config_paths, requirements_paths))
        return;
    if (add_layer(config, "system", HOST_CODEX_SYSTEM, "config.toml", config_paths, &err) ||
        add_layer(config, "user", codex, "config.toml", config_paths, &err) ||
        add_layer(requirements, "system", HOST_CODEX_SYSTEM, "requirements.toml",
                  requirements_paths, &err)) {
        call_fail(call, RPC_INTERNAL, "%s", err.msg);
        return;
    }
    gethostname(host, sizeof host - 1);
    call_reply(call, json_pack("{s:o, s:o, s:s, s:o, s:o}", "userHomeDir", rpc_path_to_json(home),
                               "codexHomeDir", rpc_path_to_json(codex), "hostname", host, "config",
                               stack_to_json(config), "requirements", stack_to_json(requirements)));
}
