/* The seccomp filter of a sandbox, as classic BPF. Pure: the same input gives the same program on
 * every host, so tests run the programs of all architectures.
 *
 * Written by hand rather than with libseccomp (docs/decisions/0004-seccomp-by-hand.md): it has to
 * compare the low 32 bits of an argument against ranges and masks, which libseccomp cannot say,
 * and the kernel's cost of loading a filter grows with its length, for every command. */
#pragma once

#include "sandbox/launcher/plan_format.h"

#include <stdbool.h>
#include <stddef.h>

enum seccomp_arch { SECCOMP_X86_64, SECCOMP_AARCH64, SECCOMP_ARCH_COUNT };

/* The architecture this was compiled for. */
enum seccomp_arch seccomp_native(void);

enum seccomp_sockets {
    SECCOMP_SOCKETS_NONE,     /* no network namespace to hold them: only socketpair(2) */
    SECCOMP_SOCKETS_INTERNET, /* in a network of its own: IPv4, IPv6, netlink of routes and sockets */
    SECCOMP_SOCKETS_SHARED,   /* in the host's: IPv4, IPv6, netlink of routes */
    SECCOMP_SOCKETS_UNIX,     /* and Unix sockets */
};

struct seccomp_spec {
    enum seccomp_arch arch;
    enum seccomp_sockets sockets;
    bool has_pid_namespace;       /* without one, reaching into other processes is refused */
    bool has_mount_namespace;     /* without one, changing modes, owners and times is refused */
    bool has_ipc_namespace;       /* without one, System V and POSIX message IPC is refused */
    bool is_root;                 /* no set-group-id files either */
    bool allow_nested_namespaces; /* and the mount calls that they are for */
    bool asks_names;              /* the guard is asked when a name is to be made */
    bool asks_facts;              /* and whenever something is to be changed */
    bool asks_reads;              /* with asks_facts: and whenever something is opened */
    bool asks_descriptors;        /* with asks_facts: and what is changed may be a descriptor's */
    bool asks_signals;            /* and before another process is signalled */
    bool asks_exec;               /* and before a program is executed */
    bool asks_sockets;   /* and about Unix sockets, where they are not simply allowed or not */
    bool asks_datagrams; /* with asks_sockets: and about what names where it is sent to */
    bool
        performs; /* without a mount namespace: the guard changes modes, owners and times. With asks_names,
                      asks_facts and asks_descriptors */
};

enum { SECCOMP_MAX = 256 }; /* instructions; jumps are 8 bits wide */

/* Fills `ret` and returns the number of instructions. */
size_t seccomp_compile(const struct seccomp_spec *spec, struct plan_filter ret[SECCOMP_MAX]);
