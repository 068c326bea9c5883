/* What this host can do, as far as is known: optimistic at first, corrected by what launches run
 * into. One per process, because the host is the same for all sandboxes. */
#pragma once

#include "sandbox/launcher/plan_format.h"
#include "sandbox/linux/plan.h"
#include "sandbox/sandbox.h"

struct host {
    struct plan_host facts;
    const char *why;       /* what was found missing last, for people; "" when nothing was */
    struct err refusal;    /* the kernel's word on it */
    bool is_proven;        /* a sandbox with these facts stood once */
    bool has_asked;        /* and one whose filter asks the guard */
    bool has_watched;      /* and one with a watchpoint */
    bool has_counted;      /* and one whose pid namespace counts processes */
    bool has_redirected;   /* and one whose connections are redirected to the proxy */
    char no_fuse[120];     /* why there are no watchpoints, for people; "" */
    char no_listener[200]; /* why no guard can be asked, for people; "" */
    char no_redirect[120]; /* why nothing is redirected, for people; "" */
};

/* All layers, ABI read from the kernel. */
void host_init(struct host *host);

/* A set-up failed at `op` (PLAN_OP_COUNT: before the launcher ran) with `failure`. Takes the layer
 * away that this shows to be missing; false when it shows no such thing. */
bool host_step_down(struct host *host, enum plan_op op, const struct err *failure);

/* A sandbox with this plan needs nothing of the host that has not been seen to work; or has stood. */
bool host_is_proven(const struct host *host, const struct plan *plan, bool counts_pids);
void host_stood(struct host *host, const struct plan *plan, bool counts_pids);

/* A sandbox of ours with a guard may be around, and its mounts (sandbox/linux/around.c). */
bool around_has_guard(void);
bool around_holds(const char *path, bool is_denied);
bool around_writes_no_more(const struct access_map *map);

/* Nobody wants namespaces; what else the host can do is not known less by that. */
void host_forgo_namespaces(struct host *host);

/* There is no guard that could be asked, for this reason. */
void host_lose_listener(struct host *host, const char *why);

/* What this host lacks, in words; "" when it gives every layer in full. */
const char *host_degradation(const struct host *host);

/* Why something that asks is masked in this plan, in words; "" when nothing is. */
const char *host_no_watchpoint(const struct host *host, const struct plan *plan);

/* Fills the report of every layer for a plan that was compiled with these facts and wishes. */
void host_report(const struct host *host, const struct plan *plan, const struct access_map *map,
                 unsigned wishes, struct defence_report ret[DEFENCE_COUNT]);
