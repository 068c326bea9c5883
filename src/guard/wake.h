/* On which processor the caller and the guard go on. */
#pragma once

#include "guard/guard.h"

/* A call has come: decides how callers of this command are woken. */
void wake_count(struct command *command);

/* It sets the processors of its threads by itself: from now on none of them is moved. */
void wake_leave(struct command *command);

/* A descriptor for it goes first, without SECCOMP_ADDFD_FLAG_SEND, and the answer then. */
bool wake_keeps(const struct request *request);

/* SECCOMP_IOCTL_NOTIF_ADDFD, which wakes the caller to take its descriptor. Its number, or -1 with errno. */
int wake_to_take(const struct request *request, const struct k_seccomp_notif_addfd *add);

/* A child of the guard may run wherever the guard may. */
void wake_in_child(void);
