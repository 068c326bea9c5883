/* The plan: what has to be done on Linux to enforce an access map, as an ordered list of typed
 * operations. Pure: an access map and facts about the host go in, a value comes out; `explain`
 * prints it, golden files pin it, the launcher carries it out. */
#pragma once

#include "base/buf.h"
#include "policy/access.h"
#include "sandbox/launcher/plan_format.h"
#include "sandbox/linux/seccomp.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct strv;

/* What the compiler has to know of the host. */
struct plan_host {
    uint32_t namespaces; /* CLONE_NEW* flags that can be had; 0 when there is no mount namespace */
    bool is_root;        /* the command's user id is the host's root: sysctl files look writable */
    bool counts_pids;    /* pid_max belongs to the pid namespace of who writes it */
    bool has_proc;       /* a /proc of our own can be mounted in a pid namespace of our own */
    int landlock;        /* ABI, 0 without */
    enum seccomp_arch arch;
    bool has_listener; /* a filter can ask the guard */
    bool has_redirect; /* nf_tables redirects connections in a network of ours */
    bool has_around;   /* without one: that of a sandbox around this one keeps to a map of ours */
    /* The sandbox around keeps what is there as it is: unreadable, or read-only with all that is below. NULL: none does. */
    bool (*is_held)(const char *path, bool is_denied);
    /* All that may be written here at all is within what the map lets be written. */
    bool (*writes_no_more)(const struct access_map *map);
    bool has_fuse; /* /dev/fuse can be opened, and mounted in a namespace of ours */
    /* Adds the names of the directories in `dir`, without symlinks: wanted without a listener. */
    void (*list_dirs)(const char *dir, struct strv *ret);
    void (*list_files)(const char *dir, struct strv *ret); /* what is no directory: PLAN_ALONE */
    const char *const
        *layers; /* NULL-terminated: what the overlays of a layer lie over; NULL: there is none */
    const char *const
        *proc_read_only;            /* NULL-terminated: which of plan_proc_writable exist; root */
    const char *const *proc_masked; /* the same of plan_proc_secret */
};

/* What root could write, or read, in a fresh /proc without any capability, and must not;
 * NULL-terminated. */
extern const char *const plan_proc_writable[];
extern const char *const plan_proc_secret[];

struct plan {
    struct plan_record *records;
    size_t len;
    size_t cap;
    struct buf strings;
    struct plan_filter filters[SECCOMP_MAX];
    size_t filters_len;
    uint32_t namespaces;
    bool asks_guard;   /* the filter has a listener */
    bool tells_around; /* the guard around is told the map */
    bool
        redirects; /* connections to the proxy; where the network leads there, else the guard does */
    uint32_t guard_flags;      /* enum guard_map_flag, for the map that the guard gets */
    unsigned watchpoints;      /* places whose readers the guard asks about */
    const char *no_watchpoint; /* why (the first of) the others that ask are masked; static. NULL:
                                  none is; "": the host has no FUSE */
};

enum plan_wish {
    PLAN_NESTED_NAMESPACES = 1, /* the command may make namespaces of its own */
    PLAN_FACTS = 2,             /* what is refused is to be told */
    PLAN_EXEC = 4,              /* and what is executed */
    PLAN_JUDGE = 8,             /* somebody judges what is executed */
    PLAN_READS = 16,            /* with PLAN_FACTS: and what is opened to be read */
    PLAN_DESCRIPTORS = 32,      /* with PLAN_FACTS: and what is changed by a descriptor */
    PLAN_ALONE =
        64, /* the host gives no namespaces, and Landlock and the guard are to do by themselves */
};

/* `wishes` are of enum plan_wish. ERR_UNSUPPORTED when the host's layers cannot express the map: the
 * message says what, why and what to do. The result is freed with plan_free(). */
struct plan *plan_compile(const struct access_map *map, const struct plan_host *host,
                          unsigned wishes, struct err *err);

/* The layers of the host can express the map; else ERR_UNSUPPORTED, as of plan_compile(). */
int plan_check(const struct access_map *map, const struct plan_host *host, unsigned wishes,
               struct err *err);

/* A guard could do something for a plan of these wishes: keep names from being made, let Unix sockets
 * through, tell facts. */
bool plan_wants_guard(const struct access_map *map, uint32_t namespaces, unsigned wishes);

/* The guard leads the connections to the proxy, because nothing redirects them. */
bool plan_is_led(const struct access_map *map, const struct plan_host *host);

/* Something is to be held that only the guard can, because nothing is mounted. */
bool plan_needs_guard(const struct access_map *map, unsigned wishes);

/* Sets in `spec`, of which the rest is there, what the guard is asked about. */
void plan_ask_guard(const struct access_map *map, const struct plan_host *host, unsigned wishes,
                    struct seccomp_spec *spec);

/* A plan without any operation. */
struct plan *plan_new(void);

void plan_free(struct plan *plan);

/* One operation a line, e.g. "read-only /work/.git". */
void plan_print(const struct plan *plan, struct buf *ret);

/* [{"op": "hold", "path": "/work", "slot": 0}, ...]; a new reference. */
json_t *plan_to_json(const struct plan *plan);

const char *plan_op_name(enum plan_op op);

/* The command that a plan is to be carried out for. */
struct plan_command {
    char *const *argv;
    char *const *env;
    const char *program; /* NULL: argv[0] is looked up */
    const char *cwd;
    uint32_t flags;                   /* enum plan_command_flag */
    const struct plan_record *limits; /* PLAN_LIMIT records */
    size_t limits_len;
};

/* Writes the launcher's file: plan and command. ERR_LIMIT when it is too large for it. */
int plan_encode(const struct plan *plan, const struct plan_command *command, struct buf *ret,
                struct err *err);
