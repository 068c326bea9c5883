/* The program cordon-server behind `cordon serve`, which has checked the options that need no
 * network code. */
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/serve.h"
#include "executor/outside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/user_token.h"
#include "policy/access.h"
#include "policy/config/config.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/listener.h"
#include "sandbox/sandbox.h"
#include "server/sandbox_request.h"
#include "server/server.h"
#include "server/service.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that this program is; what help texts are made of. */
const struct command *const commands[] = {&command_serve, NULL};

/* Everything between the options and the server. */
struct serving {
    struct serve_options options;
    struct rpc_address addresses[SERVE_LISTEN_MAX];
    size_t addresses_len;
    bool has_ws; /* one of those, or of systemd's */
    struct rpc_auth *auth;
    struct config_file file;
    char *token_path;    /* of the user's token; NULL: not known */
    struct strv secrets; /* canonical: what clients have to bring is derived from these files */
    struct outside hook; /* --approval-hook; its program NULL: none */
    char dir[PATH_MAX];  /* in which it was started */
};

static void serving_done(struct serving *serving)
{
    rpc_auth_free(serving->auth);
    outside_done(&serving->hook);
    config_file_done(&serving->file);
    free(serving->token_path);
    strv_done(&serving->secrets);
    strv_done(&serving->options.listen);
}

static void server_auto(struct server **slot)
{
    server_free(*slot);
}

/* Without an address systemd's sockets count, and without those either any free port. */
static int read_addresses(struct serving *serving, struct err *err)
{
    static const char *const otherwise = "ws://127.0.0.1:0";
    const struct serve_options *options = &serving->options;
    const char *const *texts =
        options->listen.len ? (const char *const *)options->listen.items : &otherwise;
    size_t len = options->listen.len ? options->listen.len : getenv("LISTEN_FDS") ? 0 : 1;
    for (size_t i = 0; i < len; i++)
        if (rpc_address_parse(texts[i], &serving->addresses[i], err))
            return err_wrap(err, "--listen");
    serving->addresses_len = len;
    for (size_t i = 0; i < len; i++)
        serving->has_ws |= serving->addresses[i].transport == RPC_WS;
    serving->has_ws |= service_gets_ws();
    if (options->auth.mode != RPC_AUTH_NONE && !serving->has_ws)
        return err_set(err, ERR_INVALID, "--ws-auth has no effect: no --listen is a ws:// address");
    return 0;
}

/* What is read again on SIGHUP; both NULL: nothing. */
static void find_auth_file(const struct serving *serving, const char **ret_flag,
                           const char **ret_file)
{
    const struct rpc_auth_options *auth = &serving->options.auth;

    *ret_flag = *ret_file = NULL;
    if (auth->mode == RPC_AUTH_USER_TOKEN) {
        *ret_flag = "--ws-auth";
        *ret_file = serving->token_path;
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

/* Reads what clients have to bring, and says what that is. */
static int read_auth(struct serving *serving, struct err *err)
{
    struct rpc_auth_options *auth = &serving->options.auth;
    const char *configured = config_ws_auth(serving->file.config);
    const char *flag;
    const char *file;

    if (serving->has_ws && auth->mode == RPC_AUTH_NONE) {
        if (!configured)
            auth->mode = default_mode();
        else if (rpc_auth_mode_parse(configured, &auth->mode, err))
            return -1;
    }
    auth->user_dir = serving->file.dir;
    serving->token_path = auth->user_dir ? user_token_path(auth->user_dir) : NULL;
    if (rpc_auth_new(auth, &serving->auth, err))
        return -1;
    find_auth_file(serving, &flag, &file);
    if (serving->has_ws)
        log_event(LOG_LEVEL_INFO, "ws-auth", log_text("mode", rpc_auth_mode_word(auth->mode)),
                  log_text("file", file));
    return 0;
}

static int configure(void *data, struct server_config *ret, struct err *err)
{
    struct serving *serving = data;
    AUTO(config_file_done) struct config_file file = {0};

    if (config_file_load(serving->options.config, serving->dir, &file, err))
        return -1;
    ret->file = TAKE_PTR(file.config);
    ret->path = TAKE_PTR(file.path);
    ret->text = TAKE_PTR(file.text);
    ret->dir = TAKE_PTR(file.dir);
    ret->home = TAKE_PTR(file.home);
    return 0;
}

/* Files that are there, or reading them has failed before. */
static void find_secrets(struct serving *serving)
{
    const struct rpc_auth_options *auth = &serving->options.auth;
    const char *const files[] = {auth->token_file, auth->shared_secret_file};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = files[i] ? realpath(files[i], NULL) : NULL;

        if (path && !strv_has(&serving->secrets, path))
            strv_push(&serving->secrets, path);
        free(path);
    }
}

/* A file can have become another one, by a link: that is hidden, too, whether it is right or not.
 */
static int renew(void *data, struct server_secrets *ret, struct err *err)
{
    struct serving *serving = data;

    find_secrets(serving);
    find_auth_file(serving, &ret->flag, &ret->file);
    ret->files = strv_view(&serving->secrets);
    return rpc_auth_reload(serving->auth, &serving->options.auth, &ret->has_changed, err);
}

/* Once. A command that could change it could answer itself. */
static int find_hook(struct serving *serving, struct err *err)
{
    const char *given = serving->options.approval_hook;

    if (!given)
        return 0;
    if (outside_hook(given, serving->dir, &serving->hook, err))
        return err_wrap(err, "--approval-hook");
    strv_push(&serving->file.own_paths, serving->hook.program);
    return 0;
}

/* Else every call that names none would be refused. */
static int check_default_sandbox(const struct serving *serving, struct err *err)
{
    const char *name = serving->options.default_sandbox;
    AUTO(config_profile_done) struct config_profile ignored = {0};

    if (!name || str_eq(name, SANDBOX_NONE) || str_eq(name, SANDBOX_DEFAULT))
        return 0;
    if (config_profile(serving->file.config, name, serving->file.home, &ignored, err))
        return err_wrap(err, "--default-sandbox");
    return 0;
}

static int serve(struct serving *serving, struct err *err)
{
    const struct serve_options *options = &serving->options;
    AUTO(server_auto) struct server *server = NULL;
    struct server_options asked = {
        .addresses = serving->addresses,
        .configure = configure,
        .data = serving,
        .limits = options->limits,
        .flags = options->asks_terminal ? SERVER_ASKS_TERMINAL : 0,
    };

    if (!getcwd(serving->dir, sizeof serving->dir))
        return err_sys(err, "finding the current directory");
    if (read_addresses(serving, err) ||
        config_file_load(options->config, serving->dir, &serving->file, err) ||
        read_auth(serving, err) || check_default_sandbox(serving, err))
        return -1;
    find_secrets(serving);
    /* a command that could move the socket away could have clients talk to something else */
    for (size_t i = 0; i < serving->addresses_len; i++)
        if (serving->addresses[i].transport == RPC_UNIX)
            strv_push_take(&serving->file.own_paths,
                           path_clean(serving->dir, serving->addresses[i].path));
    if (find_hook(serving, err))
        return -1;
    if (options->asks_terminal) {
        /* in the background the prompt leaves the terminal alone; what writes there must not stop us */
        signal(SIGTTIN, SIG_IGN);
        signal(SIGTTOU, SIG_IGN);
    }
    asked.approval_hook = serving->hook.program;
    asked.approval_hook_env = strv_view(&serving->hook.env);
    asked.default_sandbox = options->default_sandbox;
    log_event(LOG_LEVEL_INFO, "default-sandbox",
              log_text("name", options->default_sandbox ? options->default_sandbox : "none"));
    asked.addresses_len = serving->addresses_len;
    asked.auth = serving->auth;
    asked.renew = serving->auth && !rpc_auth_is_open(serving->auth) ? renew : NULL;
    asked.own_paths = strv_view(&serving->file.own_paths);
    asked.secrets = strv_view(&serving->secrets);
    server = server_new(&asked, err);
    return server ? server_run(server, err) : -1;
}

int main(int argc, char **argv)
{
    AUTO(serving_done) struct serving serving = {.hook = {.program = NULL}};
    struct log_options log = {.fd = STDERR_FILENO};
    struct err err;
    int status;

    /* one heap is enough for one thread, and what a large answer took goes back to the system */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    mallopt(M_TRIM_THRESHOLD, 256 * 1024);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a spool that grows too large is an error of that spool */
    if (!serve_parse(argv, &serving.options, &status))
        return status;
    log.form = serving.options.log_form;
    log.level = serving.options.log_level;
    log_init(&log);
    if (serve(&serving, &err) == 0)
        return EXIT_OK;
    console_fail(&err);
    return EXIT_NO;
}
