/* The files that one connection holds open: names of the client's for descriptors of ours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct file_handles;

enum { FILE_HANDLES_MAX = 128, FILE_HANDLE_ID_MAX = 32 }; /* spec/exec-server.md 8 */

struct file_handles *file_handles_new(void);
void file_handles_free(struct file_handles *handles); /* closes all */

size_t file_handles_count(const struct file_handles *handles);
int file_handles_find(const struct file_handles *handles, const char *id);   /* -1: none */
void file_handles_add(struct file_handles *handles, const char *id, int fd); /* takes `fd` */
void file_handles_close(struct file_handles *handles, const char *id);       /* none is fine */
