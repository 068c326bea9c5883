/* The file of the tail: its lock and its first line. Internal to audit; tail.h is the interface. */
#pragma once

#include "audit/tail.h"

/* The lock that is held while anything is done with the file; it lasts as long as the descriptor.
 * Where nobody can write, nothing has to be locked: then it is one of nothing. */
int tail_file_lock(const char *folder, uint64_t wait_ns, struct err *err);

/* The file, opened, and made when `flags` has O_CREAT. */
int tail_file_open(const char *folder, int flags, struct err *err);

/* Its size; ERR_LIMIT beyond AUDIT_TAIL_MAX. */
int tail_file_size(int fd, uint64_t *ret, struct err *err);

/* The file's whole text into `ret`. */
int tail_file_read(int fd, struct buf *ret, struct err *err);

/* An empty text gives zeros, and the size of a first line. */
int tail_head_parse(const char *text, size_t len, struct audit_tail_head *ret, struct err *err);
int tail_head_read(int fd, struct audit_tail_head *ret, struct err *err);
void tail_head_format(const struct audit_tail_head *head, char ret[AUDIT_TAIL_HEAD + 1]);
int tail_head_write(int fd, const struct audit_tail_head *head, struct err *err);
