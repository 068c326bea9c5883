/* Grant and carry on: what the sandbox refuses a command is held, and asked about as every question
 * is (approvals.h); a yes lets the call succeed, and the program notices nothing but the time.
 *
 *     held_is_wanted()                  before the command is started: process_options.asks
 *     job_set_asker(job, held_new())    once it is
 *
 * One for each job, which owns it from then on. Equal questions of the commands of one session are
 * one (their keys), and a yes for the session answers the later ones at once. While anybody is being
 * asked the clocks of the job stand still. */
#pragma once

#include "approval/approval.h"
#include "job/job.h"
#include "policy/config/approval.h"
#include "policy/profile.h"

#include <stdbool.h>
#include <stdint.h>

struct access_map;
struct approvals;
struct requirement;

enum {
    HELD_OPEN_MAX = 32, /* of one command; more are refused without a question */
};

/* Whether what is refused under this policy may be asked about: a retry in a sandbox that is wider by
 * it may be, so this may. */
bool held_may_ask(const struct approval_policy *policy);

/* The same for a command: its profile wants it (watch = "ask"), or a rule about a host that it may reach when somebody says
 * so. Whether there is anybody to ask is another matter. `access` of its sandbox; NULL: it has none. */
bool held_is_wanted(const struct access_map *access, const struct profile *profile,
                    const struct approval_policy *policy);

enum held_step {
    HELD_ASKED,    /* question */
    HELD_ANSWERED, /* question, answer; also when an answer for the session was there before */
    HELD_OVER,     /* all: the call has been let go, or waits for nothing any more */
};

/* Borrowed for the call. */
struct held_event {
    enum held_step step;
    const struct approval_request *question; /* with its id, unless nobody had to be asked */
    const struct approval_answer *answer;    /* OVER: NULL: none came, the call went away */
    uint64_t held_ns;                        /* OVER */
    bool is_done;                            /* OVER: what was asked for was done */
    const char *rule;    /* ANSWERED: that was written to the rules file; NULL: none was */
    const char *warning; /* ANSWERED: why none could be; NULL */
};

/* Who judges programs that the command executes; embedded in a larger struct. */
struct held_execs {
    /* requirement_done() is the caller's. */
    void (*judge)(struct held_execs *execs, const struct launch_fact *fact,
                  struct requirement *ret);
    /* FACT_OUTSIDE, FACT_OUTSIDE_SIGNAL */
    void (*on_outside)(struct held_execs *execs, struct job *job, const struct launch_fact *fact);
    void (*free)(struct held_execs *execs); /* kills what runs outside */
};

/* Everything else is copied, but for the approvals, which outlive the asker. */
struct held_options {
    struct approvals *approvals; /* NULL: nobody can be asked, only programs are judged */
    char *const *argv;           /* of the command, as its caller gave it */
    const char *cwd;
    int number;             /* of the session of a model that it is; 0: of none */
    const char *profile;    /* its name; NULL: the caller's own */
    char *const *own_paths; /* canonical: what no yes opens; may be NULL */
    const char *home;       /* as in struct grant_bounds */
    const char *
        rules_file; /* that a yes or no for good to a host is appended to; NULL: it is not offered */
    bool is_last;   /* of its session: nothing is worth being remembered for it */
    bool offers_unconfined; /* of a program that is judged: yes_means_unsandboxed of the policy */
    void (*on_event)(void *data, const struct held_event *event); /* may be NULL */
    /* Judges programs that the command executes; the asker's from then on, which frees it when the
     * command has ended; NULL: each may. */
    struct held_execs *execs;
    void *data;
};

/* Never NULL. */
struct job_asker *held_new(const struct held_options *options);
