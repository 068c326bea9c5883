/* See remote_policy.h. */
#include "cli/remote_policy.h"

#include "base/auto.h"
#include "base/file_uri.h"
#include "cli/settings.h"
#include "client/run.h"
#include "policy/profile.h"

/* The paths of one kind. */
static char *const *take_paths(const struct policy_options *policy, enum access access,
                               struct strv *ret)
{
    for (size_t i = 0; i < policy->paths_len; i++)
        if (policy->paths[i].access == access)
            strv_push(ret, policy->paths[i].text);
    return strv_view(ret);
}

/* The word of a number that counts from 1; 0: none was given. */
static const char *word_of(const char *const *words, unsigned number)
{
    return number ? words[number - 1] : NULL;
}

void remote_policy_take(const struct policy_options *policy, struct remote_policy *lists,
                        struct client_run *ret)
{
    static const char *const modes[] = {[SANDBOX_AUTO] = NULL,
                                        [SANDBOX_REQUIRE] = "require",
                                        [SANDBOX_DISABLED] = "disabled",
                                        [SANDBOX_LANDLOCK] = "landlock"};

    protect_choice_words(&policy->protect, &lists->protect);
    ret->profile = policy->profile;
    ret->network = word_of(network_access_words, policy->network);
    ret->watch = word_of(profile_watch_words, policy->watch);
    ret->judge = word_of(profile_judge_words, policy->judge);
    ret->tmp = word_of(profile_tmp_words, policy->tmp);
    ret->git = word_of(profile_git_words, policy->git);
    ret->mode = modes[policy->mode];
    ret->has_protect = policy->protect.is_made;
    ret->protect = policy->protect.is_made ? strv_view(&lists->protect) : NULL;
    ret->sockets = strv_view(&policy->sockets);
    ret->hosts = &policy->hosts;
    ret->presets = strv_view(&policy->presets);
    ret->deny = take_paths(policy, ACCESS_DENY, &lists->deny);
    ret->readable = take_paths(policy, ACCESS_READ, &lists->readable);
    ret->writable = take_paths(policy, ACCESS_WRITE, &lists->writable);
}

void remote_policy_done(struct remote_policy *lists)
{
    strv_done(&lists->deny);
    strv_done(&lists->readable);
    strv_done(&lists->writable);
    strv_done(&lists->protect);
}

json_t *remote_policy_sandbox(const struct policy_options *policy, const char *workspace,
                              struct err *err)
{
    AUTO(remote_policy_done) struct remote_policy lists = {0};
    AUTO_FREE char *uri = file_uri_format(workspace);
    struct client_run run = {.argv = NULL};
    json_t *sandbox;

    remote_policy_take(policy, &lists, &run);
    return client_run_sandbox(&run, uri, &sandbox, err) ? NULL : sandbox;
}
