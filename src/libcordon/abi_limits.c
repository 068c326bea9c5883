/* Limits and denials between the structs of cordon.h and those of exec. */
#include "libcordon/engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "denial/denial.h"
#include "process/resource_limits.h"

int limits_read(struct resource_limits *ret, const struct cordon_limits *from, struct err *err)
{
    struct cordon_limits given = {0};

    if (from && options_read(&given, sizeof given, from, err))
        return err_wrap(err, "limits");
    *ret = (struct resource_limits){
        .memory = given.memory,
        .cpu_time_ns = ms_to_ns(given.cpu_time_ms),
        .pids = given.pids,
        .file_size = given.file_size,
    };
    return 0;
}

unsigned limits_hit(const struct resource_limits_report *report)
{
    static const unsigned flags[LIMIT_COUNT] = {
        [LIMIT_MEMORY] = CORDON_LIMIT_MEMORY,
        [LIMIT_CPU_TIME] = CORDON_LIMIT_CPU_TIME,
        [LIMIT_PIDS] = CORDON_LIMIT_PIDS,
        [LIMIT_FILE_SIZE] = CORDON_LIMIT_FILE_SIZE,
    };
    unsigned hit = 0;

    for (int i = 0; i < LIMIT_COUNT; i++)
        hit |= report->hit[i] ? flags[i] : 0;
    return hit;
}

char *denials_say(const struct denials *denials)
{
    const struct denial *denial = denials->items;

    if (!denials->len)
        return NULL;
    return alloc_strf("%s of %s was refused. %s", denial_operation_name(denial->operation),
                      denial->path   ? denial->path
                      : denial->host ? denial->host
                                     : "something",
                      denial->remedy);
}
