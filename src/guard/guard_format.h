/* What goes between the guard (cordon-guard, a program of its own), the host that starts it
 * (sandbox/linux/guard_link.c) and the launcher. They are built together, so there is no
 * versioning beyond a number that has to match.
 *
 *     host     -> guard   over GUARD_CONTROL_FD (SOCK_SEQPACKET): one packet for each command,
 *                         struct guard_hello, with the descriptors of enum guard_descriptor
 *     launcher -> guard   over the command's channel (SOCK_SEQPACKET, an end of which the guard got
 *                         with the hello): struct guard_order with each watchpoint, and at last with
 *                         the listener of the seccomp filter
 *     host     -> guard   over the same channel: struct guard_order, such as the answer to a question
 *     guard    -> host    over the same channel: struct guard_fact, one a packet, and at last
 *                         struct guard_fact with kind GUARD_FACT_END
 *
 * When the guard ends, the kernel answers every call that it is asked about with ENOSYS; when the
 * host closes the channel, the guard lets go of that command.
 *
 * The map is a sealed anonymous file, the same for all commands of a sandbox:
 *
 *     struct guard_map
 *     struct guard_entry[entries]     in the order of the access map, whose index names an entry
 *     uint32_t own[own]               offsets of paths that belong to Cordon: no yes opens them; and of names,
 *                                     without a slash, that a yes to their directory does not cover
 *     char strings[strings]           NUL-terminated; offset 0 is the empty string
 */
#pragma once

#include <stdint.h>

#define GUARD_PROGRAM "cordon-guard"

enum {
    GUARD_MAGIC = 0x44524743,
    GUARD_VERSION = 8,
    GUARD_CONTROL_FD = 3,
    GUARD_MAX_BYTES = 16 << 20, /* of a map */
    GUARD_MAX_ENTRIES = 65536,
};

/* OUTSIDE comes where the command sees the mounts of a layer: their root (O_PATH), which is what lies outside of its sandbox. */
enum guard_descriptor { GUARD_FD_CHANNEL, GUARD_FD_MAP, GUARD_FD_OUTSIDE, GUARD_FDS };

enum guard_hello_flag {
    GUARD_HELLO_ASKS = 1, /* somebody answers: hold what is refused and may be asked about */
    GUARD_HELLO_TRACES_FILES = 2,   /* tell what is done, too: what is written and named */
    GUARD_HELLO_TRACES_NETWORK = 4, /* and where it connects and binds */
    GUARD_HELLO_OUTSIDE = 8,        /* GUARD_FD_OUTSIDE comes, too */
};

struct guard_hello {
    uint32_t magic;
    uint32_t version;
    uint32_t flags; /* enum guard_hello_flag */
};

enum guard_order_kind {
    GUARD_ORDER_LISTENER, /* of the launcher, with one descriptor */
    GUARD_ORDER_ANSWER,   /* to the question `id` */
    GUARD_ORDER_EXIT, /* what ran outside for the exec `id` ended with the wait status `number` */
    GUARD_ORDER_WATCHPOINT, /* of the launcher, with enum guard_watchpoint_descriptor: at the entry
                               `number` of the map there is a FUSE file system to be answered for */
};

enum guard_watchpoint_descriptor {
    GUARD_WATCHPOINT_FUSE,  /* /dev/fuse */
    GUARD_WATCHPOINT_USERS, /* the namespaces of the command: user, mount and pid */
    GUARD_WATCHPOINT_MOUNTS,
    GUARD_WATCHPOINT_PROCESSES,
    GUARD_WATCHPOINT_FDS
};

enum { GUARD_WATCHPOINTS_MAX = 32 }; /* of one command */

enum guard_verdict {
    GUARD_NO,
    GUARD_YES,     /* for this call, and for all that it covers while the command runs */
    GUARD_OUTSIDE, /* of an exec: it happens outside, and the caller waits for its end */
    GUARD_STOP,    /* no, and the caller gets SIGTERM before it hears that */
};

struct guard_order {
    uint32_t magic;
    uint32_t kind;
    uint64_t id;
    uint32_t verdict; /* enum guard_verdict */
    uint32_t number;
    uint32_t mode; /* WATCHPOINT: of what is there */
    uint32_t reserved;
};

/* As enum access and enum access_kind of policy/access.h. */
enum guard_access { GUARD_DENY, GUARD_READ, GUARD_WRITE };
enum guard_kind { GUARD_MISSING, GUARD_DIR, GUARD_FILE };

enum guard_entry_flag {
    /* On a writable directory: the kernel refuses creation at and below it (the guard does it), and
     * it may not become a git repository. */
    GUARD_ENTRY_ROOT = 1,
    /* Narrower than what is around it, and missing (or covered by no mount): nothing may be created at
     * this path. */
    GUARD_ENTRY_HELD_NAME = 2,
    /* Unix sockets at and below it may be connected to. */
    GUARD_ENTRY_SOCKETS = 4,
    /* A git directory, which the kernel refuses to change: what git writes in it is done. One that is
     * missing may be made. */
    GUARD_ENTRY_GIT = 8,
    /* On a GUARD_ENTRY_ROOT: the kernel refuses to write, too, what is there at and below it. */
    GUARD_ENTRY_ASKED = 16,
    /* What is there may be removed, although it may not be written. */
    GUARD_ENTRY_REMOVABLE = 32,
};

struct guard_entry {
    uint32_t path;
    uint8_t access;
    uint8_t kind;
    uint16_t flags;
};

/* mkdirat(2) with this mode and no path (as AT_FDCWD it says by EPERM that there is a guard, and no more): from now on the processes below the caller's parent, the launcher of a sandbox that is
 * made within, may have written on behalf what the map that is open as `dir` lets be written (-1: nothing). EPERM: they
 * cannot be kept to that. What the kernel says where there is no guard is EFAULT, EBADF or ENOTDIR. */
#define GUARD_NESTED_MODE 0x7473656eu

enum guard_map_flag {
    GUARD_MAP_RESTRICTED = 1,   /* what no entry is about is denied, else writable */
    GUARD_MAP_FACTS = 2,        /* tell what is refused */
    GUARD_MAP_SOCKETS = 4,      /* connect and bind are done here: Unix sockets by what they are */
    GUARD_MAP_NESTED = 8,       /* the command may make namespaces: its root is not always ours */
    GUARD_MAP_NO_LANDLOCK = 16, /* the kernel would allow creation: never let one go on */
    GUARD_MAP_EXEC = 64,        /* tell what is executed, and how it ends */
    GUARD_MAP_JUDGE = 128,      /* and ask before it is */
    GUARD_MAP_OWN_MOUNTS = 32,  /* in a mount namespace, where each topmost root is a mount */
    GUARD_MAP_ALONE = 256,      /* nothing is mounted: what is written in a root is done here */
    GUARD_MAP_PROXIED = 512,    /* the network leads to the proxy: tell who connects */
    GUARD_MAP_SHARED = 1024,    /* the network is the host's, and so are its abstract sockets */
    GUARD_MAP_LED = 2048, /* PROXIED, and nothing redirects connections: lead them to the proxy */
};

enum { GUARD_HOST_PORTS_MAX = 64 };

struct guard_map {
    uint32_t magic;
    uint32_t version;
    uint32_t bytes; /* of the whole file */
    uint32_t flags; /* enum guard_map_flag */
    uint32_t entries;
    uint32_t own;
    uint32_t strings; /* bytes */
    uint32_t host_ports_len;
    uint16_t
        host_ports[GUARD_HOST_PORTS_MAX]; /* LED: to these of localhost connections are led, too */
};

enum guard_operation {
    GUARD_OP_WRITE,  /* a file or directory that is there: opened for writing, changed, removed */
    GUARD_OP_CREATE, /* a new name */
    GUARD_OP_EXECUTE,
    GUARD_OP_CONNECT,
    GUARD_OP_BIND,
    GUARD_OP_SIGNAL,
    GUARD_OP_READ, /* of what an entry with a watchpoint denies */
};

enum guard_fact_kind {
    GUARD_FACT_DENIED = 1,
    GUARD_FACT_MORE,  /* `count` more of the same operation in the directory `path`, not told apart;
                        "": in others */
    GUARD_FACT_END,   /* no process of the command is left; nothing follows */
    GUARD_FACT_ASKED, /* a call is held until the question `id` is answered */
    GUARD_FACT_WITHDRAWN, /* nobody waits for the answer to the question `id` any more */
    GUARD_FACT_DONE,      /* allowed and seen: for the timeline */
    GUARD_FACT_EXEC,      /* with id: a program is executed; without: `count` more were, untold */
    GUARD_FACT_EXIT,      /* the process whose last exec was `id` ended: `number` */
    GUARD_FACT_OUTSIDE, /* the caller of exec `id` waits for GUARD_ORDER_EXIT. With the descriptors
                             0, 1, 2 of it that are open: GUARD_FLAG_STDIO */
    GUARD_FACT_SIGNAL,  /* what runs outside for `id` is to get the signal `number` */
    GUARD_FACT_LOST,    /* `count` of what was done was not told: the host did not read in time */
    GUARD_FACT_CALLER, /* GUARD_MAP_PROXIED: a connection is about to be made to `address` and the port `number`; or,
                           with an `address` of zero, one was made from the own port `number` (by UDP, or on
                           loopback, where no port is used twice) */
};

enum guard_fact_flag {
    GUARD_FLAG_TRUNCATED = 1, /* the arguments go on */
    GUARD_FLAG_STDIO = 2,     /* shifted by 0, 1 or 2: that descriptor comes along */
};

enum {
    GUARD_NO_ENTRY = -1,
    GUARD_NO_STATUS = -1,
    GUARD_COMM = 16,
    GUARD_ARGV_MAX = 65536, /* bytes of arguments that are read */
    GUARD_TEXT = 8192 + GUARD_ARGV_MAX,
};

/* Something that the guard has seen: refused, to be asked about, or done. A packet is this struct up
 * to the end of its strings: path, the second path (of a rename or link; of an exec the working
 * directory), and `argc` arguments, NUL-terminated each, "" when there is none. A question about files
 * has what a yes covers of the two (sandbox/sandbox.h) in place of arguments. For a connect the path
 * is "host:port" ("[host]:port" for IPv6), or the path of the socket ("@name": abstract). */
struct guard_fact {
    uint32_t kind;
    uint32_t operation;
    int32_t entry; /* index of the deciding entry in the map; GUARD_NO_ENTRY */
    int32_t error; /* errno that the call has had or, as the kernel gave it, most likely had */
    uint32_t call; /* number of the system call */
    int32_t pid;   /* of the process, as the host sees it */
    uint32_t count;
    uint32_t is_socket; /* CONNECT, BIND: by path */
    uint64_t time_ns;   /* CLOCK_MONOTONIC */
    uint64_t id;        /* of a question or exec, which share their numbers; from 1 on */
    uint64_t parent;    /* of an exec: the exec of the process before, or above; 0 */
    uint32_t argc;
    uint32_t flags; /* enum guard_fact_flag */
    int32_t number; /* EXIT: wait status, GUARD_NO_STATUS when it cannot be told; SIGNAL; CALLER */
    uint8_t address[16]; /* CALLER: IPv4 as ::ffff:a.b.c.d */
    char program[GUARD_COMM];
    char strings[GUARD_TEXT];
};

/* Where clients connect to that know of the proxy: PROXY_PORT. GUARD_MAP_LED: so do all others, each at the address that is
 * meant, and the guard sends ahead what PROXY_LED says. */
enum { GUARD_PROXY_PORT = 1008, GUARD_LED = 0, GUARD_LED_BYTES = 3 };

enum { GUARD_FACTS_MAX = 64 }; /* told one by one; what comes after is counted by directory */
