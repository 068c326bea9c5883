/* A sequence is a place, some eight things that are there, and five to twenty calls. Nine names in
 * few folders, so that calls meet.
 *
 * Left out, because the sandbox means to differ there: the protected names and those that make a
 * repository, set-user-id modes (for root set-group-id ones, too), device nodes and RENAME_WHITEOUT
 * (which makes one), openat2, and names in /proc but for those of the caller's own descriptors and
 * folders. What lies outside of the workspace, /dev/null included: root's calls would change it. And two
 * errors that are told apart by what cannot be seen: a directory whose path fills PATH_MAX to the last
 * byte, in the place of a file to be linked; AT_EMPTY_PATH with a descriptor that a parent opened. */
#include "invent.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct inventor {
    const struct wishes *wishes;
    uint64_t state;
    bool may_climb;
    bool is_small; /* what is written fills it */
};

static uint64_t next(struct inventor *inventor)
{
    uint64_t z = inventor->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned below(struct inventor *inventor, unsigned limit)
{
    return (unsigned)(next(inventor) >> 33) % limit;
}

static bool chance(struct inventor *inventor, unsigned percent)
{
    return below(inventor, 100) < percent;
}

#define ONE_OF(inventor, list) ((list)[below(inventor, sizeof(list) / sizeof *(list))])

static const char *name(struct inventor *inventor)
{
    static const char *const names[] = {"a", "b", "c", "d", "a", "b", "c", "d", "a",
                                        "b", "d", "d", "e", "e", "f", "g", "h", "i"};

    return ONE_OF(inventor, names);
}

/* What may come before a path, or between its names. */
static const char *prefix(struct inventor *inventor)
{
    static const char *const climbing[] = {"../", "d/../", "../p/", "./../p/", "a/../", "../../"};
    static const char *const plain[] = {"./",   "{B}/",   ".//",  "d//", "./a/", "d/./",
                                        "d/a/", "{B}/d/", "a/b/", "e/",  "c/",   "/proc/self/cwd/"};

    if (inventor->may_climb && chance(inventor, 35))
        return ONE_OF(inventor, climbing);
    return ONE_OF(inventor, plain);
}

static void odd_path(struct inventor *inventor, char ret[PATH_TEXT])
{
    static const char *const texts[] = {
        "",           "NULL",
        "BAD",        "EDGE",
        "{n255}",     "{n256}",
        "d/{n255}",   "d/{n256}",
        "{n300}/a",   "{P4095}a",
        "{P4096}a",   "{P4095}d/b",
        "{P5000}c",   "{n256}/../a",
        "a/",         "d/.",
        "nowhere/a",  "d/nowhere/",
        "a/b/c/d",    "{P4090}/a/",
        "{B}/{n255}", "/proc/self/fd/x",
        "{P3000}d/a", "{n255}/",
    };
    if (chance(inventor, 55)) {
        snprintf(ret, PATH_TEXT, "%s", ONE_OF(inventor, texts));
        return;
    }
    switch (below(inventor, 6)) {
    case 0:
    case 1:
        snprintf(ret, PATH_TEXT, "/proc/self/fd/{f%u}", below(inventor, 4));
        break;
    case 2:
        snprintf(ret, PATH_TEXT, "/proc/thread-self/fd/{f%u}", below(inventor, 4));
        break;
    case 3:
        snprintf(ret, PATH_TEXT, "/proc/self/fd/{f%u}/%s", below(inventor, 4), name(inventor));
        break;
    case 4:
        snprintf(ret, PATH_TEXT, "/dev/fd/{f%u}/%s", below(inventor, 4), name(inventor));
        break;
    default:
        snprintf(ret, PATH_TEXT, "/proc/self/fd/{f%u}/", below(inventor, 4));
        break;
    }
}

static void path(struct inventor *inventor, char ret[PATH_TEXT])
{
    static const char *const ends[] = {"/", "/.", "/", "//", "/./"};
    const char *begin = chance(inventor, 40) ? prefix(inventor) : "";
    const char *middle = "", *end = "";
    char first[8] = "";

    if (chance(inventor, 12)) {
        odd_path(inventor, ret);
        return;
    }
    if (chance(inventor, 35)) {
        snprintf(first, sizeof first, "%s/", name(inventor));
        middle = first;
    }
    if (chance(inventor, 10))
        end = ONE_OF(inventor, ends);
    else if (inventor->may_climb && chance(inventor, 2))
        end = "/..";
    snprintf(ret, PATH_TEXT, "%s%s%s%s", begin, middle, name(inventor), end);
}

static unsigned mode(struct inventor *inventor)
{
    static const unsigned modes[] = {0644, 0666, 0755,  0777,  0600,  0700,  0444,    0555,
                                     0,    0222, 01777, 01644, 02755, 02777, 0100644, 017777777};
    unsigned ret = ONE_OF(inventor, modes);

    if (inventor->wishes->is_root)
        ret &= ~(unsigned)S_ISGID;
    return ret & ~(unsigned)S_ISUID;
}

static int slot(struct inventor *inventor)
{
    if (chance(inventor, 35))
        return SLOT_CWD;
    if (chance(inventor, 6))
        return chance(inventor, 50) ? SLOT_MINUS_ONE : SLOT_CLOSED;
    return (int)(chance(inventor, 60) ? below(inventor, 2) : below(inventor, 4));
}

static unsigned open_flags(struct inventor *inventor)
{
    static const unsigned some[] = {
        O_CREAT,           O_CREAT,    O_CREAT | O_EXCL, O_TRUNC,
        O_APPEND,          O_NOFOLLOW, O_DIRECTORY,      O_CLOEXEC,
        O_CREAT,           O_NONBLOCK, O_PATH,           O_DSYNC,
        O_NOATIME,         O_NOCTTY,   O_SYNC,           O_CREAT | O_DIRECTORY,
        O_CREAT | O_TRUNC, O_EXCL};
    static const unsigned access[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR, O_WRONLY};
    unsigned flags = ONE_OF(inventor, access);

    if (chance(inventor, 1))
        flags = 3;
    if (chance(inventor, 7))
        return (flags ? flags : O_RDWR) | O_TMPFILE | (chance(inventor, 25) ? O_EXCL : 0);
    for (int i = chance(inventor, 75) ? 1 : 3; i > 0; i--)
        flags |= ONE_OF(inventor, some);
    if (chance(inventor, 15)) /* a folder, for those that come after */
        flags = O_RDONLY | O_DIRECTORY | (chance(inventor, 30) ? O_PATH : 0);
    return flags;
}

static unsigned at_flags(struct inventor *inventor, unsigned usual)
{
    static const unsigned some[] = {AT_SYMLINK_FOLLOW,
                                    AT_SYMLINK_NOFOLLOW,
                                    AT_EMPTY_PATH,
                                    AT_REMOVEDIR,
                                    AT_SYMLINK_FOLLOW | AT_EMPTY_PATH,
                                    0x10};

    if (chance(inventor, 40))
        return 0;
    return chance(inventor, 85) ? usual : ONE_OF(inventor, some);
}

static void link_text(struct inventor *inventor, char ret[PATH_TEXT])
{
    static const char *const texts[] = {
        "nowhere", "nowhere/x", "{B}/a", "{B}/nothing", "d/x", "d", "./b", "c/", "{n255}",
        "{n256}",  "d/",        ".",     "a",           "e",   "b", "f",   "x",  "{n1000}"};

    if (inventor->may_climb && chance(inventor, 12))
        snprintf(ret, PATH_TEXT, "%s", chance(inventor, 50) ? ".." : "../p");
    else if (chance(inventor, 4))
        odd_path(inventor, ret);
    else if (chance(inventor, 60))
        snprintf(ret, PATH_TEXT, "%s", ONE_OF(inventor, texts));
    else
        snprintf(ret, PATH_TEXT, "%s", name(inventor));
}

static unsigned node_type(struct inventor *inventor)
{
    static const unsigned types[] = {S_IFREG,  S_IFREG, 0,       S_IFIFO,
                                     S_IFSOCK, S_IFDIR, S_IFLNK, 0170000};

    return ONE_OF(inventor, types);
}

static long size(struct inventor *inventor)
{
    static const long sizes[] = {0, 1, 10, 100, 4096, 5000};
    static const long large[] = {0, 100, 4096, 12000, 40000, 100000};

    return inventor->is_small ? ONE_OF(inventor, large) : ONE_OF(inventor, sizes);
}

/* How often which call is made. */
static const struct {
    enum op_kind kind;
    unsigned weight;
} weights[] = {
    {OP_OPENAT, 16},    {OP_OPEN, 10},     {OP_CREAT, 3},     {OP_MKDIR, 4},     {OP_MKDIRAT, 5},
    {OP_MKNOD, 2},      {OP_MKNODAT, 3},   {OP_SYMLINK, 3},   {OP_SYMLINKAT, 3}, {OP_LINK, 4},
    {OP_LINKAT, 7},     {OP_RENAME, 7},    {OP_RENAMEAT, 3},  {OP_RENAMEAT2, 9}, {OP_UNLINK, 4},
    {OP_UNLINKAT, 4},   {OP_RMDIR, 3},     {OP_UMASK, 3},     {OP_CHMOD, 4},     {OP_FCHMOD, 1},
    {OP_FCHMODAT, 2},   {OP_FCHMODAT2, 1}, {OP_CHDIR, 5},     {OP_FCHDIR, 2},    {OP_DUP, 2},
    {OP_FTRUNCATE, 2},  {OP_TRUNCATE, 2},  {OP_WRITE, 5},     {OP_CLOSE, 3},     {OP_FACCESSAT, 1},
    {OP_FACCESSAT2, 1}, {OP_ACCESS, 1},    {OP_UTIMENSAT, 2}, {OP_FCHOWNAT, 1},  {OP_ACL, 3},
    {OP_LIMIT, 2},      {OP_BIND, 3},
};

static enum op_kind kind(struct inventor *inventor)
{
    unsigned all = 0, at;

    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        all += weights[i].weight;
    at = below(inventor, all);
    for (size_t i = 0;; i++) {
        if (at < weights[i].weight)
            return weights[i].kind;
        at -= weights[i].weight;
    }
}

static void invent_how(struct inventor *inventor, struct op *op)
{
    static const enum how hows[] = {HOW_FORK, HOW_VFORK, HOW_THREAD, HOW_OWN, HOW_OWN};
    static const unsigned masks[] = {0, 077, 022, 027, 0777, 0200};

    /* whether a descriptor may be linked depends on who opened it: a child is somebody else */
    if (op->kind == OP_LIMIT || (op->kind == OP_LINKAT && (op->flags & AT_EMPTY_PATH)) ||
        !chance(inventor, 6))
        return;
    op->how = ONE_OF(inventor, hows);
    if (op->how == HOW_OWN) {
        snprintf(op->own_dir, sizeof op->own_dir, "%s",
                 chance(inventor, 50) ? "d" : name(inventor));
        op->own_mask = ONE_OF(inventor, masks);
    }
}

/* Not so for calls that remove: /proc is not theirs to change, and says so in another way inside. */
static void spare_proc(struct inventor *inventor, char text[PATH_TEXT])
{
    const char *end = strchr(text, '}');

    if (strncmp(text, "/proc/", 6) == 0 && (!end || strlen(end) < 3))
        snprintf(text, PATH_TEXT, "%s", name(inventor));
}

static bool is_removing(enum op_kind kind)
{
    return kind == OP_UNLINK || kind == OP_UNLINKAT || kind == OP_RMDIR || kind == OP_RENAME ||
           kind == OP_RENAMEAT || kind == OP_RENAMEAT2;
}

/* What the letters of the table do not say. */
static void invent_details(struct inventor *inventor, struct op *op)
{
    static const unsigned masks[] = {0, 022, 077, 027, 0777, 0111, 0400, 07000};
    static const unsigned rename_flags[] = {0, 0, 1, 1, 2, 2, 3, 8};

    if (op->kind == OP_SYMLINK || op->kind == OP_SYMLINKAT)
        link_text(inventor, op->paths[0]);
    if (op->kind == OP_MKNOD || op->kind == OP_MKNODAT)
        op->mode = node_type(inventor) | (op->mode & 01777);
    if (op->kind == OP_MKDIR || op->kind == OP_MKDIRAT)
        op->mode |= chance(inventor, 10) ? 06000 : 0; /* is taken away */
    if (op->kind == OP_UMASK)
        op->mode = ONE_OF(inventor, masks);
    if (op->kind == OP_ACCESS || op->kind == OP_FACCESSAT || op->kind == OP_FACCESSAT2)
        op->mode = below(inventor, 8);
    if (op->kind == OP_OPEN || op->kind == OP_OPENAT)
        op->flags = open_flags(inventor);
    if (op->kind == OP_LINKAT)
        op->flags = at_flags(inventor, chance(inventor, 70) ? AT_SYMLINK_FOLLOW : AT_EMPTY_PATH);
    if (op->kind == OP_LINKAT && chance(inventor, 25))
        snprintf(op->paths[0], PATH_TEXT, "/proc/self/fd/{f%u}", below(inventor, 4));
    if (op->kind == OP_UNLINKAT)
        op->flags = at_flags(inventor, AT_REMOVEDIR);
    if (op->kind == OP_UTIMENSAT || op->kind == OP_FCHOWNAT || op->kind == OP_FCHMODAT2 ||
        op->kind == OP_FACCESSAT2)
        op->flags = at_flags(inventor, AT_SYMLINK_NOFOLLOW);
    if (op->kind == OP_RENAMEAT2)
        op->flags = ONE_OF(inventor, rename_flags);
    for (int i = 0; i < 2 && is_removing(op->kind); i++)
        spare_proc(inventor, op->paths[i]);
    if (op_makes_descriptor(op))
        op->into = (int)below(inventor, 4);
}

static void invent_call(struct inventor *inventor, struct op *op)
{
    int paths = 0, slots = 0;

    op_init(op, kind(inventor));
    if (op->kind == OP_BIND && !inventor->wishes->has_sockets)
        op_init(op, OP_MKDIR);
    for (const char *a = signatures[op->kind].arguments; *a; a++) {
        if (*a == 'p')
            path(inventor, op->paths[paths++]);
        else if (*a == 'd')
            op->slots[slots++] = slot(inventor);
    }
    if (slots == 1 && !paths && (op->slots[0] == SLOT_CWD || chance(inventor, 50)))
        op->slots[0] = chance(inventor, 70) ? 2 : (int)below(inventor, 4);
    op->mode = mode(inventor);
    op->number = size(inventor);
    if (op->kind == OP_ACL)
        op->number = below(inventor, 32);
    if (op->kind == OP_LIMIT) {
        bool is_files = chance(inventor, 60);

        snprintf(op->paths[0], PATH_TEXT, is_files ? "files" : "size");
        op->number = is_files ? 5 + below(inventor, 4) : size(inventor);
    }
    invent_details(inventor, op);
    invent_how(inventor, op);
}

/* A thing that is there in the beginning. */
static void invent_thing(struct inventor *inventor, struct op *op, const char *called)
{
    unsigned kind = below(inventor, 100);

    op_init(op, OP_MKDIRAT);
    snprintf(op->paths[0], PATH_TEXT, "%s", called);
    op->mode = mode(inventor);
    if (kind < 38) {
        static const unsigned modes[] = {0755, 0755, 0777, 0700, 01777, 0555};

        op->mode = ONE_OF(inventor, modes);
    } else if (kind < 72) {
        op->kind = OP_MAKE;
        op->mode &= 0777;
        op->mode |= chance(inventor, 70) ? 0600 : 0;
        op->number = below(inventor, 100);
    } else if (kind < 92) {
        op->kind = OP_SYMLINKAT;
        link_text(inventor, op->paths[0]);
        snprintf(op->paths[1], PATH_TEXT, "%s", called);
    } else if (kind < 96) {
        op->kind = OP_MKNODAT;
        op->mode = (chance(inventor, 50) ? S_IFIFO : S_IFSOCK) | 0644;
    } else {
        op->kind = OP_LINKAT;
        snprintf(op->paths[0], PATH_TEXT, "%s", name(inventor));
        snprintf(op->paths[1], PATH_TEXT, "%s", called);
    }
}

static int invent_things(struct inventor *inventor, struct op *ops)
{
    static const char *const top[] = {"d", "a", "b", "c", "e", "f"};
    static const char *const lower[] = {"d/a", "d/b", "d/d", "a/b", "d/x"};
    int len = 0;

    op_init(&ops[len], OP_MKDIRAT);
    snprintf(ops[len].paths[0], PATH_TEXT, "d");
    ops[len++].mode = 0777;
    for (size_t i = 1; i < sizeof top / sizeof *top; i++)
        if (chance(inventor, 70))
            invent_thing(inventor, &ops[len++], top[i]);
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        if (chance(inventor, 40))
            invent_thing(inventor, &ops[len++], lower[i]);
    if (chance(inventor, 20)) {
        op_init(&ops[len], OP_ACL);
        snprintf(ops[len].paths[0], PATH_TEXT, chance(inventor, 60) ? "d" : ".");
        ops[len++].number = below(inventor, 8);
    }
    for (int i = 0; i < 2; i++) {
        static const char *const folders[] = {"d", "d", ".", "a", "e", "b"};

        op_init(&ops[len], OP_OPENAT);
        snprintf(ops[len].paths[0], PATH_TEXT, "%s", ONE_OF(inventor, folders));
        ops[len].flags = chance(inventor, 30) ? O_PATH : O_RDONLY;
        ops[len++].into = i;
    }
    if (chance(inventor, 60)) {
        op_init(&ops[len], OP_OPENAT);
        snprintf(ops[len].paths[0], PATH_TEXT, "%s", name(inventor));
        ops[len].flags = O_RDWR | O_CREAT | (chance(inventor, 20) ? O_APPEND : 0);
        ops[len].mode = 0666;
        ops[len++].into = 2;
    }
    return len;
}

int invent(uint64_t seed, const struct wishes *wishes, struct op ret[OPS_MAX])
{
    struct inventor inventor = {.wishes = wishes, .state = seed * 0x2545f4914f6cdd1du};
    const char *place = wishes->places[below(&inventor, (unsigned)wishes->places_len)];
    int len = 1, calls;

    op_init(&ret[0], OP_PLACE);
    snprintf(ret[0].paths[0], PATH_TEXT, "%s", place);
    inventor.may_climb = strcmp(place, "root") != 0 && strcmp(place, "shared") != 0;
    inventor.is_small = strncmp(place, "small", 5) == 0;
    len += invent_things(&inventor, ret + len);
    calls = 5 + (int)below(&inventor, 16);
    for (int i = 0; i < calls; i++)
        invent_call(&inventor, &ret[len++]);
    return len;
}
