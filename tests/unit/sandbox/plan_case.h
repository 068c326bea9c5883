/* A case of tests/cases/plan: what a plan is compiled from. All members have a default.
 *
 *     { "about": "what the case is for",
 *       "namespaces": "all" | "no-user" | "none",          of the host
 *       "root": false, "proc": true, "landlock": 7, "arch": "x86_64" | "aarch64",
 *       "procReadOnly": ["/proc/sys"],
 *       "listener": true, "redirect": true, "children": ["/work/src", "/work/src/a"],    directories that are there
 *       "restricted": true, "network": "restricted" | "proxied" | "enabled", "nested": false,
 *       "facts": true,
 *       "entries": ["read /", "write /work", "read /work/.git missing", "deny /work/.env file",
 *                   "read /work/.codex dir protected"],
 *       "links": ["/bin -> usr/bin"] }
 */
#pragma once

#include "base/strv.h"
#include "sandbox/linux/plan.h"

struct plan_case {
    struct access_map map;
    struct plan_host host;
    unsigned wishes; /* enum plan_wish */
    struct strv proc_read_only;
};

/* The whole program ends when the file is not as described. */
void plan_case_load(struct plan_case *ret, const char *path);
void plan_case_done(struct plan_case *plan_case);
