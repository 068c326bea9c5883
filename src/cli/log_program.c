/* The program behind `cordon log`: the only one that knows the database of the audit log.
 *
 *     cordon-log [OPTION]... [verify]     for `cordon log`, which has checked the options
 *     cordon-log --tidy DIR               moves records from the tail to the database and prunes;
 *                                         started by the program that made the tail grow
 *                                         (audit/audit.h), and detached from it at once
 *
 * Showing comes in two passes over the same records, so that the last N of them need no memory:
 * one counts what matches, the other leaves out all but the last. Who follows the log is woken by the kernel
 * (inotify) and shows what comes behind the last record that was shown; the database is only read when
 * records went there unseen. */
#include "audit/audit.h"
#include "audit/record.h"
#include "audit/store.h"
#include "audit/tail.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"
#include "cli/log.h"
#include "cli/log_record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* All that this program is; what help texts are made of. */
const struct command *const commands[] = {&command_log, NULL};

enum { PRINT_BYTES = 64 * 1024, READ_TRIES = 3 };

static const uint64_t tail_wait_ns = UINT64_C(2000000000); /* 2 s */

static void store_auto(struct audit_store **slot)
{
    audit_store_close(*slot);
}

/* --- moving records --- */

/* Others may move records at the same time: what was read of the tail is then older than the
 * database, and does not fit. So each step is tried a few times. */
static int try_often(int (*step)(const char *dir, void *data, struct err *err), const char *dir,
                     void *data, struct err *err)
{
    int status = -1;

    for (int tries = 0; status && tries < READ_TRIES; tries++) {
        status = step(dir, data, err);
        if (status && err->code != ERR_INVALID)
            break;
    }
    return status;
}

static int move_once(const char *dir, void *data, struct err *err)
{
    AUTO(audit_tail_done) struct audit_tail tail = {0};
    AUTO(store_auto) struct audit_store *store = NULL;
    const struct audit_limits limits = {AUDIT_KEEP_BYTES, AUDIT_KEEP_NS};

    if (audit_tail_read(dir, &tail, err))
        return -1;
    if (!tail.len)
        return 0;
    if (audit_store_open(dir, AUDIT_STORE_WRITE, &store, err) ||
        audit_store_import(store, &tail, err) ||
        audit_tail_drop(dir, &tail.items[tail.len - 1].link, tail_wait_ns, err))
        return -1;
    return audit_store_prune(store, &limits, clock_wall_ns(), err);
}

static int move_records(const char *dir, struct err *err)
{
    return try_often(move_once, dir, NULL, err);
}

/* A failure is not reported: `cordon log` tries again and says it. */
static int tidy(const char *dir)
{
    struct err ignored;

    if (fork() != 0)
        return EXIT_OK;
    setsid();
    return move_records(dir, &ignored) ? EXIT_FAILED : EXIT_OK;
}

/* --- what there is --- */

struct log {
    struct audit_store *store; /* NULL without a database */
    struct audit_tail tail;
    size_t from; /* the tail's records before this one are in the database, too */
};

static void log_done(struct log *log)
{
    audit_store_close(log->store);
    audit_tail_done(&log->tail);
    log->store = NULL;
    log->from = 0;
}

/* Both parts; what is sound of each is there on failure, too. The tail first: records that are
 * moved meanwhile are in both then, and in none otherwise. */
static int log_read(struct log *log, const char *dir, struct err *err)
{
    struct err later;
    int status = audit_tail_read(dir, &log->tail, err);

    if (audit_store_open(dir, AUDIT_STORE_READ, &log->store, status ? &later : err))
        return -1;
    return status;
}

/* ... and where the tail goes on from the database, which have to fit together. */
static int log_open(const char *dir, void *data, struct err *err)
{
    struct log *log = data;
    struct audit_link head = {0};

    log_done(log);
    if (log_read(log, dir, err) || (log->store && audit_store_head(log->store, &head, err)))
        return -1;
    return audit_store_find_new(&log->tail, &head, &log->from, err);
}

/* --- verifying --- */

struct verdict {
    struct audit_link head;
    uint64_t records;
};

static int verify(const char *dir, void *data, struct err *err)
{
    struct verdict *ret = data;
    AUTO(log_done) struct log log = {0};

    *ret = (struct verdict){0};
    if (log_read(&log, dir, err) ||
        (log.store && audit_store_verify(log.store, &ret->head, &ret->records, err)) ||
        audit_store_find_new(&log.tail, &ret->head, &log.from, err))
        return -1;
    if (log.tail.len > log.from)
        ret->head = log.tail.items[log.tail.len - 1].link;
    ret->records += log.tail.len - log.from;
    return 0;
}

static int verify_print_json(const struct verdict *verdict, const struct err *err)
{
    char hex[AUDIT_HEX_SIZE];
    AUTO_JSON json_t *json = NULL;

    audit_hash_format(verdict->head.hash, hex);
    json = err ? json_pack("{s:b, s:n, s:n, s:n, s:o}", "ok", 0, "records", "last", "hash",
                           "problem", json_lossy(err->msg))
               : json_pack("{s:b, s:I, s:I, s:o, s:n}", "ok", 1, "records",
                           (json_int_t)verdict->records, "last", (json_int_t)verdict->head.seq,
                           "hash", json_stringn(hex, sizeof hex), "problem");
    return console_print_json(json);
}

static int verify_print(const struct verdict *verdict)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    char hex[AUDIT_HEX_SIZE];

    audit_hash_format(verdict->head.hash, hex);
    console_line(&text,
                 "%" PRIu64 " record%s, all as they were written; the last is %" PRIu64
                 " with the hash %.*s",
                 verdict->records, verdict->records == 1 ? "" : "s", verdict->head.seq,
                 AUDIT_HEX_SIZE, hex);
    return console_print(&text);
}

static int log_verify(const struct log_options *options, const char *dir)
{
    struct verdict verdict = {0};
    struct err err;
    int failed = try_often(verify, dir, &verdict, &err);
    int status = EXIT_OK;

    if (options->flags & LOG_JSON)
        status = verify_print_json(&verdict, failed ? &err : NULL);
    else if (failed)
        console_say("%s", err.msg);
    else
        status = verify_print(&verdict);
    return status != EXIT_OK ? status : failed ? EXIT_NO : EXIT_OK;
}

/* --- showing --- */

struct pass {
    const struct log_options *options;
    unsigned look;    /* of enum log_look */
    uint64_t after;   /* records up to this one are not shown */
    uint64_t last;    /* the last one that there was */
    uint64_t matches; /* seen so far */
    uint64_t skip;    /* of these, not to be shown */
    struct buf *text; /* NULL: only count */
};

static bool is_wanted(const struct log_options *options, const struct audit_record *record)
{
    size_t len = options->session ? strlen(options->session) : 0;

    if (record->time_ns < options->since_ns || record->session.len < len ||
        (len && memcmp(record->session.at, options->session, len) != 0))
        return false;
    return !(options->flags & LOG_DENIED) || log_is_denial(record);
}

static int pass_record(void *data, const struct audit_record *record, struct err *err)
{
    struct pass *pass = data;

    if (record->link.seq <= pass->after)
        return 0;
    pass->last = record->link.seq;
    if (!is_wanted(pass->options, record) || pass->matches++ < pass->skip || !pass->text)
        return 0;
    if (pass->options->flags & LOG_JSON)
        log_show_json(record, pass->text);
    else
        log_show_text(record, pass->look, pass->text);
    if (pass->text->len < PRINT_BYTES)
        return 0;
    if (console_print(pass->text))
        exit(EXIT_FAILED); /* stdout is closed; said by console_print() */
    buf_clear(pass->text);
    return 0;
}

static int pass_all(struct pass *pass, const struct log *log, struct err *err)
{
    int status = log->store ? audit_store_each(log->store, pass_record, pass, err) : 0;

    for (size_t i = log->from; i < log->tail.len; i++)
        pass_record(pass, &log->tail.items[i], err);
    return status;
}

static unsigned find_look(void)
{
    return !isatty(STDOUT_FILENO)
               ? 0u
               : (unsigned)LOG_LOCAL_TIME | (getenv("NO_COLOR") ? 0u : (unsigned)LOG_COLOURED);
}

/* `*ret_last` is the last record that there was. */
static int log_list(const struct log_options *options, const char *dir, uint64_t *ret_last)
{
    AUTO(log_done) struct log log = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct pass pass = {.options = options, .look = find_look()};
    struct err err;
    int status = EXIT_OK;

    if (try_often(log_open, dir, &log, &err))
        status = console_fail(&err);
    if (options->count && pass_all(&pass, &log, &err) == 0)
        pass.skip = pass.matches > options->count ? pass.matches - options->count : 0;
    pass.text = &text;
    pass.matches = 0;
    if (pass_all(&pass, &log, &err))
        status = console_fail(&err);
    *ret_last = pass.last;
    return console_print(&text) ? EXIT_FAILED : status;
}

/* --- following --- */

/* What came behind `*last`. The tail alone has it, unless records were moved away in between. */
static int show_new(const struct log_options *options, const char *dir, uint64_t *last,
                    struct err *err)
{
    AUTO(log_done) struct log log = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct pass pass = {.options = options, .look = find_look(), .text = &text};

    if (audit_tail_read(dir, &log.tail, err))
        return -1;
    if (log.tail.head.head.seq < *last) /* the log was begun anew */
        *last = 0;
    pass.after = pass.last = *last;
    if (log.tail.head.base.seq > *last && try_often(log_open, dir, &log, err))
        return -1;
    if (pass_all(&pass, &log, err))
        return -1;
    *last = pass.last;
    if (console_print(&text))
        exit(EXIT_FAILED); /* said by console_print() */
    return 0;
}

/* Records may be moved while it reads. */
static int try_often_new(const struct log_options *options, const char *dir, uint64_t *last,
                         struct err *err)
{
    int status = -1;

    for (int tries = 0; status && tries < READ_TRIES; tries++) {
        status = show_new(options, dir, last, err);
        if (status && err->code != ERR_INVALID)
            break;
    }
    return status;
}

/* A descriptor that can be read when the log in `dir` has changed. */
static int watch_log(const char *dir, struct err *err)
{
    AUTO_CLOSE int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd_make_dirs(dir, 0700, err))
        return -1;
    if (fd < 0 || inotify_add_watch(fd, dir, IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR) < 0)
        return err_sys(err, "watching %s", dir);
    return TAKE_FD(fd);
}

/* Whether one of the events is about the tail; all of them are taken. */
static bool take_events(int fd)
{
    _Alignas(struct inotify_event) char events[4096];
    bool is_ours = false;
    ssize_t len;

    while ((len = read(fd, events, sizeof events)) > 0)
        for (const char *at = events; at < events + len;) {
            const struct inotify_event *event = (const void *)at;

            is_ours |=
                event->mask & IN_Q_OVERFLOW || (event->len && str_eq(event->name, AUDIT_TAIL_NAME));
            at += sizeof *event + event->len;
        }
    return is_ours;
}

/* Until a signal ends it, which is how it is meant to end, or its reader is gone. */
static int follow_events(const struct log_options *options, const char *dir,
                         struct pollfd polled[3], uint64_t last)
{
    struct err err;

    for (;;) {
        if (poll(polled, 3, -1) < 0 && errno != EINTR)
            return console_failf("waiting: %s", strerror(errno));
        if (polled[1].revents)
            return EXIT_OK;
        if (polled[2].revents & (POLLERR | POLLHUP | POLLNVAL))
            return EXIT_OK;
        if (polled[0].revents && take_events(polled[0].fd) &&
            try_often_new(options, dir, &last, &err))
            return console_fail(&err);
    }
}

static int log_follow(const struct log_options *options, const char *dir)
{
    enum { LAST_RECORDS = 10 };
    struct log_options shown = *options;
    struct err err;
    AUTO_CLOSE int watch = watch_log(dir, &err); /* before it is read, so that nothing is missed */
    AUTO_CLOSE int signals = -1;
    sigset_t set;
    uint64_t last = 0;
    int status;

    if (watch < 0)
        return console_fail(&err);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return console_failf("waiting for signals: %s", strerror(errno));
    if (!shown.count && !shown.since_ns && !shown.session)
        shown.count = LAST_RECORDS;
    status = log_list(&shown, dir, &last);
    if (status != EXIT_OK)
        return status;
    return follow_events(options, dir,
                         (struct pollfd[]){{.fd = watch, .events = POLLIN},
                                           {.fd = signals, .events = POLLIN},
                                           {.fd = STDOUT_FILENO}},
                         last);
}

/* --- beginning anew --- */

/* Moves the file aside; `kept` gets its new path. One that is not there is none to be kept. */
static int set_aside(const char *dir, const char *name, const char *stamp, json_t *kept,
                     struct err *err)
{
    AUTO_FREE char *from = path_join(dir, name);
    AUTO_FREE char *to = alloc_strf("%s/audit-%s%s", dir, stamp, name + strlen("audit"));

    if (access(from, F_OK))
        return 0;
    if (access(to, F_OK) == 0)
        return err_set(err, ERR_INVALID, "%s is there already; wait a second", to);
    if (rename(from, to))
        return err_sys(err, "keeping %s as %s", from, to);
    json_array_append_new(kept, json_lossy(to));
    return 0;
}

/* Both files, while nobody else does anything with them. */
static int set_all_aside(const char *dir, json_t *kept, struct err *err)
{
    AUTO_CLOSE int store_lock = audit_lock(dir, AUDIT_STORE_NAME ".lock", tail_wait_ns, err);
    AUTO_CLOSE int tail_lock =
        store_lock < 0 ? -1 : audit_lock(dir, "audit.lock", tail_wait_ns, err);
    time_t now = time(NULL);
    char stamp[32] = "";
    struct tm utc;

    if (tail_lock < 0)
        return -1;
    if (gmtime_r(&now, &utc))
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    return set_aside(dir, AUDIT_TAIL_NAME, stamp, kept, err) ||
                   set_aside(dir, AUDIT_STORE_NAME "-journal", stamp, kept, err) ||
                   set_aside(dir, AUDIT_STORE_NAME, stamp, kept, err)
               ? -1
               : 0;
}

/* The first record of the new log says where the old one is, what was wrong with it, and its last hash, as far
 * as that is known. */
static int log_start_anew(const struct log_options *options, const char *dir)
{
    struct verdict verdict = {0};
    struct audit *audit;
    struct err problem, err;
    bool is_sound = try_often(verify, dir, &verdict, &problem) == 0;
    json_t *kept = json_array();
    AUTO_JSON json_t *body = NULL;
    char session[AUDIT_SESSION_SIZE];
    char hex[AUDIT_HEX_SIZE];
    int failed;

    audit_hash_format(verdict.head.hash, hex);
    body = json_pack("{s:o, s:o, s:I, s:o}", "kept", kept, "problem",
                     is_sound ? json_null() : json_lossy(problem.msg), "last",
                     (json_int_t)verdict.head.seq, "hash", json_stringn(hex, sizeof hex));
    if (fd_make_dirs(dir, 0700, &err) || set_all_aside(dir, kept, &err))
        return console_fail(&err);
    audit = audit_new(dir);
    audit_session_id(session);
    audit_add(audit, AUDIT_ANEW, session, json_incref(body));
    failed = audit_flush(audit, tail_wait_ns, &err);
    audit_free(audit);
    if (failed)
        return console_fail(&err);
    if (options->flags & LOG_JSON)
        return console_print_json(body);
    if (!json_array_size(kept))
        console_say("there was no log; one begins now");
    for (size_t i = 0; i < json_array_size(kept); i++)
        console_say("kept: %s", json_string_value(json_array_get(kept, i)));
    return EXIT_OK;
}

/* --- the program --- */

static int log_main(char **argv)
{
    AUTO(config_file_done) struct config_file place = {0};
    struct log_options options = {0};
    struct err err;
    char **rest;
    bool is_verify;
    uint64_t last;
    int status;

    if (!command_parse(&command_log, argv, &options, &rest, &status))
        return status;
    is_verify = *rest && str_eq(*rest, "verify");
    if (is_verify && !command_parse(&command_log, rest, &options, &rest, &status))
        return status; /* options behind the word count like those in front of it */
    if (config_file_place(&place, &err))
        return console_fail(&err);
    if (!place.dir)
        return console_failf("there is no home directory: set CORDON_HOME");
    if (*rest)
        return console_failf("cordon log takes no argument but \"verify\"");
    if (is_verify && (options.flags & ~(unsigned)LOG_JSON || options.since_ns || options.session ||
                      options.count))
        return console_failf("\"verify\" looks at all records; of the options only --json goes "
                             "with it");
    if (is_verify)
        return log_verify(&options, place.dir);
    if (options.flags & LOG_ANEW)
        return log_start_anew(&options, place.dir);
    if (move_records(place.dir, &err))
        console_say("no record can be moved to the database: %s", err.msg);
    return options.flags & LOG_FOLLOW ? log_follow(&options, place.dir)
                                      : log_list(&options, place.dir, &last);
}

int main(int argc, char **argv)
{
    if (argc == 3 && str_eq(argv[1], "--tidy"))
        return tidy(argv[2]);
    return argc > 0 ? log_main(argv) : EXIT_FAILED;
}
