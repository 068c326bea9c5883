/* What the tests of real launches share: a workspace, sandboxes for it, and commands in them. All
 * waits have a deadline, after which the test fails. */
#pragma once

#include "../base/support.h"

#include "base/buf.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>

/* A scratch directory with a writable "ws" in a tree that is otherwise read-only. */
struct ground {
    char *scratch;
    char *ws;
};

void ground_init(struct ground *ret);
void ground_done(struct ground *ground);

/* The usual map: / read, ws write, ws/.git and ws/.codex read. */
void ground_map(const struct ground *ground, struct access_map *ret);

/* A sandbox of that map; fails the test, or skips it when this host gives no namespaces. */
struct sandbox *ground_sandbox(const struct ground *ground, enum sandbox_mode mode);
struct sandbox *ground_sandbox_caching(const struct ground *ground);
struct sandbox *ground_sandbox_watching(const struct ground *ground, unsigned watch);

/* Skips the test (CORDON_MUST_WORK=1: fails it) for a reason. */
void skip_because(const char *reason);

struct command {
    struct launch launch;
    int out; /* read end of its standard output and error */
    struct buf text;
    bool is_silent; /* nothing follows */
};

/* How it ended, and all that it wrote. */
struct ended {
    bool has_started;
    struct launch_report report; /* EXITED, FAILED or GONE */
    char *text;
};

/* Options for `argv` in `ws`, with PATH and nothing else in the environment; stdio is filled in by
 * command_start(). */
struct launch_options launch_in(const char *cwd, char *const *argv);

/* Fails the test when the launch fails at once. */
void command_start(struct command *ret, struct sandbox *sandbox, struct launch_options options);

/* Waits for some of its output; false at the end. */
bool command_read(struct command *command);

/* Waits until this much text came in all, or fails; the text so far. */
const char *command_expect(struct command *command, const char *part);

/* Waits until no process has the other end of `out` open any more: every process is gone. */
void command_expect_silence(struct command *command);

/* Waits for the end, reads the rest, and closes the launch. */
struct ended command_finish(struct command *command);
void ended_done(struct ended *ended);

/* All in one: `sh -c script` in ws. */
struct ended run_script(struct sandbox *sandbox, const char *cwd, const char *script);
struct ended run_argv(struct sandbox *sandbox, const char *cwd, char *const *argv);

/* The same, and it has to exit with this code; the text, to be freed. */
char *script_output(struct sandbox *sandbox, const char *cwd, const char *script);

#define ARGV(...) ((char *[]){__VA_ARGS__, NULL})
#define assert_exited(ended, code)                                                                 \
    do {                                                                                           \
        if ((ended).report.event != LAUNCH_EXITED || (ended).report.wait_status != (code) << 8)    \
            fail_msg("event %d, stage %d, status %#x, \"%s\", output \"%s\"",                      \
                     (ended).report.event, (ended).report.stage, (ended).report.wait_status,       \
                     (ended).report.failure.msg, (ended).text);                                    \
    } while (0)
