/* What `cordon doctor` knows about this machine, as far as it explains why a layer of the sandbox is
 * missing, and what it advises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct defence_report;
struct layer_trial;

/* --- facts: files are only looked at; whether a layer works is tried elsewhere --- */

/* A switch of the kernel: its value, or that this kernel has no such switch. */
#define HOST_FACT_MISSING INT64_C(-1)

struct host_facts {
    bool is_root;
    bool is_wsl1;                      /* Windows' first Linux: a kernel without namespaces */
    bool has_systemd;                  /* as the init */
    bool is_chroot;                    /* / is no mount point */
    bool is_filtered;                  /* by seccomp: in a container, or another sandbox */
    int64_t apparmor_restricts_userns; /* kernel.apparmor_restrict_unprivileged_userns */
    int64_t userns_clone;              /* kernel.unprivileged_userns_clone (Debian's) */
    int64_t max_user_namespaces;       /* user.max_user_namespaces */
    int landlock_abi;                  /* 0: none */
    int landlock_error;                /* errno value of asking for it; 0 when there is one */
    char container[32];                /* "docker", "podman", ...; "" outside of one */
    char lsm[256];                     /* the kernel's active security modules: "capability,..." */
    char release[72];                  /* uname -r */
    char program[256];                 /* path of this program */
};

/* `root` goes in front of every file name: "" is this machine. */
void host_facts_read(const char *root, struct host_facts *ret);

/* --- remedies: facts in, texts out --- */

struct remedy {
    const char *finding; /* one word, by which docs/troubleshooting.md has it; static */
    const char *about;   /* a layer's name, or "limits"; static */
    char *cause;         /* one sentence */
    char *how;           /* lines to type or to put somewhere; "" when there is nothing to do */
};

struct remedies {
    struct remedy *items; /* owned */
    size_t len;
    size_t cap;
};

void remedies_done(struct remedies *remedies);

/* For the layers (DEFENCE_COUNT reports) that are partial or absent though needed. Those with one
 * cause in common get one remedy. */
void remedies_find(const struct host_facts *facts, const struct defence_report *layers,
                   struct remedies *ret);

/* For change layers over `dir`: where they cannot be had, and where they could be had better. */
void remedies_add_layers(const struct layer_trial *trial, const char *dir, struct remedies *ret);

/* For limits without a cgroup; `reason` is why there is none. */
void remedies_add_cgroup(const struct host_facts *facts, const char *reason, struct remedies *ret);
