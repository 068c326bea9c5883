/* See fuse.h. That something is there, and of what type, is told without asking: a list of the
 * directory that the place lies in looks at it, and so does every program that walks past. Whatever
 * tells more is an access: a name below it, its list, its contents, the question whether it may be
 * read. The mount is read-only, so the kernel refuses all changes by itself. */
#include "guard/fuse.h"

#include "guard/kernel.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static void reply(struct fuse_request *ret, const void *body, size_t len)
{
    const struct k_fuse_out_header header = {.len = (uint32_t)(sizeof header + len),
                                             .unique = ret->unique};

    ret->kind = FUSE_REPLY;
    memcpy(ret->reply, &header, sizeof header);
    memcpy(ret->reply + sizeof header, body, len);
    ret->reply_len = header.len;
}

static void refuse(struct fuse_request *ret, int error)
{
    ret->kind = FUSE_REPLY;
    ret->reply_len = fuse_refuse(ret->unique, error, ret->reply);
}

size_t fuse_refuse(uint64_t unique, int error, unsigned char ret[FUSE_REPLY_MAX])
{
    const struct k_fuse_out_header header = {
        .len = sizeof header, .error = -error, .unique = unique};

    memcpy(ret, &header, sizeof header);
    return sizeof header;
}

/* The older of both versions is spoken; 7.31 is Linux 5.4's. */
static void begin(const unsigned char *body, size_t len, struct fuse_request *ret)
{
    struct k_fuse_init_out out = {
        .major = 7, .minor = 31, .max_write = 4096, .max_background = 1, .time_gran = 1};
    uint32_t major = 0;

    if (len < 2 * sizeof major) {
        refuse(ret, EINVAL);
        return;
    }
    memcpy(&major, body, sizeof major);
    if (major < 7)
        refuse(ret, EPROTO);
    else
        reply(ret, &out, sizeof out);
}

static void describe(const struct fuse_root *root, struct fuse_request *ret)
{
    const struct k_fuse_attr_out out = {
        .valid = 86400, /* seconds; it never changes */
        .inode = 1,
        .mode = root->mode,
        .nlink = S_ISDIR(root->mode) ? 2 : 1,
        .uid = root->uid,
        .gid = root->gid,
        .blksize = 4096,
    };

    reply(ret, &out, sizeof out);
}

/* One name, NUL-terminated, and nothing else. */
static bool read_name(const unsigned char *body, size_t len, char ret[NAME_MAX + 1])
{
    if (len < 2 || len > NAME_MAX + 1 || memchr(body, '\0', len) != body + len - 1 ||
        memchr(body, '/', len))
        return false;
    memcpy(ret, body, len);
    return true;
}

/* Whether something is there may be asked; whether it may be written is answered by the kernel. */
static bool asks_to_see(const unsigned char *body, size_t len)
{
    uint32_t mask = 0;

    if (len < sizeof mask)
        return true;
    memcpy(&mask, body, sizeof mask);
    return mask & 5; /* R_OK, X_OK */
}

static void read_body(uint32_t opcode, const unsigned char *body, size_t len,
                      const struct fuse_root *root, struct fuse_request *ret)
{
    static const struct k_fuse_statfs_out no_space = {.namelen = NAME_MAX, .bsize = 4096};

    switch (opcode) {
    case K_FUSE_INIT:
        begin(body, len, ret);
        break;
    case K_FUSE_GETATTR:
        describe(root, ret);
        break;
    case K_FUSE_STATFS:
        reply(ret, &no_space, sizeof no_space);
        break;
    case K_FUSE_LOOKUP:
        ret->kind = read_name(body, len, ret->name) ? FUSE_ACCESS : FUSE_BROKEN;
        break;
    case K_FUSE_OPEN:
    case K_FUSE_OPENDIR:
    case K_FUSE_READLINK:
        ret->kind = FUSE_ACCESS;
        break;
    case K_FUSE_ACCESS:
        if (asks_to_see(body, len))
            ret->kind = FUSE_ACCESS;
        else
            refuse(ret, 0);
        break;
    case K_FUSE_INTERRUPT:
        ret->kind = len < sizeof ret->unique ? FUSE_BROKEN : FUSE_INTERRUPT;
        if (ret->kind == FUSE_INTERRUPT)
            memcpy(&ret->unique, body, sizeof ret->unique);
        break;
    case K_FUSE_FORGET:
    case K_FUSE_BATCH_FORGET:
    case K_FUSE_NOTIFY_REPLY:
        ret->kind = FUSE_NOTHING;
        break;
    case K_FUSE_GETXATTR:
    case K_FUSE_LISTXATTR:
    case K_FUSE_STATX:
        refuse(ret, ENOSYS); /* the kernel does not ask again */
        break;
    default:
        refuse(ret, EACCES);
        break;
    }
}

void fuse_read(const void *bytes, size_t len, const struct fuse_root *root,
               struct fuse_request *ret)
{
    struct k_fuse_in_header header;

    *ret = (struct fuse_request){.kind = FUSE_BROKEN};
    if (len < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    if (header.len != len)
        return;
    ret->unique = header.unique;
    ret->thread = header.pid;
    read_body(header.opcode, (const unsigned char *)bytes + sizeof header, len - sizeof header,
              root, ret);
}
