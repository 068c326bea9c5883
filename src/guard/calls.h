/* Which system calls the guard is asked about, and where their arguments are. Pure. */
#pragma once

enum call_kind {
    CALL_OPEN,
    CALL_MKDIR,
    CALL_MKNOD,
    CALL_SYMLINK,
    CALL_LINK,
    CALL_RENAME,
    CALL_CHANGE, /* of what is there: removed, its mode, owner, times or size set */
    CALL_ACCESS,
    /* not about files */
    CALL_UMASK,
    CALL_CHDIR,
    CALL_AFFINITY, /* of any thread, its processors are set */
    CALL_SOCKET,
    CALL_CONNECT,
    CALL_BIND,
    CALL_SEND, /* to an address */
    CALL_SIGNAL,
    CALL_EXEC, /* its arguments come right behind the path */
};

/* As a case of a switch over calls about files. */
#define CALLS_OF_NO_FILE CALL_UMASK... CALL_EXEC

enum { CALL_NONE = -1 };

/* Numbers of arguments, CALL_NONE for those that the call has not. Without a directory argument a
 * path is relative to the working directory; without a path, what it is about is open as `dir`. A symlink has its text as `path` and the new name as
 * `new_path`. */
struct call {
    int nr;
    enum call_kind kind;
    signed char dir, path;
    signed char new_dir, new_path;
    signed char flags, mode;
    int fixed_flags; /* where there is no flags argument: what the call means by itself */
};

/* NULL for one that we know nothing of. */
const struct call *call_find(int nr);
