/* The index is a run of entries of 62 bytes (or 64 with the extended flag) and a path. In versions
 * 2 and 3 the path ends in one to eight NULs, so that the entry's size is a multiple of eight; in
 * version 4 the path says how much of the path before it to drop, and what to append.
 *
 * What it does not do: verify the checksum, or read extensions but the hash in "link".
 */
#include "policy/git_index.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    HEADER_BYTES = 12,
    ENTRY_BYTES = 62,
    MODE_OFFSET = 24,
    FLAGS_OFFSET = 60,
    FLAG_EXTENDED = 0x4000,
    MODE_TYPE = 0170000,
    MODE_GITLINK = 0160000,
    PATH_MAX_BYTES = 4096,
    HASH_BYTES = 20,
    HASH_BYTES_SHA256 = 32,
};

struct index_reader {
    const unsigned char *bytes;
    size_t len;
    size_t at;
    uint32_t version;
    size_t hash_extra; /* bytes that a hash of this repository is longer than SHA-1's */
    struct buf path;
};

static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The variable-length number of version 4: seven bits a byte, the highest first, and one added for
 * every byte that follows. */
static bool read_varint(struct index_reader *reader, size_t *ret)
{
    size_t value = 0;

    for (int i = 0; i < 4 && reader->at < reader->len; i++) {
        unsigned char byte = reader->bytes[reader->at++];

        value = (value << 7) + (byte & 0x7f);
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
        value++;
    }
    return false;
}

/* Reads the path of the entry that starts at `start`; the reader stands behind its fixed part. */
static bool read_path(struct index_reader *reader, size_t start)
{
    size_t drop = reader->path.len;
    const unsigned char *end;

    if (reader->version == 4 && (!read_varint(reader, &drop) || drop > reader->path.len))
        return false;
    reader->path.len -= drop;
    end = memchr(reader->bytes + reader->at, '\0', reader->len - reader->at);
    if (!end || !buf_append(&reader->path, reader->bytes + reader->at,
                            (size_t)(end - reader->bytes) - reader->at))
        return false;
    reader->at = (size_t)(end - reader->bytes) + 1;
    if (reader->version < 4)
        reader->at = start + (reader->at - start + 7) / 8 * 8;
    return reader->at <= reader->len;
}

static bool read_entries(struct index_reader *reader, uint32_t count, struct strv *ret)
{
    size_t fixed = ENTRY_BYTES + reader->hash_extra;

    while (count--) {
        const unsigned char *entry = reader->bytes + reader->at;
        size_t start = reader->at;
        uint32_t flags;

        if (reader->len - start < fixed + 2)
            return false;
        flags = read_u32(entry + FLAGS_OFFSET + reader->hash_extra - 2) & 0xffff;
        reader->at = start + fixed + (flags & FLAG_EXTENDED ? 2 : 0);
        if (!read_path(reader, start))
            return false;
        if ((read_u32(entry + MODE_OFFSET) & MODE_TYPE) == MODE_GITLINK)
            strv_push_take(
                ret, alloc_strn(reader->path.data ? reader->path.data : "", reader->path.len));
    }
    return true;
}

/* Behind the entries come extensions (a name of four bytes, a size, that many bytes) and a hash
 * over all of it; that they fill the rest exactly tells whether the hashes were as long as assumed.
 */
static bool rest_is_whole(const struct index_reader *reader, const unsigned char **ret_link)
{
    size_t hash = HASH_BYTES + reader->hash_extra;
    size_t at = reader->at;

    *ret_link = NULL;
    while (at <= reader->len && reader->len - at >= hash + 8) {
        size_t size = read_u32(reader->bytes + at + 4);

        if (memcmp(reader->bytes + at, "link", 4) == 0 && size >= hash)
            *ret_link = reader->bytes + at + 8;
        at += 8 + size;
    }
    return at <= reader->len && reader->len - at == hash;
}

/* NULL when the hash of the extension is zero: then there is no other file. */
static char *shared_name(const unsigned char *hash, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    AUTO(buf_done) struct buf name = {.max = PATH_MAX_BYTES};
    unsigned any = 0;

    buf_append_str(&name, "sharedindex.");
    for (size_t i = 0; i < len; i++) {
        buf_append(&name, &digits[hash[i] >> 4], 1);
        buf_append(&name, &digits[hash[i] & 15], 1);
        any |= hash[i];
    }
    return any ? alloc_str(name.data) : NULL;
}

int git_index_submodules(const char *bytes, size_t len, struct strv *ret, char **ret_shared,
                         struct err *err)
{
    static const size_t extras[] = {0, HASH_BYTES_SHA256 - HASH_BYTES};
    const unsigned char *header = (const unsigned char *)bytes;
    uint32_t version = len >= HEADER_BYTES ? read_u32(header + 4) : 0;

    if (len < HEADER_BYTES || memcmp(bytes, "DIRC", 4) != 0 || version < 2 || version > 4)
        return err_set(err, ERR_INVALID, "not a git index of version 2 to 4");
    /* The index does not say which hash it uses. */
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        AUTO(strv_done) struct strv found = {0};
        AUTO(buf_done) struct buf path = {.max = PATH_MAX_BYTES};
        struct index_reader reader = {
            .bytes = header,
            .len = len,
            .at = HEADER_BYTES,
            .version = version,
            .hash_extra = extras[i],
            .path = path,
        };
        const unsigned char *link = NULL;
        bool ok =
            read_entries(&reader, read_u32(header + 8), &found) && rest_is_whole(&reader, &link);

        path = reader.path;
        if (!ok)
            continue;
        if (strv_has(&found, ""))
            return err_set(err, ERR_INVALID,
                           "the split index replaces a submodule; `git update-index "
                           "--no-split-index` makes it a whole one");
        *ret_shared = link ? shared_name(link, HASH_BYTES + extras[i]) : NULL;
        strv_push_all(ret, strv_view(&found));
        return 0;
    }
    return err_set(err, ERR_INVALID, "the git index is malformed");
}
