/* Bodies become text when they are added, so that an audit holds two buffers' worth of
 * plain bytes and no JSON values. The directory is made when the first append does not find it.
 *
 * It does not know SQLite: a process that runs commands links none of it. What moves records to the
 * database is a program of its own, which is started here when the tail has grown by another
 * AUDIT_TAIL_TIDY, and detaches itself at once. */
#include "audit/audit.h"

#include "audit/otlp.h"
#include "audit/tail.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/program.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_PROGRAM "cordon-log"

struct note {
    enum audit_event event;
    uint64_t time_ns;
    char *session;
    char *body;
};

struct audit {
    char *dir;
    struct note *notes;
    size_t len;
    size_t cap;
    size_t omitted;
    struct otlp_senders senders;
    pid_t tidier; /* the program that was started last, until it has detached itself; 0: none */
    struct note *begun; /* commands that have not ended yet: their spans will need it */
    size_t begun_len;
    size_t begun_cap;
};

struct audit *audit_new(const char *dir)
{
    struct audit *audit = alloc_zero(1, sizeof *audit);

    audit->dir = alloc_str(dir);
    return audit;
}

static void note_done(struct note *note)
{
    free(note->session);
    free(note->body);
    *note = (struct note){0};
}

static void audit_clear(struct audit *audit)
{
    for (size_t i = 0; i < audit->len; i++)
        note_done(&audit->notes[i]);
    audit->len = 0;
    audit->omitted = 0;
}

/* It detaches itself, so it soon can be reaped; a server does not wait even for that. */
static void tidy_reap(struct audit *audit, int flags)
{
    pid_t pid;

    if (!audit->tidier)
        return;
    do
        pid = waitpid(audit->tidier, NULL, flags);
    while (pid < 0 && errno == EINTR);
    if (pid)
        audit->tidier = 0;
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    audit_clear(audit);
    tidy_reap(audit, 0);
    otlp_reap(&audit->senders);
    for (size_t i = 0; i < audit->begun_len; i++)
        note_done(&audit->begun[i]);
    free(audit->begun);
    free(audit->notes);
    free(audit->dir);
    free(audit);
}

void audit_session_id(char ret[AUDIT_SESSION_SIZE])
{
    uint64_t id;

    if (getrandom(&id, sizeof id, 0) != sizeof id)
        id = clock_now_ns() ^ (uint64_t)getpid() << 40; /* before the kernel has entropy */
    snprintf(ret, AUDIT_SESSION_SIZE, "%016llx", (unsigned long long)id);
}

/* --- adding --- */

void audit_add(struct audit *audit, enum audit_event event, const char *session, json_t *body)
{
    struct note note = {.event = event, .time_ns = clock_wall_ns()};

    if (audit->len >= AUDIT_PENDING_MAX) {
        audit->omitted++;
        json_decref(body);
        return;
    }
    note.session = alloc_str(audit_word_is_valid(audit_text_of(session)) ? session : "unnamed");
    note.body = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!note.body || strlen(note.body) > AUDIT_BODY_MAX) {
        free(note.body);
        note.body = alloc_str("{\"too_large\":true}");
    }
    audit->notes = alloc_grow(audit->notes, audit->len, &audit->cap, sizeof *audit->notes);
    audit->notes[audit->len++] = note;
}

size_t audit_pending(const struct audit *audit)
{
    return audit->len;
}

/* --- the program --- */

/* When it cannot be started the tail grows, and `cordon log` moves the records. */
static void tidy_start(struct audit *audit)
{
    struct err ignored;
    AUTO_FREE char *program = program_find(LOG_PROGRAM, &ignored);

    tidy_reap(audit, WNOHANG);
    if (program && !audit->tidier)
        audit->tidier = otlp_spawn((char *[]){program, (char *)"--tidy", audit->dir, NULL}, -1);
}

/* --- flushing --- */

static void fill_records(const struct note *notes, size_t len, struct audit_record *records)
{
    for (size_t i = 0; i < len; i++)
        records[i] = (struct audit_record){
            .time_ns = notes[i].time_ns,
            .event = audit_text_of(audit_event_name(notes[i].event)),
            .session = audit_text_of(notes[i].session),
            .body = audit_text_of(notes[i].body),
        };
}

/* --- spans --- */

/* Also keeps what has begun until it has ended; what is kept is taken out of the notes. */
static void export(struct audit *audit)
{
    size_t len = audit->begun_len + audit->len;
    AUTO_FREE struct audit_record *records = alloc_zero(len, sizeof *records);

    fill_records(audit->begun, audit->begun_len, records);
    fill_records(audit->notes, audit->len, records + audit->begun_len);
    otlp_export(&audit->senders, records, len);
    for (size_t i = 0; i < audit->len; i++) {
        struct note *note = &audit->notes[i];

        for (size_t k = 0; note->event == AUDIT_END && k < audit->begun_len; k++)
            if (str_eq(audit->begun[k].session, note->session)) {
                note_done(&audit->begun[k]);
                audit->begun[k--] = audit->begun[--audit->begun_len];
            }
        if (note->event != AUDIT_BEGIN || audit->begun_len >= AUDIT_PENDING_MAX)
            continue;
        audit->begun =
            alloc_grow(audit->begun, audit->begun_len, &audit->begun_cap, sizeof *audit->begun);
        audit->begun[audit->begun_len++] = *note;
        *note = (struct note){.event = AUDIT_OUTPUT}; /* any but what is looked for */
    }
}

/* --- all of it --- */

int audit_flush(struct audit *audit, uint64_t wait_ns, struct err *err)
{
    AUTO_FREE struct audit_record *records = alloc_zero(audit->len + 1, sizeof *records);
    struct audit_batch batch = {.items = records, .len = audit->len};
    size_t omitted = audit->omitted;
    int failed;

    if (!audit->len)
        return 0;
    fill_records(audit->notes, audit->len, records);
    failed = audit_tail_append(audit->dir, &batch, wait_ns, err);
    if (failed && err->sys == ENOENT && fd_make_dirs(audit->dir, 0700, err) == 0)
        failed = audit_tail_append(audit->dir, &batch, wait_ns, err);
    if (failed)
        return -1;
    if (otlp_is_on())
        export(audit);
    audit_clear(audit);
    if (batch.begin / AUDIT_TAIL_TIDY != batch.end / AUDIT_TAIL_TIDY)
        tidy_start(audit);
    if (omitted)
        return err_set(err, ERR_LIMIT, "%zu events came too fast for the audit log", omitted);
    return 0;
}
