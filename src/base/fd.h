/* File descriptors: always close-on-exec, relative to a directory descriptor where others may
 * change the name, and never through a symlink unless that is wanted. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;

/* What a path names, without following a symlink in its last component. */
enum fd_kind { FD_MISSING, FD_DIR, FD_OTHER };

/* Kind of `path` relative to `dir` (AT_FDCWD for the current directory). A missing parent counts as
 * missing; any other failure is an error. */
int fd_kind_at(int dir, const char *path, enum fd_kind *ret_kind, struct err *err);

/* O_PATH descriptor of an absolute path that may hold no symlink in any component. */
int fd_open_path_strict(const char *path, struct err *err);

/* Opens a regular file for reading, whatever somebody else puts in its place: anything else is ERR_INVALID and
 * not opened at all, since opening may wait for ever (a pipe) or do something (a device). Where others have
 * a lease on it, they have a quarter of a second to give it up (EWOULDBLOCK). `path` relative to `dir`;
 * `flags`: 0 or O_NOFOLLOW, with which a link is ELOOP. */
int fd_open_file(int dir, const char *path, int flags, struct err *err);

/* The whole text of a regular file, at most `max` bytes, opened like that. */
int fd_read_file(const char *path, size_t max, struct buf *ret, struct err *err);

/* The same of what the person named, which may be a pipe, too (`--config <(...)`): that is waited for. */
int fd_read_given(const char *path, size_t max, struct buf *ret, struct err *err);

/* Makes the directory `path` (absolute) and every one above it that is missing, but never $HOME. */
int fd_make_dirs(const char *path, mode_t mode, struct err *err);

/* Reads until `size` bytes are there or the file ends; how many came, or -1 with errno. */
ssize_t fd_read_block(int fd, void *ret, size_t size);

/* Writes everything, however often write(2) stops early. */
int fd_write_all(int fd, const void *data, size_t len, struct err *err);

/* Puts a file of these bytes in the place of `path`, whole or not at all: it is written beside it, as
 * `path`.new, with the permissions of what was there (`mode` where nothing was). The caller keeps others
 * from doing the same, and gives a path that is no link. */
int fd_replace_file(const char *path, const struct buf *text, mode_t mode, struct err *err);

/* Anonymous file holding `data`, sealed against any change, offset 0. */
int fd_sealed_memory(const char *name, const void *data, size_t len, struct err *err);

/* Opens a pipe or terminal once more, to be written to without waiting: O_NONBLOCK is a property of
 * the description, which others may share. -1 with errno. */
int fd_reopen_for_writing(int fd);

int fd_set_nonblocking(int fd, bool on, struct err *err);

/* As many descriptors as this process may have. */
void fd_raise_limit(void);

/* The process has fewer left than a command in a sandbox may take, some thirty, or an eighth of what it may have. */
bool fd_are_few(void);
