/* See git_index.h. The index is a run of entries of 62 bytes (or 64 with the extended flag, and 12 more with
 * the longer hash) and a path. In versions 2 and 3 the path ends in one to eight NULs, so that the entry's size
 * is a multiple of eight; in version 4 the path says how much of the path before it to drop, and
 * what to append. The checksum is not verified. */
#include "base/git_index.h"

#include <limits.h>
#include <string.h>

enum {
    HEADER_BYTES = 12,
    ENTRY_BYTES = 62,
    MODE_OFFSET = 24,
    FLAGS_OFFSET = 60,
    FLAG_EXTENDED = 0x4000,
    FLAG_LENGTH = 0xfff, /* of the path; just this where it is at least as long */
    EOIE_BYTES = 12,     /* and a hash: where the entries end */
};

struct index_reader {
    const unsigned char *bytes;
    size_t len, at, path_len;
    uint32_t version;
    char path[PATH_MAX];
};

static uint32_t read_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* As gitformat-index(5) says of version 4: seven bits a byte, and one added for each that follows. */
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

/* Of the entry that starts at `start`, whose fixed part has been read. */
static bool read_path(struct index_reader *reader, size_t start)
{
    size_t drop = reader->path_len;
    const unsigned char *end;
    size_t len;

    if (reader->version == 4 && (!read_varint(reader, &drop) || drop > reader->path_len))
        return false;
    end = reader->at < reader->len
              ? memchr(reader->bytes + reader->at, '\0', reader->len - reader->at)
              : NULL;
    len = end ? (size_t)(end - reader->bytes) - reader->at : 0;
    reader->path_len -= drop;
    if (!end || len >= sizeof reader->path - reader->path_len)
        return false;
    memcpy(reader->path + reader->path_len, reader->bytes + reader->at, len + 1);
    reader->path_len += len;
    reader->at += len + 1;
    if (reader->version < 4)
        reader->at = start + (reader->at - start + 7) / 8 * 8;
    return reader->at <= reader->len;
}

static bool read_entries(struct index_reader *reader, size_t hash,
                         const struct git_index_visitor *visitor)
{
    const size_t fixed = ENTRY_BYTES + hash - GIT_HASH_BYTES;

    reader->at = HEADER_BYTES;
    for (uint32_t count = read_u32(reader->bytes + 8); count; count--) {
        const unsigned char *entry = reader->bytes + reader->at;
        const size_t start = reader->at;
        uint32_t flags;

        if (reader->len - start < fixed + 2)
            return false;
        flags = read_u32(entry + FLAGS_OFFSET + hash - GIT_HASH_BYTES - 2) & 0xffff;
        reader->at = start + fixed + (flags & FLAG_EXTENDED ? 2 : 0);
        if (!read_path(reader, start) ||
            ((flags & FLAG_LENGTH) != FLAG_LENGTH && (flags & FLAG_LENGTH) != reader->path_len) ||
            !visitor->entry(visitor->data, reader->path, read_u32(entry + MODE_OFFSET)))
            return false;
    }
    return true;
}

/* Behind the entries come extensions (a name of four bytes, a size, that many bytes) and a hash over all
 * of it; that they fill the rest exactly tells whether the hashes were as long as assumed. None may say
 * that entries are elsewhere: for one of them git looks at a fixed distance from the end, whatever lies around it. */
static bool read_extensions(const struct index_reader *reader, size_t hash,
                            const struct git_index_visitor *visitor)
{
    const size_t tail = EOIE_BYTES + 2 * hash;
    size_t at = reader->at;

    if (reader->len >= tail && memcmp(reader->bytes + reader->len - tail, "EOIE", 4) == 0 &&
        read_u32(reader->bytes + reader->len - tail + 8) != reader->at)
        return false;
    while (at <= reader->len && reader->len - at >= hash + 8) {
        const unsigned char *extension = reader->bytes + at;
        const size_t size = read_u32(extension + 4);

        if (size > reader->len - at - hash - 8 ||
            !visitor->extension(visitor->data, (const char *)extension, extension + 8, size))
            return false;
        at += 8 + size;
    }
    return at <= reader->len && reader->len - at == hash;
}

bool git_index_read(const void *bytes, size_t len, size_t hash,
                    const struct git_index_visitor *visitor)
{
    struct index_reader reader = {.bytes = bytes, .len = len};

    if (len < HEADER_BYTES || memcmp(bytes, "DIRC", 4) != 0)
        return false;
    reader.version = read_u32(reader.bytes + 4);
    return reader.version >= 2 && reader.version <= 4 && read_entries(&reader, hash, visitor) &&
           read_extensions(&reader, hash, visitor);
}
