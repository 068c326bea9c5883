/* Runs thousands of commands that print and end at once, eight at a time, and looks at every byte:
 *
 *     flood EMIT COUNT pipe|tty inside|outside
 *
 * EMIT N prints N bytes 'a' + offset % 23. */
#include <cordon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 8 };

static struct cordon_engine *engine;
static const char *emit;
static unsigned long count;
static unsigned flags;
static unsigned long started;
static unsigned long ended;

struct one {
    unsigned long expected;
    unsigned long got;
};

static void fail(const char *what, unsigned long is, unsigned long should_be)
{
    fprintf(stderr, "command %lu: %s is %lu and should be %lu\n", started, what, is, should_be);
    exit(1);
}

/* Around what a terminal and a pipe take at a time, and all kinds of others. */
static unsigned long next_size(void)
{
    static const unsigned long edges[] = {0, 1, 4095, 4096, 4097, 65535, 65536, 65537};

    return started % 10 == 0 ? edges[started / 10 % 8] : started * 7919 % 20011;
}

static void start(void);

static void end(struct cordon_session *session, struct one *one)
{
    if (one->got != one->expected)
        fail("its output", one->got, one->expected);
    if (cordon_session_end(session)->exit_code)
        fail("its exit code", (unsigned long)cordon_session_end(session)->exit_code, 0);
    free(one);
    cordon_session_free(session);
    ended++;
    if (started < count)
        start();
}

static void on_change(void *data, struct cordon_session *session)
{
    struct one *one = data;
    struct cordon_record record;
    char bytes[5000];

    for (;;) {
        cordon_session_read(session, bytes, sizeof bytes, &record);
        if (record.kind == CORDON_EMPTY)
            return;
        if (record.kind == CORDON_EOF) {
            end(session, one);
            return;
        }
        if (record.kind != CORDON_BYTES || record.offset != one->got)
            fail("an offset", (unsigned long)record.offset, one->got);
        for (uint64_t i = 0; i < record.len; i++, one->got++)
            if (bytes[i] != (char)('a' + one->got % 23))
                fail("a byte", (unsigned char)bytes[i], 'a' + one->got % 23);
    }
}

static void start(void)
{
    struct one *one = calloc(1, sizeof *one);
    char size[32];
    const char *argv[] = {emit, size, NULL};
    struct cordon_session_options options = {sizeof options};
    struct cordon_session *session;
    struct cordon_error error;

    one->expected = next_size();
    snprintf(size, sizeof size, "%lu", one->expected);
    started++;
    options.argv = argv;
    options.flags = flags;
    options.on_change = on_change;
    options.data = one;
    if (cordon_session_start(engine, &options, &session, &error)) {
        fprintf(stderr, "command %lu: %s\n", started, error.message);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct cordon_policy policy = {sizeof policy};
    struct cordon_engine_options options = {sizeof options};
    struct cordon_error error;

    if (argc != 5)
        return 2;
    emit = argv[1];
    count = strtoul(argv[2], NULL, 10);
    flags = strcmp(argv[3], "tty") ? 0 : CORDON_TTY;
    policy.sandbox = strcmp(argv[4], "outside") ? CORDON_SANDBOX_AUTO : CORDON_SANDBOX_DISABLED;
    options.policy = &policy;
    if (cordon_open(&options, &engine, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    while (started < IN_FLIGHT)
        start();
    while (ended < count && !cordon_wait(engine, -1, &error))
        continue;
    printf("%lu\n", ended);
    cordon_close(engine);
    return 0;
}
