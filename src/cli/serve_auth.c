/* See serve_auth.h. Where no sandbox could hide the user's token, it is not asked for: no command could start once there is one. */
#include "cli/serve_auth.h"

#include "cli/config_file.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/user_token.h"
#include "policy/access.h"
#include "policy/config/config.h"
#include "sandbox/sandbox.h"
#include "server/server.h"

#include <stdlib.h>

void serve_auth_done(struct serve_auth *door)
{
    rpc_auth_free(door->auth);
    free(door->token_path);
    strv_done(&door->secrets);
}

/* What is read again on SIGHUP; both NULL: nothing. */
static void find_auth_file(const struct serve_auth *door, const char **ret_flag,
                           const char **ret_file)
{
    const struct rpc_auth_options *auth = door->options;

    *ret_flag = *ret_file = NULL;
    if (auth->mode == RPC_AUTH_USER_TOKEN) {
        *ret_flag = "--ws-auth";
        *ret_file = door->token_path;
    } else if (auth->mode == RPC_AUTH_CAPABILITY_TOKEN) {
        *ret_flag = auth->token_sha256 ? "--ws-token-sha256" : "--ws-token-file";
        *ret_file = auth->token_file;
    } else if (auth->mode == RPC_AUTH_SIGNED_BEARER_TOKEN) {
        *ret_flag = "--ws-shared-secret-file";
        *ret_file = auth->shared_secret_file;
    }
}

/* A sandbox of this host can cover a directory, whatever else it may read. */
static bool can_hide(struct err *ret_why)
{
    AUTO(access_map_done) struct access_map map = {.restricted = true};
    const struct sandbox_options options = {.mode = SANDBOX_AUTO, .access = &map};
    struct sandbox *sandbox;
    bool can;

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "trial");
    access_map_add(&map, "/usr", ACCESS_DENY, ACCESS_DIR, "trial");
    access_map_sort(&map);
    sandbox = sandbox_new(&options, ret_why);
    can = sandbox && sandbox_probe(sandbox, ret_why) == 0;
    sandbox_free(sandbox);
    return can;
}

/* Where no sandbox could hide the token, none could start once there is one. */
static enum rpc_auth_mode default_mode(void)
{
    struct err why;

    if (can_hide(&why))
        return RPC_AUTH_USER_TOKEN;
    log_event(LOG_LEVEL_WARN, "no-user-token", log_text("why", why.msg));
    return RPC_AUTH_OWN_PROCESSES;
}

/* Files that are there, or reading them has failed before. */
static void find_secrets(struct serve_auth *door)
{
    const struct rpc_auth_options *auth = door->options;
    const char *const files[] = {auth->token_file, auth->shared_secret_file};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = files[i] ? realpath(files[i], NULL) : NULL;

        if (path && !strv_has(&door->secrets, path))
            strv_push(&door->secrets, path);
        free(path);
    }
}

int serve_auth_read(struct serve_auth *door, const struct config_file *from, bool is_needed,
                    struct err *err)
{
    struct rpc_auth_options *auth = door->options;
    const char *configured = config_ws_auth(from->config);
    const char *flag;
    const char *file;

    if (!is_needed && auth->mode != RPC_AUTH_NONE)
        return err_set(err, ERR_INVALID,
                       "--ws-auth has no effect: no --listen is a ws:// or http:// address");
    if (is_needed && auth->mode == RPC_AUTH_NONE) {
        if (!configured)
            auth->mode = default_mode();
        else if (rpc_auth_mode_parse(configured, &auth->mode, err))
            return -1;
    }
    auth->user_dir = from->dir;
    door->token_path = auth->user_dir ? user_token_path(auth->user_dir) : NULL;
    if (rpc_auth_new(auth, &door->auth, err))
        return -1;
    find_secrets(door);
    find_auth_file(door, &flag, &file);
    if (is_needed)
        log_event(LOG_LEVEL_INFO, "ws-auth", log_text("mode", rpc_auth_mode_word(auth->mode)),
                  log_text("file", file));
    return 0;
}

/* A file can have become another one, by a link: that is hidden, too, whether it is right or not.
 */
int serve_auth_renew(struct serve_auth *door, struct server_secrets *ret, struct err *err)
{
    find_secrets(door);
    find_auth_file(door, &ret->flag, &ret->file);
    ret->files = strv_view(&door->secrets);
    return rpc_auth_reload(door->auth, door->options, &ret->has_changed, err);
}
