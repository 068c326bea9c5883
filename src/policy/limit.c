/* See limit.h. */
#include "policy/limit.h"

#include "base/str.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define MIB (UINT64_C(1) << 20)
#define SECOND_NS UINT64_C(1000000000)

/* Far above what builds take, far below what takes a machine down: docs/decisions/0032-limits.md. */
const struct resource_limits resource_limits_default = {
    .of = {[LIMIT_PIDS] = 4096, [LIMIT_FILE_SIZE] = UINT64_C(16) << 30, [LIMIT_FILES] = 65536},
    .defaults = 1u << LIMIT_PIDS | 1u << LIMIT_FILE_SIZE | 1u << LIMIT_FILES,
};

/* The least in which a dynamically linked program starts, with something to spare. */
static const struct {
    const char *name;
    uint64_t least;
} limits[LIMIT_COUNT] = {
    [LIMIT_MEMORY] = {"memory", MIB},
    [LIMIT_CPU_TIME] = {"cpu-time", 1},
    [LIMIT_PIDS] = {"pids", 2}, /* Cordon's init and the command */
    [LIMIT_FILE_SIZE] = {"file-size", 1},
    [LIMIT_FILES] = {"files", 16},
    [LIMIT_ADDRESS_SPACE] = {"address-space", 16 * MIB},
};

const char *resource_limit_name(enum resource_limit limit)
{
    return limits[limit].name;
}

void resource_limits_overlay(struct resource_limits *on, const struct resource_limits *over)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const unsigned bit = 1u << i;

        if (!over->of[i])
            continue;
        on->of[i] = over->of[i];
        on->defaults = (on->defaults & ~bit) | (over->defaults & bit);
    }
}

int resource_limit_check(enum resource_limit limit, uint64_t number, uint64_t *ret, struct err *err)
{
    char least[32];

    if (number && number < limits[limit].least) {
        resource_limit_format(limit, limits[limit].least, least, sizeof least);
        return err_set(err, ERR_INVALID,
                       "no program can start with that: at least %s, or 0 for no limit", least);
    }
    *ret = number ? number : LIMIT_NONE;
    return 0;
}

int resource_limit_parse(enum resource_limit limit, const char *text, uint64_t *ret,
                         struct err *err)
{
    uint64_t number = 0;
    int status = 0;

    if (str_eq(text, "none"))
        status = 0;
    else if (limit == LIMIT_CPU_TIME)
        status = units_parse_duration(text, &number, err);
    else if (limit == LIMIT_PIDS || limit == LIMIT_FILES)
        status = units_parse_count(text, &number, err);
    else
        status = units_parse_size(text, &number, err);
    return status ? -1 : resource_limit_check(limit, number, ret, err);
}

void resource_limit_format(enum resource_limit limit, uint64_t value, char *ret, size_t len)
{
    static const char units[] = "KMGT";
    int unit = -1;

    if (value == LIMIT_NONE) {
        snprintf(ret, len, "none");
    } else if (limit == LIMIT_CPU_TIME) {
        snprintf(ret, len, "%" PRIu64 "%s", value % SECOND_NS ? value / 1000000 : value / SECOND_NS,
                 value % SECOND_NS ? "ms" : "s");
    } else if (limit == LIMIT_PIDS || limit == LIMIT_FILES) {
        snprintf(ret, len, "%" PRIu64, value);
    } else {
        for (; value && value % 1024 == 0 && unit < 3; unit++)
            value /= 1024;
        snprintf(ret, len, "%" PRIu64 "%.1s", value, unit < 0 ? "" : units + unit);
    }
}
