/* rules_cache: files that nobody has changed are read once, and a change counts for the next
 * command. */
#include "../base/support.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "rules/rules.h"
#include "rules/shell/command_view.h"
#include "server/rules_cache.h"
#include "workspace/rule_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct {
    char *folder; /* the config folder */
    char *rules;
    struct rule_owner owner;
    struct rules_cache cache;
} scene;

static int setup(void **state)
{
    scene.folder = support_scratch_new();
    scene.rules = alloc_strf("%s/" RULES_DIR, scene.folder);
    assert_int_equal(mkdir(scene.rules, 0700), 0);
    scene.owner = (struct rule_owner){.dir = scene.folder, .home = scene.folder};
    clock_freeze(0, clock_wall_ns() + 3600 * CLOCK_NS_PER_S); /* the files are old */
    return 0;
}

static int teardown(void **state)
{
    clock_release();
    rules_cache_done(&scene.cache);
    support_scratch_remove(scene.folder);
    free(scene.rules);
    return 0;
}

static void forbid(const char *file, const char *program)
{
    AUTO_FREE char *text =
        alloc_strf("prefix_rule(pattern=[\"%s\"], decision=\"forbidden\")\n", program);

    support_write(scene.rules, file, text);
}

static const struct rules *get(void)
{
    return rules_cache_get(&scene.cache, &scene.owner, "/");
}

static enum rule_verdict verdict(const char *program)
{
    AUTO(command_view_done) struct command_view view;
    AUTO(rules_decision_done) struct rules_decision decision;

    command_view_make((char *const[]){(char *)program, NULL}, &view);
    rules_decide(get(), &view.commands.items[0], &decision);
    return decision.verdict;
}

static void what_has_not_changed_is_kept(void **state)
{
    const struct rules *first;

    forbid("a.rules", "a");
    first = get();
    assert_true(scene.cache.is_settled);
    assert_ptr_equal(get(), first);
    assert_int_equal(verdict("a"), RULE_FORBIDDEN);
    assert_int_equal(verdict("b"), RULE_NONE);
}

static void every_change_counts(void **state)
{
    AUTO_FREE char *a = alloc_strf("%s/a.rules", scene.rules);
    AUTO_FREE char *b = alloc_strf("%s/b.rules", scene.rules);
    AUTO_FREE char *other = alloc_strf("%s/other", scene.rules);

    assert_int_equal(verdict("a"), RULE_NONE);
    forbid("a.rules", "a"); /* a new file */
    assert_int_equal(verdict("a"), RULE_FORBIDDEN);
    forbid("a.rules", "longer"); /* another text */
    assert_int_equal(verdict("a"), RULE_NONE);
    assert_int_equal(verdict("longer"), RULE_FORBIDDEN);
    forbid("other", "others"); /* of the same length, in its place */
    assert_int_equal(rename(other, a), 0);
    assert_int_equal(verdict("longer"), RULE_NONE);
    assert_int_equal(verdict("others"), RULE_FORBIDDEN);
    assert_int_equal(rename(a, b), 0); /* another name */
    assert_int_equal(verdict("others"), RULE_FORBIDDEN);
    assert_int_equal(remove(b), 0);
    assert_int_equal(verdict("others"), RULE_NONE);
}

/* A second change in the same tick of the clock would not show. */
static void what_was_changed_just_now_is_not_kept(void **state)
{
    clock_release();
    forbid("a.rules", "a");
    assert_int_equal(verdict("a"), RULE_FORBIDDEN);
    assert_false(scene.cache.is_settled);
}

static void what_is_broken_is_not_kept(void **state)
{
    support_write(scene.rules, "a.rules", "nonsense(\n");
    assert_int_equal(verdict("a"), RULE_PROMPT);
    assert_false(scene.cache.is_settled);
    forbid("a.rules", "b");
    assert_int_equal(verdict("a"), RULE_NONE);
    assert_true(scene.cache.is_settled);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(what_has_not_changed_is_kept),
        SCENE(every_change_counts),
        SCENE(what_was_changed_just_now_is_not_kept),
        SCENE(what_is_broken_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
