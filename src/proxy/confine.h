/* What the program keeps once it is set up: nothing of the disk but /etc to read, and the system calls that it makes. */
#pragma once

#include "base/err.h"

/* Layers that the kernel lacks are left out: the program is unprivileged without them, too. */
int confine(struct err *err);
