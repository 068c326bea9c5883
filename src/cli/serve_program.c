/* The program cordon-server behind `cordon serve` and `cordon mcp` (mcp_program.c), which have checked the options that need no
 * network code. */
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/mcp.h"
#include "cli/serve.h"
#include "cli/serve_auth.h"
#include "executor/outside.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "policy/config/config.h"
#include "rpc/transport/auth.h"
#include "rpc/transport/listener.h"
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
const struct command *const commands[] = {&command_serve, &command_mcp, NULL};

/* Everything between the options and the server. */
struct serving {
    struct serve_options options;
    struct rpc_address addresses[SERVE_LISTEN_MAX];
    size_t addresses_len;
    bool has_ws; /* one of those, or of systemd's */
    struct serve_auth door;
    struct config_file file;
    struct outside hook; /* --approval-hook; its program NULL: none */
    char dir[PATH_MAX];  /* in which it was started */
};

static void serving_done(struct serving *serving)
{
    serve_auth_done(&serving->door);
    outside_done(&serving->hook);
    config_file_done(&serving->file);
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
    return 0;
}

static int configure(void *data, struct server_config *ret, struct err *err)
{
    const struct serving *serving = data;

    return serve_configure(serving->options.config, serving->dir, ret, err);
}

static int renew(void *data, struct server_secrets *ret, struct err *err)
{
    struct serving *serving = data;

    return serve_auth_renew(&serving->door, ret, err);
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

    serving->door.options = &serving->options.auth;
    if (!getcwd(serving->dir, sizeof serving->dir))
        return err_sys(err, "finding the current directory");
    if (read_addresses(serving, err) ||
        config_file_load(options->config, serving->dir, &serving->file, err) ||
        serve_auth_read(&serving->door, &serving->file, serving->has_ws, err))
        return -1;
    if (serve_check_sandbox(&serving->file, options->default_sandbox, err))
        return err_wrap(err, "--default-sandbox");
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
    asked.auth = serving->door.auth;
    asked.renew = asked.auth && !rpc_auth_is_open(asked.auth) ? renew : NULL;
    asked.own_paths = strv_view(&serving->file.own_paths);
    asked.secrets = strv_view(&serving->door.secrets);
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
    if (str_eq(argv[0], command_mcp.name))
        return mcp_program(argv, NULL);
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
