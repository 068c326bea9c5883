/* The lines of a sequence, read and written by the same table. */
#include "op.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_open
#define OLD(name) SYS_##name
#else
#define OLD(name) -1
#endif
#ifndef SYS_renameat
#define SYS_renameat -1
#endif
#define SYS_FCHMODAT2 452
#define SYS_FACCESSAT2 439

const struct signature signatures[OP_KINDS] = {
    [OP_PLACE] = {"place", -1, "p"},
    [OP_MAKE] = {"make", -1, "pmn"},
    [OP_LIMIT] = {"limit", -1, "pn"},
    [OP_BIND] = {"bind", -1, "p"},
    [OP_OPENAT] = {"openat", SYS_openat, "dpom"},
    [OP_MKDIRAT] = {"mkdirat", SYS_mkdirat, "dpm"},
    [OP_MKNODAT] = {"mknodat", SYS_mknodat, "dptz"},
    [OP_SYMLINKAT] = {"symlinkat", SYS_symlinkat, "pdp"},
    [OP_LINKAT] = {"linkat", SYS_linkat, "dpdpa"},
    [OP_RENAMEAT2] = {"renameat2", SYS_renameat2, "dpdpr"},
    [OP_UNLINKAT] = {"unlinkat", SYS_unlinkat, "dpa"},
    [OP_UMASK] = {"umask", SYS_umask, "m"},
    [OP_FCHMOD] = {"fchmod", SYS_fchmod, "dm"},
    [OP_FCHMODAT] = {"fchmodat", SYS_fchmodat, "dpm"},
    [OP_FCHMODAT2] = {"fchmodat2", SYS_FCHMODAT2, "dpma"},
    [OP_CHDIR] = {"chdir", SYS_chdir, "p"},
    [OP_FCHDIR] = {"fchdir", SYS_fchdir, "d"},
    [OP_DUP] = {"dup", SYS_dup, "d"},
    [OP_FTRUNCATE] = {"ftruncate", SYS_ftruncate, "dn"},
    [OP_TRUNCATE] = {"truncate", SYS_truncate, "pn"},
    [OP_WRITE] = {"write", SYS_write, "dwn"},
    [OP_CLOSE] = {"close", SYS_close, "d"},
    [OP_FACCESSAT] = {"faccessat", SYS_faccessat, "dpm"},
    [OP_FACCESSAT2] = {"faccessat2", SYS_FACCESSAT2, "dpma"},
    [OP_UTIMENSAT] = {"utimensat", SYS_utimensat, "dpza"},
    [OP_FCHOWNAT] = {"fchownat", SYS_fchownat, "dpuga"},
    [OP_ACL] = {"acl", -1, "pn"},
    [OP_RENAMEAT] = {"renameat", SYS_renameat, "dpdp"},
    [OP_OPEN] = {"open", OLD(open), "pom"},
    [OP_CREAT] = {"creat", OLD(creat), "pm"},
    [OP_MKDIR] = {"mkdir", OLD(mkdir), "pm"},
    [OP_MKNOD] = {"mknod", OLD(mknod), "ptz"},
    [OP_SYMLINK] = {"symlink", OLD(symlink), "pp"},
    [OP_LINK] = {"link", OLD(link), "pp"},
    [OP_RENAME] = {"rename", OLD(rename), "pp"},
    [OP_UNLINK] = {"unlink", OLD(unlink), "p"},
    [OP_RMDIR] = {"rmdir", OLD(rmdir), "p"},
    [OP_CHMOD] = {"chmod", OLD(chmod), "pm"},
    [OP_ACCESS] = {"access", OLD(access), "pm"},
};

static const char *const how_names[] = {"", "fork", "vfork", "thread", "own"};

struct name {
    const char *name;
    unsigned value;
};

/* Those that contain others come first. */
static const struct name open_names[] = {{"O_TMPFILE", O_TMPFILE},     {"O_SYNC", O_SYNC},
                                         {"O_WRONLY", O_WRONLY},       {"O_RDWR", O_RDWR},
                                         {"O_CREAT", O_CREAT},         {"O_EXCL", O_EXCL},
                                         {"O_NOCTTY", O_NOCTTY},       {"O_TRUNC", O_TRUNC},
                                         {"O_APPEND", O_APPEND},       {"O_NONBLOCK", O_NONBLOCK},
                                         {"O_DSYNC", O_DSYNC},         {"O_DIRECT", O_DIRECT},
                                         {"O_DIRECTORY", O_DIRECTORY}, {"O_NOFOLLOW", O_NOFOLLOW},
                                         {"O_NOATIME", O_NOATIME},     {"O_CLOEXEC", O_CLOEXEC},
                                         {"O_PATH", O_PATH},           {"O_LARGEFILE", 0100000},
                                         {"__O_TMPFILE", 020000000},   {NULL, 0}};
static const struct name at_names[] = {{"AT_SYMLINK_FOLLOW", AT_SYMLINK_FOLLOW},
                                       {"AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW},
                                       {"AT_EMPTY_PATH", AT_EMPTY_PATH},
                                       {"AT_REMOVEDIR", AT_REMOVEDIR},
                                       {NULL, 0}};
static const struct name rename_names[] = {
    {"NOREPLACE", 1}, {"EXCHANGE", 2}, {"WHITEOUT", 4}, {NULL, 0}};
static const struct name type_names[] = {
    {"S_IFSOCK", S_IFSOCK}, {"S_IFLNK", S_IFLNK}, {"S_IFREG", S_IFREG}, {"S_IFBLK", S_IFBLK},
    {"S_IFDIR", S_IFDIR},   {"S_IFCHR", S_IFCHR}, {"S_IFIFO", S_IFIFO}, {NULL, 0}};

static const struct name error_names[] = {{"ok", 0},
                                          {"EPERM", EPERM},
                                          {"ENOENT", ENOENT},
                                          {"EINTR", EINTR},
                                          {"EIO", EIO},
                                          {"ENXIO", ENXIO},
                                          {"EBADF", EBADF},
                                          {"EAGAIN", EAGAIN},
                                          {"ENOMEM", ENOMEM},
                                          {"EACCES", EACCES},
                                          {"EFAULT", EFAULT},
                                          {"EBUSY", EBUSY},
                                          {"EEXIST", EEXIST},
                                          {"EXDEV", EXDEV},
                                          {"ENODEV", ENODEV},
                                          {"ENOTDIR", ENOTDIR},
                                          {"EISDIR", EISDIR},
                                          {"EINVAL", EINVAL},
                                          {"ENFILE", ENFILE},
                                          {"EMFILE", EMFILE},
                                          {"ETXTBSY", ETXTBSY},
                                          {"EFBIG", EFBIG},
                                          {"ENOSPC", ENOSPC},
                                          {"ESPIPE", ESPIPE},
                                          {"EROFS", EROFS},
                                          {"EMLINK", EMLINK},
                                          {"EPIPE", EPIPE},
                                          {"ELOOP", ELOOP},
                                          {"ENAMETOOLONG", ENAMETOOLONG},
                                          {"ENOSYS", ENOSYS},
                                          {"ENOTEMPTY", ENOTEMPTY},
                                          {"EDQUOT", EDQUOT},
                                          {"EOPNOTSUPP", EOPNOTSUPP},
                                          {"EADDRINUSE", EADDRINUSE},
                                          {"ESTALE", ESTALE},
                                          {"EOVERFLOW", EOVERFLOW},
                                          {"ENODATA", ENODATA},
                                          {"ECONNREFUSED", ECONNREFUSED},
                                          {"EPROTOTYPE", EPROTOTYPE},
                                          {"ENOTSOCK", ENOTSOCK},
                                          {NULL, 0}};

const char *error_name(int error)
{
    static char other[16];

    for (const struct name *name = error_names; name->name; name++)
        if ((int)name->value == error)
            return name->name;
    snprintf(other, sizeof other, "%d", error);
    return other;
}

static const struct name *names_of(char argument)
{
    switch (argument) {
    case 'o':
        return open_names;
    case 'a':
        return at_names;
    case 'r':
        return rename_names;
    case 't':
        return type_names;
    default:
        return NULL;
    }
}

void op_init(struct op *op, enum op_kind kind)
{
    *op = (struct op){.kind = kind, .slots = {SLOT_CWD, SLOT_CWD}, .into = -1, .expected = -1};
}

bool op_is_here(enum op_kind kind)
{
    return kind <= OP_BIND || kind == OP_ACL || signatures[kind].nr >= 0;
}

bool op_makes_descriptor(const struct op *op)
{
    return op->kind == OP_OPEN || op->kind == OP_OPENAT || op->kind == OP_CREAT ||
           op->kind == OP_DUP;
}

struct text {
    char *at;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(text->at + text->len, LINE - text->len, format, args);
    va_end(args);
    text->len += (size_t)len;
    if (text->len >= LINE)
        text->len = LINE - 1;
}

static void put_flags(struct text *text, const struct name *names, unsigned value, unsigned mode)
{
    const char *between = " ";

    for (const struct name *name = names; name->name; name++) {
        if ((value & name->value) != name->value || !name->value)
            continue;
        put(text, "%s%s", between, name->name);
        between = "|";
        value &= ~name->value;
    }
    if (value || *between == ' ')
        put(text, "%s%#x", between, value);
    if (names == type_names)
        put(text, "|%#o", mode);
}

static void put_path(struct text *text, const char *path)
{
    bool is_pointer = !strcmp(path, "NULL") || !strcmp(path, "BAD") || !strcmp(path, "EDGE");

    put(text, is_pointer ? " %s" : " \"%s\"", path);
}

static void put_slot(struct text *text, int slot)
{
    if (slot == SLOT_CWD)
        put(text, " cwd");
    else if (slot < 0 || slot >= SLOTS)
        put(text, " %d", slot);
    else
        put(text, " fd%d", slot);
}

static void put_argument(struct text *text, const struct op *op, char argument, int *slot,
                         int *path)
{
    const struct name *names = names_of(argument);

    if (names)
        put_flags(text, names, argument == 't' ? op->mode & S_IFMT : op->flags, op->mode & ~S_IFMT);
    else if (argument == 'd')
        put_slot(text, op->slots[(*slot)++]);
    else if (argument == 'p')
        put_path(text, op->paths[(*path)++]);
    else if (argument == 'm')
        put(text, " %#o", op->mode);
    else if (argument == 'n')
        put(text, " %ld", op->number);
}

void op_format(const struct op *op, char ret[LINE])
{
    struct text text = {ret, 0};
    int slot = 0, path = 0;

    if (op->how != HOW_PLAIN)
        put(&text, "%s ", how_names[op->how]);
    if (op->how == HOW_OWN)
        put(&text, "\"%s\" %#o ", op->own_dir, op->own_mask);
    put(&text, "%s", signatures[op->kind].name);
    for (const char *a = signatures[op->kind].arguments; *a; a++)
        put_argument(&text, op, *a, &slot, &path);
    if (op->into >= 0)
        put(&text, " > fd%d", op->into);
    if (op->expected >= 0)
        put(&text, " ! %s", error_name(op->expected));
}

/* Cuts the next word off; the quotes of a path are taken away. */
static bool word(const char **at, char ret[PATH_TEXT])
{
    const char *start = *at + strspn(*at, " ");
    size_t len;

    if (!*start)
        return false;
    if (*start == '"') {
        start++;
        len = strcspn(start, "\"");
        *at = start + len + (start[len] == '"');
    } else {
        len = strcspn(start, " ");
        *at = start + len;
    }
    if (len >= PATH_TEXT)
        return false;
    memcpy(ret, start, len);
    ret[len] = '\0';
    return true;
}

static unsigned flags_of(const struct name *names, const char *text)
{
    unsigned value = 0;

    for (size_t len; *text; text += len + (text[len] == '|')) {
        const struct name *name = names;

        len = strcspn(text, "|");
        while (name->name && (strlen(name->name) != len || strncmp(name->name, text, len) != 0))
            name++;
        value |= name->name ? name->value : (unsigned)strtoul(text, NULL, 0);
    }
    return value;
}

static int slot_of(const char *text)
{
    if (!strcmp(text, "cwd"))
        return SLOT_CWD;
    return (int)strtol(text + 2 * !strncmp(text, "fd", 2), NULL, 10);
}

static bool parse_argument(const char **at, char argument, struct op *op, int *slot, int *path)
{
    const struct name *names = names_of(argument);
    char text[PATH_TEXT];

    if (strchr("zugw", argument))
        return true;
    if (!word(at, text))
        return false;
    if (argument == 't')
        op->mode = flags_of(names, text);
    else if (names)
        op->flags = flags_of(names, text);
    else if (argument == 'd')
        op->slots[(*slot)++] = slot_of(text);
    else if (argument == 'p')
        memcpy(op->paths[(*path)++], text, sizeof text);
    else if (argument == 'm')
        op->mode = (unsigned)strtoul(text, NULL, 0);
    else
        op->number = strtol(text, NULL, 0);
    return true;
}

static bool parse_how(const char **at, char first[PATH_TEXT], struct op *op)
{
    char mask[PATH_TEXT];

    for (int how = HOW_FORK; how < HOWS; how++) {
        if (strcmp(first, how_names[how]) != 0)
            continue;
        op->how = (enum how)how;
        if (how == HOW_OWN) {
            if (!word(at, op->own_dir) || !word(at, mask))
                return false;
            op->own_mask = (unsigned)strtoul(mask, NULL, 0);
        }
        return word(at, first);
    }
    return true;
}

bool op_parse(const char *line, struct op *ret)
{
    char text[PATH_TEXT];
    int kind = 0, slot = 0, path = 0;
    struct op how = {0};

    if (!word(&line, text) || !parse_how(&line, text, &how))
        return false;
    while (kind < OP_KINDS && strcmp(text, signatures[kind].name) != 0)
        kind++;
    if (kind == OP_KINDS)
        return false;
    op_init(ret, (enum op_kind)kind);
    ret->how = how.how;
    ret->own_mask = how.own_mask;
    memcpy(ret->own_dir, how.own_dir, sizeof how.own_dir);
    for (const char *a = signatures[kind].arguments; *a; a++)
        if (!parse_argument(&line, *a, ret, &slot, &path))
            return false;
    while (word(&line, text)) {
        bool is_result = !strcmp(text, ">");

        if ((!is_result && strcmp(text, "!") != 0) || !word(&line, text))
            return false;
        if (is_result)
            ret->into = slot_of(text);
        else
            ret->expected = (int)flags_of(error_names, text);
    }
    return true;
}
