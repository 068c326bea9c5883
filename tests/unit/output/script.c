/* See script.h. */
#include "script.h"

#include "../base/support.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void script_init(struct script *script, uint64_t seed)
{
    *script = (struct script){.seed = seed, .random = seed * 2 + 1};
}

void script_done(struct script *script)
{
    free(script->bytes);
    free(script->streams);
    free(script->seqs);
}

/* splitmix64, by Sebastiano Vigna */
uint64_t script_random(struct script *script, uint64_t end)
{
    uint64_t z = script->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % end;
}

void script_append_bytes(struct script *script, struct output *output, enum stream stream,
                         const char *bytes, size_t len)
{
    output_append(output, stream, bytes, len);
    if (!len)
        return;
    if (script->len + len > script->cap) {
        script->cap = (script->len + len) * 2;
        script->bytes = alloc_resize(script->bytes, script->cap, 1);
        script->streams = alloc_resize(script->streams, script->cap, 1);
        script->seqs = alloc_resize(script->seqs, script->cap, sizeof *script->seqs);
    }
    script->last_seq++;
    for (size_t i = 0; i < len; i++, script->len++) {
        script->bytes[script->len] = bytes[i];
        script->streams[script->len] = (unsigned char)stream;
        script->seqs[script->len] = script->last_seq;
    }
}

void script_append(struct script *script, struct output *output, size_t max)
{
    size_t len = script_random(script, 3) ? (size_t)script_random(script, max + 1)
                                          : (size_t)script_random(script, 4) % (max + 1);
    char *bytes = alloc_zero(len, 1);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(script_random(script, 8) ? 'a' + (int)script_random(script, 26) : '\n');
    script_append_bytes(script, output, script_random(script, 3) ? STREAM_STDOUT : STREAM_STDERR,
                        bytes, len);
    free(bytes);
}

void script_check(const struct script *script, const struct output_record *record,
                  const char *bytes, enum output_unit unit)
{
    size_t at = (size_t)record->offset;
    size_t end = at + (size_t)record->len;

    if (record->kind == OUTPUT_GAP) {
        assert_true(record->len > 0 && end <= script->len);
        return;
    }
    assert_int_equal(record->kind, OUTPUT_BYTES);
    if (!record->len || end > script->len || memcmp(script->bytes + at, bytes, end - at) != 0)
        fail_msg("seed %lu: wrong bytes at %zu", (unsigned long)script->seed, at);
    assert_int_equal(record->first_seq, script->seqs[at]);
    assert_int_equal(record->last_seq, script->seqs[end - 1]);
    for (; at < end; at++)
        assert_int_equal(script->streams[at], record->stream);
    if (unit == OUTPUT_BY_CHUNK)
        assert_int_equal(record->first_seq, record->last_seq);
}

uint64_t script_chunk_start(const struct script *script, uint64_t seq)
{
    size_t at = 0;

    while (at < script->len && script->seqs[at] < seq)
        at++;
    return at;
}
