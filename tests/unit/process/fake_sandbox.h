/* A double of src/sandbox/sandbox.h: the same interface, plain fork and exec, no layers. */
#pragma once

#include "sandbox/sandbox.h"

enum { FAKE_ANSWERS_MAX = 64 };

struct fake_answer {
    uint64_t id;
    enum launch_verdict verdict;
};

/* What the next launches do. Zeroed: as the real one does. */
struct fake {
    bool leaves_children; /* what the command started lives on, as without a pid namespace */
    bool refuses;         /* sandbox_new() fails */
    bool fails;           /* sandbox_launch() itself fails */
    bool breaks_setup;    /* the launcher reports LAUNCH_FAILED, stage sandbox */
    bool dies_early;      /* the launcher dies without a word */
    bool is_degraded;
    bool has_guard;  /* which tells `facts`, all of them at once */
    bool is_silent;  /* or is not asked to tell any */
    bool guard_dies; /* once it has told them */
    const struct launch_fact *facts;
    size_t facts_len;
    size_t facts_told; /* counted, of the last launch */
    int facts_fd;      /* of the last launch; readable when there are some */
    struct fake_answer answers[FAKE_ANSWERS_MAX]; /* of launch_answer() */
    size_t answers_len;
    unsigned launches;            /* counted */
    unsigned done;                /* counted: launch_done() of a real launch */
    pid_t init;                   /* of the last launch */
    struct launch_limits limits;  /* of the last launch */
    struct resource_limits asked; /* sandbox_limits() */
};

extern struct fake fake;

/* The guard of the last launch tells these now; borrowed until they were read. */
void fake_tell(const struct launch_fact *facts, size_t len);

struct sandbox *fake_sandbox(void); /* one that needs no sandbox_new() */
