/* See session_command.h. The text of the call is judged as the script of its shell, like the argv
 * of an exec/run, and before it is known to be a patch. A shell that the rules cannot read is no
 * way around them: its text is judged as a script of sh as well. Whatever replaces it, the text of
 * the call stays what people and models are shown. */
#include "server/model/session_command.h"

#include "approval/requirement.h"
#include "base/auto.h"
#include "base/path.h"
#include "executor/patch_helper.h"
#include "job/job.h"
#include "job/model_calls.h"
#include "patch/call.h"
#include "rules/rules.h"
#include "rules/shell/command_view.h"
#include "server/call.h"
#include "server/client.h"
#include "server/client_session.h"
#include "server/login_shell.h"
#include "server/process/process_audit.h"
#include "server/rules_cache.h"
#include "server/sandbox_request.h"
#include "server/server.h"

#include <stdlib.h>
#include <sys/stat.h>

/* NULL when nothing forbids it; caller frees. */
static char *find_reason(const struct rules *rules, char *const *argv)
{
    const struct requirement_request request = {
        .argv = argv,
        .rules = rules,
        .policy = {.mode = APPROVAL_NEVER},
        .flags = REQUIREMENT_FORBIDS_ONLY,
    };
    AUTO(requirement_done) struct requirement requirement;

    requirement_decide(&request, &requirement);
    return requirement.outcome == REQUIREMENT_FORBID ? TAKE_PTR(requirement.reason) : NULL;
}

/* The text of a patch is for no log. */
static void write_down(const struct call *call, const struct process_refusal *refusal)
{
    char *const patch[] = {(char *)"apply_patch", NULL};
    AUTO(patch_call_done) struct patch_call read;
    struct process_refusal shown = *refusal;

    patch_call_read(refusal->argv, &read);
    if (read.kind == PATCH_CALL_PATCH)
        shown.argv = patch;
    process_audit_refusal(call->client->session, &shown);
}

/* `otherwise`: an argv to be judged as well; NULL: none. */
static char *find_refusal(const struct call *call, const struct process_refusal *refusal,
                          char *const *otherwise)
{
    struct server *server = call->client->server;
    const struct rule_owner owner = server_rule_owner(server);
    const struct rules *rules =
        rules_cache_get(&server->rules, &owner, server_rules_dir(refusal->workspace, refusal->cwd));
    struct process_refusal shown = *refusal;
    char *reason;

    if (rules_is_empty(rules))
        return NULL;
    reason = find_reason(rules, refusal->argv);
    if (!reason && otherwise)
        reason = find_reason(rules, otherwise);
    if (reason) {
        shown.reason = reason;
        write_down(call, &shown);
    }
    return reason;
}

char *session_rules_refusal(const struct call *call, const struct model_exec *exec,
                            const struct workspace *workspace)
{
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    char *as_sh[] = {(char *)"sh", (char *)"-c", (char *)exec->cmd, NULL};

    return find_refusal(call,
                        &(struct process_refusal){.argv = strv_view(&argv),
                                                  .env = exec->env,
                                                  .cwd = exec->workdir,
                                                  .workspace = workspace},
                        shell_wrapper_script(strv_view(&argv)) ? NULL : as_sh);
}

char *argv_rules_refusal(const struct call *call, char *const *argv, const char *cwd,
                         char *const *env, const struct workspace *workspace)
{
    return find_refusal(
        call,
        &(struct process_refusal){.argv = argv, .env = env, .cwd = cwd, .workspace = workspace},
        NULL);
}

/* --- what is executed in its place --- */

void session_replacement_done(struct session_replacement *replacement)
{
    patch_call_done(&replacement->patch);
    strv_done(&replacement->argv);
    strv_done(&replacement->env);
    strv_done(&replacement->helper);
    free(replacement->cwd);
}

static int use_patch(struct session_replacement *replacement, const struct server *server,
                     const struct workspace *workspace, struct model_exec *exec, struct err *err)
{
    static char *const no_env[] = {NULL};
    const struct patch_call *patch = &replacement->patch;
    struct stat st;

    replacement->cwd = path_clean(exec->workdir, patch->dir ? patch->dir : ".");
    if (stat(replacement->cwd, &st))
        return err_sys(err, "the directory of the patch, %s", replacement->cwd);
    if (patch->text_len > JOB_INPUT_MAX)
        return err_set(err, ERR_LIMIT, "the patch has more than %zu bytes", JOB_INPUT_MAX);
    replacement->words.program = workspaces_program(server->workspaces, SANDBOX_PROGRAM_PATCH);
    if (!replacement->words.program)
        return err_set(err, ERR_UNSUPPORTED,
                       "the program \"cordon\", which applies patches, is not installed");
    patch_helper_words(workspace, server_rule_owner(server).home, replacement->cwd, "apply", "text",
                       &replacement->helper);
    replacement->words.argv = strv_view(&replacement->helper);
    replacement->words.input = patch->text;
    replacement->words.input_len = patch->text_len;
    exec->workdir = replacement->cwd;
    exec->env = no_env;
    exec->stdio = PROCESS_PIPES;
    exec->input = PROCESS_STDIN_PIPE;
    exec->screen = NULL;
    exec->replacement = &replacement->words;
    return 0;
}

static void use_login(struct session_replacement *replacement, struct client_session *session,
                      const struct login_shell_call *call, struct model_exec *exec)
{
    AUTO(strv_done) struct strv added = {0};

    if (!login_shell_use(session, call, &replacement->argv, &added, &exec->note))
        return;
    strv_push_all(&replacement->env, exec->env);
    strv_push_all(&replacement->env, strv_view(&added));
    replacement->words.argv = strv_view(&replacement->argv);
    exec->env = strv_view(&replacement->env);
    exec->replacement = &replacement->words;
}

int session_replacement_init(struct session_replacement *replacement, const struct call *call,
                             const json_t *params, struct workspace *workspace, char *const *base,
                             struct model_exec *exec, struct err *err)
{
    AUTO(strv_done) struct strv argv = model_exec_argv(exec);
    const struct login_shell_call login = {.params = params,
                                           .argv = strv_view(&argv),
                                           .cwd = exec->workdir,
                                           .workspace = workspace,
                                           .env = base};

    patch_call_read(strv_view(&argv), &replacement->patch);
    if (replacement->patch.kind == PATCH_CALL_BARE)
        return err_set(err, ERR_INVALID, "%s", patch_call_advice);
    if (replacement->patch.kind == PATCH_CALL_PATCH)
        return use_patch(replacement, call->client->server, workspace, exec, err);
    use_login(replacement, call->client->session, &login, exec);
    return 0;
}
