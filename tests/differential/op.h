/* One step of a sequence, and how it is written in one line:
 *
 *     [HOW] CALL ARGUMENT... [> fdN] [! ERRNO]
 *
 * The generator writes such lines, a person reduces them, the table of errors is made of them. What
 * can stand in a path: {B} the folder that is played in, {n255} a name of so many letters, {P4095}
 * "./" repeated until the whole path has that length, {f3} the number of descriptor fd3. NULL, BAD
 * and EDGE are pointers to nothing, and to a text that runs into memory that is not there.
 *
 * HOW is fork, vfork, thread (which shares all) or own "DIR" UMASK: a thread with a working
 * directory and a umask of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 8, PATH_TEXT = 96, LINE = 512 };

/* Descriptor arguments that are no slot. */
enum { SLOT_CWD = -100, SLOT_MINUS_ONE = -1, SLOT_CLOSED = 999 };

enum how { HOW_PLAIN, HOW_FORK, HOW_VFORK, HOW_THREAD, HOW_OWN, HOWS };

enum op_kind {
    OP_PLACE, /* where the sequence plays; first line */
    OP_MAKE,  /* a file with content: three calls that have to work, for setting up */
    OP_LIMIT,
    OP_BIND,
    OP_OPENAT,
    OP_MKDIRAT,
    OP_MKNODAT,
    OP_SYMLINKAT,
    OP_LINKAT,
    OP_RENAMEAT2,
    OP_UNLINKAT,
    OP_UMASK,
    OP_FCHMOD,
    OP_FCHMODAT,
    OP_FCHMODAT2,
    OP_CHDIR,
    OP_FCHDIR,
    OP_DUP,
    OP_FTRUNCATE,
    OP_TRUNCATE,
    OP_WRITE,
    OP_CLOSE,
    OP_FACCESSAT,
    OP_FACCESSAT2,
    OP_UTIMENSAT,
    OP_FCHOWNAT,
    OP_ACL,
    OP_RENAMEAT,
    OP_OPEN, /* from here on: what newer architectures lack */
    OP_CREAT,
    OP_MKDIR,
    OP_MKNOD,
    OP_SYMLINK,
    OP_LINK,
    OP_RENAME,
    OP_UNLINK,
    OP_RMDIR,
    OP_CHMOD,
    OP_ACCESS,
    OP_KINDS
};

struct op {
    enum op_kind kind;
    enum how how;
    int slots[2]; /* descriptor arguments in their order */
    char paths[2][PATH_TEXT];
    unsigned flags, mode;
    long number;
    int into; /* slot of the result; -1 */
    char own_dir[PATH_TEXT];
    unsigned own_mask;
    int expected; /* errno, 0; -1 when any will do */
};

/* One letter for each argument, in the order of the call's own:
 *     d descriptor   p path   m mode   n number
 *     o open flags   a AT_ flags   r rename flags   t type and mode of a node
 *     and, which are not written: z zero, u own uid, g own gid, w data of `number` bytes */
struct signature {
    const char *name;
    long nr; /* of the system call; -1: not one call */
    const char *arguments;
};

extern const struct signature signatures[OP_KINDS];

void op_init(struct op *op, enum op_kind kind);
/* Without a line feed. */
void op_format(const struct op *op, char ret[LINE]);
bool op_parse(const char *line, struct op *ret);
bool op_is_here(enum op_kind kind);
/* Its result is a descriptor. */
bool op_makes_descriptor(const struct op *op);
const char *error_name(int error);
