/* What the parts of the benchmark share: where it plays, and how a program is run bare and inside.
 */
#pragma once

#include "report.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

struct cordon_engine;
struct layer;

struct bench {
    char *ws; /* canonical: the workspace, with a .git folder; the other protected names are missing
               */
    char *other_ws; /* another one, for bubblewrap */
    const char *cordon;
    const char *launcher;
    const char *static_true; /* does nothing, static with musl: almost no cost of its own */
    const char *static_pause;
    const char *static_write;
    const char *static_touch;
    const char *static_echo;
    const char *static_calls;
    const char *static_dial;
    const char *before; /* `cordon` of another build, to be measured beside this one; may be NULL */
    unsigned runs;
    int null; /* of /dev/null */
    struct report report;
    double bare;        /* median of posix_spawn of /bin/true, milliseconds */
    double bare_static; /* of `static_true` */
};

/* What posix_spawn(3) of /bin/true took where the targets were set. */
#define BARE_THERE 0.55
/* And of an empty static program. */
#define BARE_STATIC_THERE 0.12

/* Each adds its figures to the report, and ends the program when something does not work. */
void bench_spawn(struct bench *bench);
void bench_library(struct bench *bench);
void bench_rate(struct bench *bench);
void bench_tools(struct bench *bench);
void bench_memory(struct bench *bench);
void bench_audit(struct bench *bench);
void bench_rules(struct bench *bench);
void bench_patch(struct bench *bench);
void bench_sessions(struct bench *bench);
void bench_server(struct bench *bench);
void bench_mcp(struct bench *bench);
void bench_neighbours(struct bench *bench);
void bench_works(struct bench *bench);
void bench_guard(struct bench *bench);
void bench_layer(struct bench *bench);
void bench_network(struct bench *bench); /* the last: the network is another one then */

/* Parts of bench_sessions(). */
void bench_echo(struct bench *bench, struct cordon_engine *engine);
void bench_flow(struct bench *bench, struct cordon_engine *engine);

/* It has to be over soon; numbers mean little. */
bool bench_is_quick(const struct bench *bench);

/* "VmRSS" or another number of kilobytes out of /proc/self/status, proc(5). */
double bench_memory_now(const char *name);

/* Prints the message and exits with 1. */
void bench_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void bench_check(int status, const struct err *err);

/* Removes a folder with all that is in it; none is fine. */
void bench_remove(const char *path);

/* Proportional share of the memory of a process, KiB (smaps_rollup, proc(5)). */
double bench_memory_of(pid_t pid);

/* Runs a program by posix_spawn(3) and waits for it; stdio is /dev/null, and it has to exit with 0.
 * argv[0] is a path. */
void run_bare(const struct bench *bench, const char *const *argv);
void run_bare_with(const struct bench *bench, const char *const *argv, char *const *env);

/* The same without waiting, and with these as 0 and 1. */
pid_t run_spawn(const struct bench *bench, const char *const *argv, int in, int out);

/* A sandbox for the profile workspace-write with a restricted network. */
struct sandbox *sandbox_open(const struct bench *bench, bool cache_idle);

/* The same for the workspace alone, without temporary folders; commands write to the layer (NULL: to the real files). */
struct sandbox *sandbox_open_in(const struct bench *bench, struct layer *layer);

/* One command in it, as a host would start it: stdio is /dev/null, cwd the workspace. */
void run_start(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
               struct launch *ret);

/* The same with other descriptors as its 0, 1 and 2. */
void run_start_with(const struct bench *bench, struct sandbox *sandbox, const char *const *argv,
                    const int stdio[3], struct launch *ret);

/* Waits until its program was executed. */
void run_wait_started(struct launch *launch);

/* Waits for the end of the command, which has to be exit code 0, and closes the launch. */
void run_finish(struct launch *launch);

/* Takes what the launcher says. true when the command has ended (and the launch is closed). */
bool run_poll(struct launch *launch);

void run_inside(const struct bench *bench, struct sandbox *sandbox, const char *const *argv);
