/* cordon-asker: a command in a sandbox whose questions somebody answers over a descriptor.
 *
 *     cordon-asker FD [write=PATH] [read=PATH] [deny=PATH] [ask=PATH] [held=PATH] [own=PATH] [nested] [judge] [layer] -- PROGRAM...
 *
 * It says, one line each: "asked ID CALL PID\tPATH\tOTHER\tCOVERS\tOTHER-COVERS", "withdrawn ID",
 * "done ID ERRNO\tPATH", "denied ERRNO\tPATH", "exited STATUS"; and takes "yes ID" and "no ID". The
 * command has its standard streams. Everything may be read but what is denied. With `layer` what is written is in a change layer
 * until the command has ended, and then accepted. */
#include "base/auto.h"
#include "layer/accept.h"
#include "layer/layer.h"
#include "policy/access.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN_MAX = 8, LINE_MAX_LEN = 64 };

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "cordon-asker: %s: %s\n", what, err ? err->msg : strerror(errno));
    exit(125);
}

static enum access_kind kind_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st))
        return ACCESS_MISSING;
    return S_ISDIR(st.st_mode) ? ACCESS_DIR : ACCESS_FILE;
}

static void add(struct access_map *map, const char *word)
{
    static const struct {
        const char *name;
        enum access access;
    } words[] = {{"write=", ACCESS_WRITE},
                 {"read=", ACCESS_READ},
                 {"deny=", ACCESS_DENY},
                 {"ask=", ACCESS_DENY},
                 {"held=", ACCESS_READ}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *path = word + strlen(words[i].name);
        struct access_entry *entry;

        if (strncmp(word, words[i].name, strlen(words[i].name)) != 0)
            continue;
        entry = access_map_add(map, path, words[i].access, kind_of(path), "asker");
        entry->is_protected = *word == 'h';
        entry->asks = *word == 'a';
    }
}

static void say_fact(int talk, const struct launch_fact *fact)
{
    const char *other = fact->other_path ? fact->other_path : "";

    if (fact->kind == FACT_ASKED)
        dprintf(talk, "asked %llu %d %d\t%s\t%s\t%s\t%s\n", (unsigned long long)fact->id,
                fact->call, (int)fact->pid, fact->path, other, fact->covers ? fact->covers : "",
                fact->other_covers ? fact->other_covers : "");
    else if (fact->kind == FACT_WITHDRAWN)
        dprintf(talk, "withdrawn %llu\n", (unsigned long long)fact->id);
    else if (fact->kind == FACT_DONE && fact->id)
        dprintf(talk, "done %llu %d\t%s\n", (unsigned long long)fact->id, fact->error, fact->path);
    else if (fact->kind == FACT_DENIED)
        dprintf(talk, "denied %d\t%s\n", fact->error, fact->path);
}

/* Answers come one a packet. */
static void take_answer(const struct launch *launch, int talk)
{
    char line[LINE_MAX_LEN] = "";
    ssize_t len = read(talk, line, sizeof line - 1);

    if (len <= 0)
        die("nobody answers any more", NULL);
    if (strncmp(line, "yes ", 4) == 0)
        launch_answer(launch, strtoull(line + 4, NULL, 10), LAUNCH_YES);
    else if (strncmp(line, "no ", 3) == 0)
        launch_answer(launch, strtoull(line + 3, NULL, 10), LAUNCH_NO);
}

static int watch(struct launch *launch, int talk)
{
    struct launch_report report = {0};
    struct launch_fact fact;
    struct err err;

    while (!launch->is_over) {
        struct pollfd fds[] = {{.fd = launch->status, .events = POLLIN},
                               {.fd = talk, .events = POLLIN},
                               {.fd = launch->is_unguarded ? -1 : launch->facts, .events = POLLIN}};

        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            die("poll", NULL);
        if (fds[1].revents)
            take_answer(launch, talk);
        while (launch_read_fact(launch, &fact))
            say_fact(talk, &fact);
        if (launch->is_unguarded) {
            dprintf(talk, "unguarded\n");
            return 1;
        }
        if (fds[0].revents && launch_read(launch, &report, &err))
            die("reading what the launcher says", &err);
        if (report.event == LAUNCH_FAILED)
            die("the launch", &report.failure);
        if (report.event == LAUNCH_GONE)
            return 1;
    }
    while (launch_read_fact(launch, &fact))
        say_fact(talk, &fact);
    dprintf(talk, "exited %d\n", report.wait_status);
    return WIFEXITED(report.wait_status) ? WEXITSTATUS(report.wait_status) : 1;
}

static struct layer *lay(struct access_map *map, struct sandbox_options *options)
{
    const struct layer_options made = {.held_by = "cordon-asker"};
    struct err err;
    struct layer *layer = layer_create(&made, &err);

    if (!layer || layer_cover(layer, map, &err))
        die("the layer", &err);
    options->view = layer_view(layer);
    return layer;
}

static void accept_all(struct layer *layer)
{
    const struct accept_request request = {.flags = ACCEPT_FORCE | ACCEPT_MARKED};
    struct accept_result result = {0};
    struct err err;

    if (change_accept(layer, &request, &result, &err))
        die("accepting", &err);
    accept_result_done(&result);
    layer_close(layer);
}

int main(int argc, char **argv)
{
    struct access_map map = {.restricted = true, .network = NETWORK_ENABLED};
    const char *own[OWN_MAX + 1] = {0};
    struct sandbox_options options = {.mode = SANDBOX_AUTO,
                                      .access = &map,
                                      .watch = WATCH_FACTS | WATCH_HOLDS | WATCH_DESCRIPTORS,
                                      .own_paths = own};
    struct launch launch = {0};
    struct sandbox *sandbox;
    struct layer *layer = NULL;
    bool is_layered = false;
    size_t owns = 0;
    struct err err;
    int at = 2, status;
    int talk = argc > 1 ? atoi(argv[1]) : -1;
    AUTO_FREE char *cwd = getcwd(NULL, 0);

    access_map_add(&map, "/", ACCESS_READ, ACCESS_DIR, "asker");
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (strncmp(argv[at], "own=", 4) == 0 && owns < OWN_MAX)
            own[owns++] = argv[at] + 4;
        else if (strcmp(argv[at], "nested") == 0)
            options.allow_nested_namespaces = true;
        else if (strcmp(argv[at], "judge") == 0)
            options.watch |= WATCH_JUDGE;
        else if (strcmp(argv[at], "layer") == 0)
            is_layered = true;
        else if (strcmp(argv[at], "restricted") == 0)
            map.network = NETWORK_RESTRICTED;
        else
            add(&map, argv[at]);
    }
    if (at + 1 >= argc || fcntl(talk, F_SETFD, FD_CLOEXEC))
        die("usage: FD [write=PATH...] -- PROGRAM...", NULL);
    access_map_sort(&map);
    if (is_layered)
        layer = lay(&map, &options);
    sandbox = sandbox_new(&options, &err);
    if (!sandbox)
        die("the sandbox", &err);
    if (sandbox_launch(sandbox,
                       &(struct launch_options){.argv = argv + at + 1,
                                                .env = environ,
                                                .cwd = cwd,
                                                .stdio = {0, 1, 2},
                                                .asks = true},
                       &launch, &err))
        die("the launch", &err);
    status = watch(&launch, talk);
    launch_done(&launch);
    sandbox_free(sandbox);
    if (layer)
        accept_all(layer);
    access_map_done(&map);
    return status;
}
