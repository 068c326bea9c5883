/* Calls newer than the headers of Debian 12 (Linux 6.1), from scripts/syscall.tbl of Linux 6.17.
 * From 424 on, numbers are the same on every architecture. To be included behind the kernel's
 * header. */
#pragma once

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#endif
#ifndef __NR_removexattrat
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif
