/* differ: plays sequences of calls on the file system in a folder and prints what came of each, as a
 * hash or in words. The same outside of a sandbox and inside, or something differs.
 *
 *     differ [OPTION]... FOLDER
 *
 *     --first SEED, --count N   these seeds (1, 1000); prints a line "SEED HASH" for each
 *     --show                    prints what was done and what came of it instead
 *     --print                   prints the sequence and plays nothing
 *     --script FILE             plays what FILE says, blocks of lines that begin with "# NAME"
 *     --places NAME[,NAME]...   where to play: root, deep, and folders that are below made/
 *     --sockets                 bind of Unix sockets, too
 *     --results                 says at the end how often each call gave which error
 *
 * op.h says how a sequence is written. */
#include "invent.h"
#include "play.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sys/syscall.h>

struct options {
    uint64_t first, count;
    const char *script;
    char *places;
    bool is_shown, is_printed, has_results, has_sockets;
};

static void print_ops(const struct op *ops, int len)
{
    char line[LINE];

    for (int i = 0; i < len; i++) {
        op_format(&ops[i], line);
        puts(line);
    }
}

static void play_seeds(struct stage *stage, const struct options *options,
                       const struct wishes *wishes)
{
    struct op ops[OPS_MAX];

    for (uint64_t seed = options->first; seed < options->first + options->count; seed++) {
        int len = invent(seed, wishes, ops);
        struct log log;

        log_init(&log, stage->folder, options->is_shown);
        if (options->is_shown || options->is_printed)
            printf("# %" PRIu64 "\n", seed);
        if (options->is_printed)
            print_ops(ops, len);
        else
            play(stage, &log, ops, len);
        if (!options->is_shown && !options->is_printed)
            printf("%" PRIu64 " %016" PRIx64 "\n", seed, log.hash);
        fflush(stdout);
    }
}

/* One block; `title` is its first line. */
static int play_block(struct stage *stage, const char *title, const struct op *ops, int len)
{
    struct log log;
    int wrong;

    if (!len)
        return 0;
    log_init(&log, stage->folder, true);
    log_add(&log, "%s\n", title);
    wrong = play(stage, &log, ops, len);
    fflush(stdout);
    return wrong;
}

static int play_script(struct stage *stage, FILE *file)
{
    static struct op ops[1024];
    char line[LINE], title[LINE] = "#";
    int len = 0, wrong = 0, number = 0;

    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        number++;
        if (*line == '#') {
            wrong += play_block(stage, title, ops, len);
            len = 0;
            memcpy(title, line, sizeof title);
        } else if (*line && len < (int)(sizeof ops / sizeof *ops) && !op_parse(line, &ops[len++])) {
            fprintf(stderr, "differ: line %d: %s\n", number, line);
            return -1;
        }
    }
    return wrong + play_block(stage, title, ops, len);
}

static bool parse_options(int argc, char **argv, struct options *ret)
{
    static const struct option longs[] = {{"first", required_argument, NULL, 'f'},
                                          {"count", required_argument, NULL, 'c'},
                                          {"show", no_argument, NULL, 's'},
                                          {"print", no_argument, NULL, 'p'},
                                          {"script", required_argument, NULL, 'S'},
                                          {"places", required_argument, NULL, 'P'},
                                          {"sockets", no_argument, NULL, 'u'},
                                          {"results", no_argument, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    int letter;

    *ret = (struct options){.first = 1, .count = 1000};
    while ((letter = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (letter == 'f')
            ret->first = strtoull(optarg, NULL, 10);
        else if (letter == 'c')
            ret->count = strtoull(optarg, NULL, 10);
        else if (letter == 's')
            ret->is_shown = true;
        else if (letter == 'p')
            ret->is_printed = true;
        else if (letter == 'S')
            ret->script = optarg;
        else if (letter == 'P')
            ret->places = optarg;
        else if (letter == 'u')
            ret->has_sockets = true;
        else if (letter == 'r')
            ret->has_results = true;
        else
            return false;
    }
    return optind == argc - 1;
}

/* Into memory: sequences count descriptors. */
static FILE *read_script(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "re");
    size_t len;

    if (!file)
        return NULL;
    len = fread(text, 1, sizeof text, file);
    fclose(file);
    return fmemopen(text, len, "r");
}

/* Descriptors are numbered as if there were nobody else. */
static bool open_folder(const char *path, struct stage *stage)
{
    static char buffer[1 << 20];
    int fd;

    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (!realpath(path, buffer) || strlen(buffer) >= sizeof stage->folder - 64)
        return false;
    memcpy(stage->folder, buffer, strlen(buffer) + 1);
    syscall(SYS_close_range, 3, ~0u, 0);
    fd = open(stage->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd == FOLDER_FD;
}

int main(int argc, char **argv)
{
    struct wishes wishes = {.places = {"root", "deep"}, .places_len = 2, .is_root = geteuid() == 0};
    struct stage stage = {0};
    struct options options;
    FILE *script = NULL;
    int wrong = 0;

    if (!parse_options(argc, argv, &options)) {
        fprintf(stderr, "usage: differ [OPTION]... FOLDER\n");
        return 2;
    }
    wishes.has_sockets = options.has_sockets;
    if (options.places) {
        wishes.places_len = 0;
        for (char *at = options.places, *one;
             (one = strsep(&at, ",")) && wishes.places_len < PLACES_MAX;)
            wishes.places[wishes.places_len++] = one;
    }
    if ((options.script && !(script = read_script(options.script))) ||
        !open_folder(argv[optind], &stage) || !play_init()) {
        perror("differ");
        return 2;
    }
    if (script)
        wrong = play_script(&stage, script);
    else
        play_seeds(&stage, &options, &wishes);
    if (options.has_results)
        play_print_results();
    return wrong ? 1 : 0;
}
