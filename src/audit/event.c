/* See event.h: nothing but the shapes. */
#include "audit/event.h"

#include "audit/redact.h"
#include "base/auto.h"
#include "base/json.h"

static json_t *words_without_secrets(char *const *argv, char *const *env)
{
    return argv ? audit_redact_words(argv, env) : json_array();
}

const char *audit_event_name(enum audit_event event)
{
    static const char *const names[] = {
        [AUDIT_BEGIN] = "begin",
        [AUDIT_OUTPUT] = "output",
        [AUDIT_ASKED] = "asked",
        [AUDIT_ANSWERED] = "answered",
        [AUDIT_DENIED] = "denied",
        [AUDIT_RETRIED] = "retried",
        [AUDIT_PATCH_BEGIN] = "patch-begin",
        [AUDIT_PATCH_END] = "patch-end",
        [AUDIT_END] = "end",
    };

    return names[event];
}

json_t *audit_begin_body(const struct audit_begin *begin)
{
    json_t *process = begin->process ? json_lossy(begin->process) : NULL;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o*}", "argv",
                     words_without_secrets(begin->argv, begin->env), "cwd", json_lossy(begin->cwd),
                     "profile", json_lossy(begin->profile), "network", json_lossy(begin->network),
                     "sandbox", json_lossy(begin->sandbox), "face", json_lossy(begin->face),
                     "process", process);
}

static json_t *count_to_json(uint64_t count)
{
    return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

json_t *audit_output_body(uint64_t stdout_bytes, uint64_t stderr_bytes)
{
    return json_pack("{s:o, s:o}", "stdout_bytes", count_to_json(stdout_bytes), "stderr_bytes",
                     count_to_json(stderr_bytes));
}

json_t *audit_asked_body(const struct audit_asked *asked)
{
    return json_pack("{s:o, s:o, s:o}", "argv", words_without_secrets(asked->argv, asked->env),
                     "reason", json_lossy(asked->reason), "covers", json_lossy(asked->covers));
}

json_t *audit_answered_body(const char *decision, const char *by, const char *rule)
{
    return json_pack("{s:o, s:o, s:o}", "decision", json_lossy(decision), "by", json_lossy(by),
                     "rule", json_lossy(rule));
}

json_t *audit_denied_body(const struct audit_denied *denied)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "operation", json_lossy(denied->operation),
                     "path", json_lossy(denied->path), "host", json_lossy(denied->host), "errno",
                     json_lossy(denied->error), "evidence", json_lossy(denied->evidence),
                     "decided_by", json_lossy(denied->decided_by));
}

json_t *audit_retried_body(const char *grant)
{
    return json_pack("{s:o}", "grant", json_lossy(grant));
}

json_t *audit_patch_begin_body(const char *cwd, uint64_t patch_bytes)
{
    return json_pack("{s:o, s:o}", "cwd", json_lossy(cwd), "patch_bytes",
                     count_to_json(patch_bytes));
}

json_t *audit_patch_end_body(bool is_applied, const char *reason)
{
    return json_pack("{s:b, s:o}", "applied", is_applied, "reason", json_lossy(reason));
}

json_t *audit_end_body(const struct audit_end *end)
{
    return json_pack("{s:o, s:o, s:i, s:o, s:o}", "end", json_lossy(end->end), "exit_code",
                     end->exit_code < 0 ? json_null() : json_integer(end->exit_code), "signal",
                     end->signal, "wall_time_ns", count_to_json(end->wall_ns), "reason",
                     json_lossy(end->reason));
}
