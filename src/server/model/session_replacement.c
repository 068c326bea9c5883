/* See session_stand_in.h. The text of the call stays what people and models are shown. */
#include "server/model/session_replacement.h"

#include "base/auto.h"
#include "base/path.h"
#include "job/job.h"
#include "patch/patch.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/login_shell.h"
#include "server/place.h"
#include "server/server.h"

#include <stdlib.h>
#include <sys/stat.h>

void session_stand_in_done(struct session_stand_in *stand_in)
{
    patch_call_done(&stand_in->patch);
    strv_done(&stand_in->argv);
    strv_done(&stand_in->env);
    free(stand_in->cwd);
}

static int use_patch(struct session_stand_in *stand_in, const struct server *server,
                     struct unified_exec *exec, struct err *err)
{
    static char *const no_env[] = {NULL};
    const struct patch_call *patch = &stand_in->patch;
    struct stat st;

    stand_in->cwd = path_clean(exec->workdir, patch->directory ? patch->directory : ".");
    if (stat(stand_in->cwd, &st))
        return err_sys(err, "the folder of the patch, %s", stand_in->cwd);
    if (patch->text_len > SESSION_INPUT_MAX)
        return err_set(err, ERR_LIMIT, "the patch has more than %zu bytes", SESSION_INPUT_MAX);
    stand_in->unified.program = places_patch_program(server->places);
    if (!stand_in->unified.program)
        return err_set(err, ERR_UNSUPPORTED,
                       "the program \"cordon\", which applies patches, is not installed");
    stand_in->helper[0] = (char *)PATCH_HELPER_NAME;
    stand_in->helper[1] = (char *)"apply";
    stand_in->helper[2] = (char *)"text";
    stand_in->unified.argv = stand_in->helper;
    stand_in->unified.input = patch->text;
    stand_in->unified.input_len = patch->text_len;
    exec->workdir = stand_in->cwd;
    exec->env = no_env;
    exec->stdio = PROCESS_PIPES;
    exec->input = PROCESS_STDIN_PIPE;
    exec->screen = NULL;
    exec->stand_in = &stand_in->unified;
    return 0;
}

static void use_login(struct session_stand_in *stand_in, struct client_session *session,
                      const struct login_shell_call *call, struct unified_exec *exec)
{
    AUTO(strv_done) struct strv added = {0};

    if (!login_shell_use(session, call, &stand_in->argv, &added, &exec->note))
        return;
    strv_push_all(&stand_in->env, exec->env);
    strv_push_all(&stand_in->env, strv_view(&added));
    stand_in->unified.argv = strv_view(&stand_in->argv);
    exec->env = strv_view(&stand_in->env);
    exec->stand_in = &stand_in->unified;
}

int session_stand_in_init(struct session_stand_in *stand_in, const struct call *call,
                          const json_t *params, struct place *place, char *const *base,
                          struct unified_exec *exec, struct err *err)
{
    char *const argv[] = {(char *)exec->shell, (char *)(exec->is_login ? "-lc" : "-c"),
                          (char *)exec->cmd, NULL};
    const struct login_shell_call login = {
        .params = params, .argv = argv, .cwd = exec->workdir, .place = place, .env = base};

    patch_call_read(argv, &stand_in->patch);
    if (stand_in->patch.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (stand_in->patch.kind == PATCH_CALL_PATCH)
        return use_patch(stand_in, call->client->server, exec, err);
    use_login(stand_in, call->client->session, &login, exec);
    return 0;
}
