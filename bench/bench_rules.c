/* The decision before a command: a shell script of 200 bytes is read, each of its commands is
 * looked up among 500 rules, and the requirement comes out. Under "untrusted", which also looks at
 * what is known to be harmless. Batches, because one decision is near what the clock can tell. */
#include "bench.h"

#include "approval/requirement.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "rules/rules.h"
#include "rules/shell/command_class.h"

#include <stdlib.h>
#include <string.h>

enum { RULES = 500, BATCH = 100, BATCHES = 200, SCRIPT = 200 };

static const char script[] =
    "cd src/component && git status --short | head -n 20 && npm run build --silent && "
    "grep -rn 'some longer text' lib/module tests/unit && make -j 4 check install && "
    "cargo test --all --release --quiet xxxx";

/* As if every name were in /usr/bin: what the disk costs is not ours. */
static bool find_program(const struct program_finder *finder, const char *name, char **ret_found,
                         char **ret_real)
{
    *ret_found = alloc_strf("/usr/bin/%s", name);
    *ret_real = alloc_str(*ret_found);
    return true;
}

static struct rules *make_rules(void)
{
    AUTO(buf_done) struct buf text;
    const struct rules_origin origin = {.file = "bench.rules"};
    struct rules *rules = rules_new();
    struct err err;

    buf_init(&text, RULES_SIZE_MAX);
    for (int i = 0; i < RULES - 4; i++)
        buf_appendf(&text,
                    "prefix_rule(pattern=[\"tool%d\", [\"test\", \"check\"]], decision=\"%s\")\n",
                    i / 2, i % 3 ? "allow" : "prompt");
    buf_append_str(&text, "prefix_rule([\"npm\", \"run\", [\"build\", \"test\"]])\n"
                          "prefix_rule([\"make\"], sandbox=\"keep\")\n"
                          "prefix_rule([\"git\", \"push\"], decision=\"forbidden\")\n"
                          "prefix_rule([\"git\", \"status\"])\n");
    bench_check(rules_add_text(rules, &origin, text.data, text.len, &err), &err);
    rules_seal(rules);
    return rules;
}

static void decide(const struct rules *rules)
{
    static const struct program_finder finder = {find_program};
    char *const argv[] = {(char *)"bash", (char *)"-lc", (char *)script, NULL};
    const struct requirement_request request = {.argv = argv,
                                                .finder = &finder,
                                                .rules = rules,
                                                .policy = {.mode = APPROVAL_UNTRUSTED},
                                                .confinement = CONFINEMENT_SANDBOX};
    struct requirement requirement;

    requirement_decide(&request, &requirement);
    if (requirement.outcome != REQUIREMENT_ASK)
        bench_fail("the script is not asked about: %s", requirement.reason);
    requirement_done(&requirement);
}

void bench_rules(struct bench *bench)
{
    struct rules *rules = make_rules();
    struct sample sample = {0};

    if (sizeof script - 1 != SCRIPT)
        bench_fail("the script has %zu bytes", sizeof script - 1);
    for (int batch = 0; batch < (bench_is_quick(bench) ? BATCHES / 10 : BATCHES); batch++) {
        uint64_t start = clock_now_ns();

        for (int i = 0; i < BATCH; i++)
            decide(rules);
        sample_add(&sample, (double)(clock_now_ns() - start) / (1000.0 * BATCH));
    }
    report_add_sample(&bench->report,
                      &(struct figure){.name = "decision: 200-byte script, 500 rules",
                                       .unit = "us",
                                       .goal = GOAL_AT_MOST,
                                       .target = 50},
                      &sample);
    sample_done(&sample);
    rules_free(rules);
}
