/* See log_options.h. */
#include "cli/log_options.h"

#include "base/clock.h"
#include "base/units.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

static int set_json(void *data, const char *value, struct err *err)
{
    ((struct log_options *)data)->flags |= LOG_JSON;
    return 0;
}

static int set_denied(void *data, const char *value, struct err *err)
{
    ((struct log_options *)data)->flags |= LOG_DENIED;
    return 0;
}

static int set_session(void *data, const char *value, struct err *err)
{
    ((struct log_options *)data)->session = value;
    return 0;
}

static int set_count(void *data, const char *value, struct err *err)
{
    struct log_options *options = data;

    if (units_parse_count(value, &options->count, err))
        return -1;
    return options->count ? 0 : err_set(err, ERR_INVALID, "has to be at least 1");
}

/* A day or a moment, in UTC as the log shows it. */
static bool parse_moment(const char *text, uint64_t *ret_ns)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        time_t seconds = end && !*end ? timegm(&tm) : -1;

        if (seconds >= 0) {
            *ret_ns = (uint64_t)seconds * CLOCK_NS_PER_S;
            return true;
        }
    }
    return false;
}

static int set_since(void *data, const char *value, struct err *err)
{
    struct log_options *options = data;
    uint64_t now = clock_wall_ns();
    struct err ignored;
    uint64_t ago;

    if (parse_moment(value, &options->since_ns))
        return 0;
    if (units_parse_duration(value, &ago, &ignored))
        return err_set(err, ERR_INVALID,
                       "\"%s\" is neither a time ago (30m, 2h, 7d) nor a time in UTC (2026-11-20, "
                       "2026-11-20T10:30Z)",
                       value);
    options->since_ns = ago < now ? now - ago : 0;
    return 0;
}

static const struct option log_options[] = {
    {.name = "since",
     .value = "TIME",
     .set = set_since,
     .help = "Only what happened since: so long ago (30m, 2h, 7d), or a day or time in UTC "
             "(2026-11-20, 2026-11-20T10:30Z)."},
    {.name = "session",
     .value = "ID",
     .set = set_session,
     .help = "Only the run or session whose id begins so."},
    {.name = "denied",
     .set = set_denied,
     .help = "Only what was refused: by the sandbox, a rule, or a person."},
    {.name = "lines",
     .letter = 'n',
     .value = "N",
     .set = set_count,
     .help = "Only the last N records (of those that the other options leave)."},
    {.name = "json", .letter = 'j', .set = set_json, .help = "One JSON object per line."},
    {.name = NULL},
};

const struct option_group log_option_groups[] = {{"Options", log_options}, {NULL, NULL}};
