/* See launching.h. */
#include "launching.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE_MS = 30000, TEXT_MAX = 1 << 20 };

void ground_init(struct ground *ret)
{
    ret->scratch = support_scratch_new();
    ret->ws = path_join(ret->scratch, "ws");
    assert_int_equal(mkdir(ret->ws, 0755), 0);
}

void ground_done(struct ground *ground)
{
    support_scratch_remove(ground->scratch);
    free(ground->ws);
}

void ground_map(const struct ground *ground, struct access_map *ret)
{
    AUTO_FREE char *git = path_join(ground->ws, ".git");
    AUTO_FREE char *codex = path_join(ground->ws, ".codex");

    *ret = (struct access_map){.restricted = true};
    access_map_add(ret, "/", ACCESS_READ, ACCESS_DIR, "test");
    access_map_add(ret, ground->ws, ACCESS_WRITE, ACCESS_DIR, "test");
    access_map_add(ret, git, ACCESS_READ, ACCESS_MISSING, "test")->is_protected = true;
    access_map_add(ret, codex, ACCESS_READ, ACCESS_MISSING, "test")->is_protected = true;
    access_map_sort(ret);
}

void skip_because(const char *reason)
{
    const char *must_work = getenv("CORDON_MUST_WORK");

    if (must_work && *must_work == '1')
        fail_msg("%s (CORDON_MUST_WORK=1)", reason);
    print_message("skipped: %s\n", reason);
    skip();
}

static struct sandbox *sandbox_for(const struct ground *ground,
                                   const struct sandbox_options *options)
{
    AUTO(access_map_done) struct access_map map;
    struct sandbox_options with_map = *options;
    struct sandbox *sandbox;
    struct err err;

    ground_map(ground, &map);
    with_map.access = &map;
    sandbox = sandbox_new(&with_map, &err);
    if (!sandbox || sandbox_probe(sandbox, &err)) {
        sandbox_free(sandbox);
        if (err.code == ERR_UNSUPPORTED)
            skip_because(err.msg);
        fail_msg("%s", err.msg);
    }
    return sandbox;
}

struct sandbox *ground_sandbox(const struct ground *ground, enum sandbox_mode mode)
{
    return sandbox_for(ground, &(struct sandbox_options){.mode = mode, .watch = WATCH_FACTS});
}

struct sandbox *ground_sandbox_caching(const struct ground *ground)
{
    return sandbox_for(ground, &(struct sandbox_options){
                                   .mode = SANDBOX_AUTO, .cache_idle = true, .watch = WATCH_FACTS});
}

struct sandbox *ground_sandbox_watching(const struct ground *ground, unsigned watch)
{
    return sandbox_for(ground, &(struct sandbox_options){.mode = SANDBOX_AUTO, .watch = watch});
}

struct launch_options launch_in(const char *cwd, char *const *argv)
{
    static char *const env[] = {(char *)"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

    return (struct launch_options){.argv = argv, .env = env, .cwd = cwd, .stdio = {-1, -1, -1}};
}

void command_start(struct command *ret, struct sandbox *sandbox, struct launch_options options)
{
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    AUTO_CLOSE int theirs = -1;
    struct err err;
    int ends[2];

    *ret = (struct command){.text = {.max = TEXT_MAX}};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    ret->out = ends[0];
    theirs = ends[1];
    for (int fd = 0; fd < 3; fd++)
        if (options.stdio[fd] < 0)
            options.stdio[fd] = fd ? theirs : null;
    if (sandbox_launch(sandbox, &options, &ret->launch, &err))
        fail_msg("%s", err.msg);
}

static void wait_for(int fd, const char *what)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ready;

    do
        ready = poll(&poll_fd, 1, DEADLINE_MS);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        fail_msg("waited %d s for %s", DEADLINE_MS / 1000, what);
}

bool command_read(struct command *command)
{
    char chunk[4096];
    ssize_t len;

    wait_for(command->out, "output of the command");
    len = read(command->out, chunk, sizeof chunk);
    assert_true(len >= 0);
    assert_true(buf_append(&command->text, chunk, (size_t)len));
    command->is_silent = len == 0;
    return len > 0;
}

const char *command_expect(struct command *command, const char *part)
{
    while (!command->text.data || !strstr(command->text.data, part))
        if (!command_read(command))
            fail_msg("\"%s\" did not come, but \"%s\"", part, command->text.data);
    return command->text.data;
}

void command_expect_silence(struct command *command)
{
    while (command_read(command))
        ;
}

struct ended command_finish(struct command *command)
{
    struct ended ended = {0};
    struct err err;

    while (ended.report.event == LAUNCH_NOTHING || ended.report.event == LAUNCH_STARTED) {
        ended.has_started |= ended.report.event == LAUNCH_STARTED;
        wait_for(command->launch.status, "a report");
        if (launch_read(&command->launch, &ended.report, &err))
            fail_msg("%s", err.msg);
    }
    launch_done(&command->launch);
    command_expect_silence(command);
    close(command->out);
    ended.text = buf_take(&command->text);
    return ended;
}

void ended_done(struct ended *ended)
{
    free(ended->text);
}

struct ended run_argv(struct sandbox *sandbox, const char *cwd, char *const *argv)
{
    struct command command;

    command_start(&command, sandbox, launch_in(cwd, argv));
    return command_finish(&command);
}

struct ended run_script(struct sandbox *sandbox, const char *cwd, const char *script)
{
    return run_argv(sandbox, cwd, ARGV((char *)"sh", (char *)"-c", (char *)script));
}

char *script_output(struct sandbox *sandbox, const char *cwd, const char *script)
{
    struct ended ended = run_script(sandbox, cwd, script);

    assert_exited(ended, 0);
    return ended.text;
}
