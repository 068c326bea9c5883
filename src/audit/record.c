/* Parsing a record is the inverse of formatting it and nothing more. A line is taken apart loosely,
 * written anew, and the two are compared, so that no byte of a line can be changed without either
 * the syntax or the hash failing: there is no second spelling to hide in. */
#include "audit/record.h"

#include "audit/redact.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strv.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)AUDIT_HASH_SIZE == (int)SHA256_SIZE, "the hash is SHA-256");

struct audit_text audit_text_of(const char *text)
{
    return (struct audit_text){text, strlen(text)};
}

bool audit_text_eq(struct audit_text a, struct audit_text b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

bool audit_link_eq(const struct audit_link *a, const struct audit_link *b)
{
    return a->seq == b->seq && memcmp(a->hash, b->hash, AUDIT_HASH_SIZE) == 0;
}

bool audit_word_is_valid(struct audit_text word)
{
    static const char bytes[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

    for (size_t i = 0; i < word.len; i++)
        if (!memchr(bytes, word.at[i], sizeof bytes - 1))
            return false;
    return word.len > 0 && word.len <= AUDIT_WORD_MAX;
}

/* --- the hash --- */

static void hash_number(struct sha256 *sha, uint64_t number, size_t size)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(number >> 8 * (size - 1 - i));
    sha256_add(sha, bytes, size);
}

static void hash_text(struct sha256 *sha, struct audit_text text)
{
    hash_number(sha, text.len, 4);
    sha256_add(sha, text.at, text.len);
}

void audit_record_hash(const struct audit_record *record, const uint8_t previous[AUDIT_HASH_SIZE],
                       uint8_t ret[AUDIT_HASH_SIZE])
{
    struct sha256 sha;

    sha256_start(&sha);
    sha256_add(&sha, previous, AUDIT_HASH_SIZE);
    hash_number(&sha, record->link.seq, 8);
    hash_number(&sha, record->time_ns, 8);
    hash_text(&sha, record->event);
    hash_text(&sha, record->session);
    hash_text(&sha, record->body);
    sha256_finish(&sha, ret);
}

bool audit_record_follows(const struct audit_record *record, const struct audit_link *previous)
{
    uint8_t hash[AUDIT_HASH_SIZE];

    if (record->link.seq != previous->seq + 1)
        return false;
    audit_record_hash(record, previous->hash, hash);
    return memcmp(record->link.hash, hash, AUDIT_HASH_SIZE) == 0;
}

/* --- the line --- */

void audit_hash_format(const uint8_t hash[AUDIT_HASH_SIZE], char ret[AUDIT_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < AUDIT_HASH_SIZE; i++) {
        ret[2 * i] = digits[hash[i] >> 4];
        ret[2 * i + 1] = digits[hash[i] & 15];
    }
}

static uint8_t digit_value(char c)
{
    return (uint8_t)(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0);
}

void audit_hash_parse(const char digits[AUDIT_HEX_SIZE], uint8_t ret[AUDIT_HASH_SIZE])
{
    for (size_t i = 0; i < AUDIT_HASH_SIZE; i++)
        ret[i] = (uint8_t)(digit_value(digits[2 * i]) << 4 | digit_value(digits[2 * i + 1]));
}

bool audit_record_format(const struct audit_record *record, struct buf *ret)
{
    char hex[AUDIT_HEX_SIZE];

    audit_hash_format(record->link.hash, hex);
    return buf_appendf(ret, "%.*s %" PRIu64 " %" PRIu64 " %.*s %.*s %.*s\n", AUDIT_HEX_SIZE, hex,
                       record->link.seq, record->time_ns, (int)record->event.len, record->event.at,
                       (int)record->session.len, record->session.at, (int)record->body.len,
                       record->body.at);
}

/* The next word and the space behind it; empty at the end. */
static struct audit_text take_word(const char **at, const char *end)
{
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    struct audit_text word = {*at, (size_t)((space ? space : end) - *at)};

    *at = space ? space + 1 : end;
    return word;
}

static uint64_t number_of(struct audit_text word)
{
    uint64_t number = 0;

    for (size_t i = 0; i < word.len; i++)
        number = number * 10 + (uint64_t)(word.at[i] - '0');
    return number;
}

int audit_record_parse(const char *line, size_t len, struct audit_record *ret, struct err *err)
{
    const char *start = line;
    const char *end = line + len;
    AUTO(buf_done) struct buf again = {0};
    struct audit_record record = {0};
    struct audit_text hash;

    if (len >= AUDIT_LINE_MAX || memchr(line, '\0', len))
        return err_set(err, ERR_INVALID, "is longer than a record can be, or holds a NUL");
    hash = take_word(&line, end);
    if (hash.len != AUDIT_HEX_SIZE)
        return err_set(err, ERR_INVALID, "should begin with a hash of %d digits", AUDIT_HEX_SIZE);
    audit_hash_parse(hash.at, record.link.hash);
    record.link.seq = number_of(take_word(&line, end));
    record.time_ns = number_of(take_word(&line, end));
    record.event = take_word(&line, end);
    record.session = take_word(&line, end);
    record.body = (struct audit_text){line, (size_t)(end - line)};
    buf_init(&again, AUDIT_LINE_MAX);
    if (!audit_word_is_valid(record.event) || !audit_word_is_valid(record.session) ||
        record.body.len < 2 || record.body.len > AUDIT_BODY_MAX ||
        !audit_record_format(&record, &again) || again.len != len + 1 ||
        memcmp(again.data, start, len) != 0)
        return err_set(err, ERR_INVALID, "is not \"HASH NUMBER TIME EVENT SESSION BODY\"");
    *ret = record;
    return 0;
}

/* --- the events --- */

const char *audit_event_name(enum audit_event event)
{
    static const char *const names[] = {
        [AUDIT_BEGIN] = "begin",         [AUDIT_OUTPUT] = "output",
        [AUDIT_ASKED] = "asked",         [AUDIT_ANSWERED] = "answered",
        [AUDIT_HELD] = "held",           [AUDIT_DENIED] = "denied",
        [AUDIT_EXEC] = "exec",           [AUDIT_FILE] = "file",
        [AUDIT_CONNECT] = "connect",     [AUDIT_LOST] = "lost",
        [AUDIT_RETRIED] = "retried",     [AUDIT_PATCH_BEGIN] = "patch-begin",
        [AUDIT_PATCH_END] = "patch-end", [AUDIT_END] = "end",
        [AUDIT_ANEW] = "anew",           [AUDIT_LAYER] = "layer",
    };

    return names[event];
}

/* The environment of the command, and ours: the secrets of the person who started us were taken out of the
 * command's, and are in words all the same. */
static void add_environments(char *const *env, struct strv *ret)
{
    for (; env && *env; env++)
        strv_push(ret, *env);
    for (char *const *own = environ; own && *own; own++)
        strv_push(ret, *own);
}

static json_t *words_to_json(char *const *words, char *const *env)
{
    AUTO(strv_done) struct strv known = {0};

    add_environments(env, &known);
    return audit_redact_words(words, strv_view(&known));
}

/* What somebody wrote; NULL: null. */
static json_t *text_to_json(const char *text)
{
    AUTO_FREE char *cleaned = text ? audit_redact(text, environ) : NULL;

    return json_lossy(cleaned);
}

json_t *audit_begin_body(const struct audit_begin *begin)
{
    json_t *process = begin->process ? json_lossy(begin->process) : NULL;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o*}", "argv",
                     words_to_json(begin->argv, begin->env), "cwd", text_to_json(begin->cwd),
                     "profile", json_lossy(begin->profile), "network", json_lossy(begin->network),
                     "sandbox", json_lossy(begin->sandbox), "face", json_lossy(begin->face),
                     "process", process);
}

static json_t *count_to_json(uint64_t count)
{
    return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

json_t *audit_output_body(uint64_t stdout_bytes, uint64_t stderr_bytes)
{
    return json_pack("{s:o, s:o}", "stdout_bytes", count_to_json(stdout_bytes), "stderr_bytes",
                     count_to_json(stderr_bytes));
}

json_t *audit_asked_body(const struct audit_asked *asked)
{
    return json_pack("{s:o, s:o, s:o}", "argv", words_to_json(asked->argv, asked->env), "reason",
                     text_to_json(asked->reason), "covers", json_lossy(asked->covers));
}

json_t *audit_answered_body(const char *decision, const char *by, const char *rule)
{
    return json_pack("{s:o, s:o, s:o}", "decision", json_lossy(decision), "by", json_lossy(by),
                     "rule", text_to_json(rule));
}

json_t *audit_held_body(const struct audit_held *held)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "reason", text_to_json(held->reason),
                     "covers", json_lossy(held->covers), "decision", json_lossy(held->decision),
                     "by", json_lossy(held->by), "held_ms", count_to_json(held->held_ns / 1000000),
                     "done", held->is_done);
}

static json_t *positive_to_json(unsigned number)
{
    return number ? count_to_json(number) : json_null();
}

json_t *audit_denied_body(const struct audit_denied *denied)
{
    json_t *body =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "operation", json_lossy(denied->operation),
                  "path", json_lossy(denied->path), "host", json_lossy(denied->host), "errno",
                  json_lossy(denied->error), "evidence", json_lossy(denied->evidence), "decided_by",
                  json_lossy(denied->decided_by));
    json_t *more = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:b}", "reason", json_lossy(denied->reason),
        "path2", json_lossy(denied->other_path), "port", positive_to_json(denied->port), "program",
        json_lossy(denied->program), "pid", positive_to_json((unsigned)denied->pid), "call",
        json_lossy(denied->call), "creates", !!(denied->flags & AUDIT_DENIED_CREATES), "count",
        count_to_json(denied->count), "below", !!(denied->flags & AUDIT_DENIED_BELOW));

    json_object_update_missing_new(body, more);
    return body;
}

json_t *audit_retried_body(const char *grant)
{
    return json_pack("{s:o}", "grant", json_lossy(grant));
}

json_t *audit_patch_begin_body(const char *cwd, uint64_t patch_bytes)
{
    return json_pack("{s:o, s:o}", "cwd", json_lossy(cwd), "patch_bytes",
                     count_to_json(patch_bytes));
}

json_t *audit_patch_end_body(bool is_applied, const char *reason)
{
    return json_pack("{s:b, s:o}", "applied", is_applied, "reason", text_to_json(reason));
}

json_t *audit_layer_body(const struct audit_layer *layer)
{
    json_t *changes =
        layer->has_changes
            ? json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "added", (json_int_t)layer->added,
                        "modified", (json_int_t)layer->modified, "deleted",
                        (json_int_t)layer->deleted, "renamed", (json_int_t)layer->renamed, "other",
                        (json_int_t)layer->other, "marked", (json_int_t)layer->marked)
            : json_null();

    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "action", layer->action, "layer",
                     json_lossy(layer->layer), "name", json_lossy(layer->name), "step",
                     layer->step ? json_integer(layer->step) : json_null(), "accept",
                     layer->accept ? json_integer(layer->accept) : json_null(), "changes", changes,
                     "done", (json_int_t)layer->done, "left", (json_int_t)layer->left);
}

json_t *audit_end_body(const struct audit_end *end)
{
    return json_pack("{s:o, s:o, s:i, s:o, s:o}", "end", json_lossy(end->end), "exit_code",
                     end->exit_code < 0 ? json_null() : json_integer(end->exit_code), "signal",
                     end->signal, "wall_time_ns", count_to_json(end->wall_ns), "reason",
                     text_to_json(end->reason));
}
