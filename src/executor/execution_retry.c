/* See execution_retry.h. Leaving the sandbox is what requirement_retry() decides, as Codex does.
 * Widening it for one path is a smaller thing, so whoever may be asked at all may be asked about
 * it; only under `never`, and under `granular` without such questions, the denial stands. */
#include "executor/execution_retry.h"

#include "base/alloc.h"
#include "denial/denial.h"
#include "executor/execution.h"

static bool may_ask(const struct execution_options *options)
{
    const struct approval_policy *policy = &options->policy;

    if (options->gate != EXECUTION_ASKS || policy->mode == APPROVAL_NEVER)
        return false;
    return policy->mode != APPROVAL_GRANULAR || policy->questions & APPROVAL_QUESTION_SANDBOX;
}

static enum retry_outcome unconfined(const struct execution_options *options, bool was_approved)
{
    const struct retry_request request = {
        .policy = options->policy,
        .confinement = options->confinement,
        .tool = options->stand_in ? RETRY_PATCH : RETRY_COMMAND,
        .flags = was_approved ? RETRY_APPROVED : 0,
    };
    enum requirement_place place = REQUIREMENT_SANDBOXED;
    enum retry_outcome outcome = requirement_retry(&request, &place);

    return place == REQUIREMENT_UNCONFINED ? outcome : RETRY_NO;
}

unsigned execution_retry_ways(const struct execution_options *options, bool has_grant,
                              bool was_approved)
{
    enum retry_outcome outcome;
    unsigned ways = 0;

    if (!may_ask(options))
        return 0;
    outcome = unconfined(options, was_approved);
    if (outcome == RETRY_YES)
        ways |= EXECUTION_RETRY_AGREED;
    if (outcome != RETRY_NO)
        ways |= EXECUTION_RETRY_UNCONFINED;
    if (has_grant)
        ways |= EXECUTION_RETRY_GRANT;
    return ways;
}

bool execution_retry_is_covered(const struct execution_options *options)
{
    return may_ask(options) && unconfined(options, true) == RETRY_YES;
}

static const char *operation_words(enum denial_operation operation)
{
    static const char *const words[] = {
        [DENIAL_READ] = "reading",      [DENIAL_WRITE] = "writing",
        [DENIAL_EXECUTE] = "executing", [DENIAL_CONNECT] = "connecting to",
        [DENIAL_OTHER] = "something",
    };

    return words[operation];
}

char *execution_denial_words(const struct denials *denials)
{
    const struct denial *denial = NULL;
    const char *object;

    for (size_t i = 0; i < denials->len && !denial; i++)
        if (denials->items[i].source != DENIAL_BY_HOST)
            denial = &denials->items[i];
    if (!denial)
        return alloc_str("the sandbox refused something");
    object = denial->path ? denial->path : denial->host ? denial->host : "";
    if (!*object && denial->operation == DENIAL_CONNECT)
        object = "the network";
    return alloc_strf("the sandbox refused %s%s%s%s", operation_words(denial->operation),
                      *object ? " " : "", object,
                      denial->evidence == DENIAL_FACT ? "" : " (read from the output, so a guess)");
}
