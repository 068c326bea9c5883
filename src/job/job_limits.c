/* See job_limits.h. Denials are looked for when somebody asks, and never by the job itself: that
 * takes a copy of all that is retained, which nobody needs of a command that did its work. */
#include "job/job_limits.h"

#include "base/auto.h"
#include "base/buf.h"
#include "output/output.h"

void job_limits_open(struct job_limits *bounds, const struct resource_limits *limits,
                     const char *cgroup_base, const struct access_map *access)
{
    static const struct resource_limits none;

    *bounds = (struct job_limits){.access = access};
    resource_limits_open(limits ? limits : &none, cgroup_base, &bounds->limits);
}

void job_limits_end(struct job_limits *bounds, const struct process_end *end)
{
    resource_limits_report(&bounds->limits, end, &bounds->report);
    resource_limits_close(&bounds->limits);
}

void job_limits_done(struct job_limits *bounds)
{
    resource_limits_close(&bounds->limits);
}

/* What is looked at of the beginning, and of the end: a spool may hold much more. */
#define LOOK_AT ((uint64_t)1 << 19)

/* As text: the readers of lines stop at a NUL. A gap ends a line. */
static void take_record(const struct output_record *record, char *piece,
                        struct buf texts[STREAM_COUNT])
{
    if (record->kind == OUTPUT_GAP)
        for (int i = 0; i < STREAM_COUNT; i++)
            buf_append_str(&texts[i], "\n");
    if (record->kind != OUTPUT_BYTES)
        return;
    for (uint64_t i = 0; i < record->len; i++)
        piece[i] = piece[i] ? piece[i] : ' ';
    buf_append(&texts[record->stream], piece, (size_t)record->len);
}

static void read_part(struct output *output, uint64_t from, uint64_t to,
                      struct buf texts[STREAM_COUNT])
{
    struct output_record record = {.kind = OUTPUT_BYTES};
    struct output_cursor place;
    char piece[8192];

    output_seek(output, from, &place);
    while (place.offset < to && (record.kind == OUTPUT_BYTES || record.kind == OUTPUT_GAP)) {
        uint64_t left = to - place.offset;

        output_read(output, &place, OUTPUT_BY_RUN, piece,
                    left < sizeof piece ? (size_t)left : sizeof piece, &record);
        take_record(&record, piece, texts);
    }
}

static void read_streams(struct output *output, struct buf texts[STREAM_COUNT])
{
    static const struct output_record gap = {.kind = OUTPUT_GAP};
    uint64_t total = output_total(output);

    if (total <= 2 * LOOK_AT) {
        read_part(output, 0, total, texts);
        return;
    }
    read_part(output, 0, LOOK_AT, texts);
    take_record(&gap, NULL, texts);
    read_part(output, total - LOOK_AT, total, texts);
}

void job_limits_denials(const struct job_limits *bounds, const struct job_limits_denial *of,
                        struct denials *ret)
{
    struct denial_input input = {
        .access = bounds->access, .cwd = of->cwd, .end = of->end, .program = of->program};
    struct buf texts[STREAM_COUNT];

    if (of->end->how == PROCESS_EXITED && of->end->code == 0)
        return;
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&texts[i], SIZE_MAX / 2);
    if (bounds->access)
        read_streams(of->output, texts);
    for (int i = 0; i < STREAM_COUNT; i++)
        input.texts[i] = texts[i].data;
    denials_find(&input, ret);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&texts[i]);
}
