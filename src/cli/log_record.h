/* A record of the audit log for people and programs. */
#pragma once

#include <stdbool.h>

struct audit_record;
struct buf;

/* How a line looks; both on a terminal. */
enum log_look {
    LOG_COLOURED = 1,
    LOG_LOCAL_TIME = 2, /* else UTC */
};

/* Whether it tells of something refused: a denial, an answer that is no yes, a run that was
 * denied, forbidden or rejected. */
bool log_is_denial(const struct audit_record *record);

/* The line, its line feed included:
 *
 *   2026-11-20 10:34:00.123  4f5c1a2b  begin     make test   (in /home/me/p, workspace-write)
 */
void log_show_text(const struct audit_record *record, unsigned look, struct buf *ret);

/* {"seq":7,"time":"2026-11-20T10:34:00.123Z","event":"begin","session":"...","body":{...},
 * "hash":"..."} on one line. */
void log_show_json(const struct audit_record *record, struct buf *ret);
