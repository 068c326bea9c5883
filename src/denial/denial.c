/* See denial.h. Facts come from the end of the command: the launcher's reason for not executing it,
 * a death by SIGSYS. Everything else is read from the output of a command that failed, line by
 * line, and labelled as the guess that it is. */
#include "denial/denial.h"

#include "base/alloc.h"
#include "base/str.h"
#include "denial/denial_line.h"
#include "denial/denial_verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Rust programs print the reason some lines below the path:
 *
 *     error: failed to create directory `/x/target`
 *
 *     Caused by:
 *       Read-only file system (os error 30)
 */
#define LOOK_BACK 4 /* lines */

const char *denial_operation_name(enum denial_operation operation)
{
    static const char *const names[] = {
        [DENIAL_READ] = "read",       [DENIAL_WRITE] = "write", [DENIAL_EXECUTE] = "execute",
        [DENIAL_CONNECT] = "connect", [DENIAL_OTHER] = "other",
    };

    return names[operation];
}

const char *denial_evidence_name(enum denial_evidence evidence)
{
    return evidence == DENIAL_FACT ? "fact" : "heuristic";
}

const char *denial_source_name(enum denial_source source)
{
    static const char *const names[] = {
        [DENIAL_BY_SANDBOX] = "sandbox",
        [DENIAL_BY_HOST] = "host",
        [DENIAL_BY_UNKNOWN] = "unknown",
    };

    return names[source];
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && str_eq(a, b));
}

/* Takes `denial` over. The same thing refused twice is one denial. */
static void denials_push(struct denials *denials, struct denial *denial)
{
    bool known = denials->len >= DENIALS_MAX;

    for (size_t i = 0; i < denials->len; i++) {
        const struct denial *other = &denials->items[i];

        known |= other->operation == denial->operation && is_same(other->path, denial->path) &&
                 is_same(other->host, denial->host);
    }
    if (known) {
        denial_done(denial);
        return;
    }
    denials->items = alloc_grow(denials->items, denials->len, &denials->cap, sizeof *denial);
    denials->items[denials->len++] = *denial;
}

void denials_done(struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        denial_done(&denials->items[i]);
    free(denials->items);
    *denials = (struct denials){0};
}

bool denials_by_sandbox(const struct denials *denials)
{
    for (size_t i = 0; i < denials->len; i++)
        if (denials->items[i].source != DENIAL_BY_HOST)
            return true;
    return false;
}

/* A program or folder that the profile hides looks missing inside: ENOENT counts as well. */
static void find_in_failure(const struct denial_input *input, struct denials *ret)
{
    const struct process_end *end = input->end;
    bool is_cwd = end->stage == LAUNCH_STAGE_CWD;
    const char *path = is_cwd ? input->cwd : input->program;
    struct denial denial;

    if (!input->access || !path || end->stage == LAUNCH_STAGE_SANDBOX || !strchr(path, '/'))
        return;
    if (denial_verdict_path(is_cwd ? DENIAL_READ : DENIAL_EXECUTE, path, end->failure.sys,
                            input->access, input->cwd, &denial))
        denials_push(ret, &denial);
}

/* seccomp ends a process that calls by a foreign system call table with SIGSYS. A shell makes
 * 128 + SIGSYS of it. */
static void find_in_signal(const struct process_end *end, struct denials *ret)
{
    bool by_signal = end->how == PROCESS_SIGNALED && end->signal == SIGSYS;
    bool by_code = end->how == PROCESS_EXITED && end->code == 128 + SIGSYS;
    struct denial denial = {
        .operation = DENIAL_OTHER,
        .evidence = by_signal ? DENIAL_FACT : DENIAL_HEURISTIC,
        .source = DENIAL_BY_SANDBOX,
    };

    if (!by_signal && !by_code)
        return;
    denial.origin = alloc_str("the seccomp filter");
    denial.remedy = alloc_str("The command used a system call that no profile allows.");
    denials_push(ret, &denial);
}

static const char *line_before(const char *text, const char *line)
{
    if (line == text)
        return NULL;
    for (line--; line > text && line[-1] != '\n'; line--)
        continue;
    return line;
}

/* Paths of the lines above, the nearest first. */
static void look_back(const char *text, const char *line, struct strv *paths)
{
    for (int i = 0; i < LOOK_BACK && !paths->len; i++) {
        line = line_before(text, line);
        if (!line)
            return;
        denial_line_quoted(line, strcspn(line, "\n"), paths);
    }
}

/* What a shell cannot execute it reports with this code (POSIX XCU 2.8.2). */
static bool is_not_executable(const struct process_end *end)
{
    return end->how == PROCESS_EXITED && end->code == 126;
}

static void find_in_line(const struct denial_input *input, const char *text, const char *line,
                         size_t len, struct denials *ret)
{
    struct denial_clue clue;
    struct denial denial;

    if (!denial_line_read(line, len, &clue))
        return;
    if (clue.is_rust && !clue.paths.len)
        look_back(text, line, &clue.paths);
    if (is_not_executable(input->end) && clue.error == EACCES && clue.hint == DENIAL_HINT_NONE)
        clue.hint = DENIAL_HINT_EXECUTE;
    if (denial_verdict(&clue, input->access, input->cwd, &denial))
        denials_push(ret, &denial);
    denial_clue_done(&clue);
}

static void find_in_text(const struct denial_input *input, const char *text, struct denials *ret)
{
    for (const char *line = text; *line && ret->len < DENIALS_MAX;) {
        size_t len = strcspn(line, "\n");

        find_in_line(input, text, line, len, ret);
        line += len + (line[len] == '\n');
    }
}

/* Nothing is denied to whom everything is allowed. */
static bool is_open(const struct access_map *access)
{
    return !access || (access_map_full_write(access) && access->network == NETWORK_ENABLED);
}

static bool is_success(const struct process_end *end)
{
    return end->how == PROCESS_EXITED && end->code == 0;
}

void denials_find(const struct denial_input *input, struct denials *ret)
{
    if (is_success(input->end))
        return;
    if (input->end->how == PROCESS_FAILED_TO_START) {
        find_in_failure(input, ret);
        return;
    }
    if (is_open(input->access))
        return;
    find_in_signal(input->end, ret);
    /* stderr first: that is where reasons stand */
    if (input->texts[STREAM_STDERR])
        find_in_text(input, input->texts[STREAM_STDERR], ret);
    if (input->texts[STREAM_STDOUT])
        find_in_text(input, input->texts[STREAM_STDOUT], ret);
}
