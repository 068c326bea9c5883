/* pruning: which job has to go (tests/cases/job/pruning).
 *
 *     capacity
 *     jobs   oldest first: {name, used, exited, busy}, `used` in seconds; or {count: n} for
 * that many that are alive and idle, each used a second after the one before it insert     when the
 * new one was used, in seconds pushed     name of the one that has to go; absent: nobody count
 * jobs after that */
#include "output_cases.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "job/job_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake {
    char name[32];
    bool is_busy;
    int id;
};

struct scene {
    struct job_table *table;
    struct fake fakes[200];
    size_t len;
    uint64_t now_s;
};

static bool is_busy(void *data, void *job)
{
    return ((const struct fake *)job)->is_busy;
}

static struct job_table_pushed put(struct scene *scene, const char *name, uint64_t used_s)
{
    struct fake *fake = &scene->fakes[scene->len++];
    struct job_table_pushed pushed;
    struct err err;

    assert_true(scene->len <= 200);
    snprintf(fake->name, sizeof fake->name, "%s", name);
    assert_int_equal(job_table_reserve(scene->table, &fake->id, &err), 0);
    job_table_insert(
        scene->table,
        &(struct job_table_entry){.id = fake->id, .job = fake, .used_ns = used_s * CLOCK_NS_PER_S},
        &pushed);
    scene->now_s = used_s;
    return pushed;
}

static void put_case(struct scene *scene, const json_t *job)
{
    static const char *const keys[] = {"name", "used", "exited", "busy", "count", "touched", NULL};

    case_check_keys(job, keys);
    if (json_object_get(job, "count")) {
        for (uint64_t n = case_number(job, "count", 0); n; n--)
            put(scene, "one of many", scene->now_s + 1);
        return;
    }
    put(scene, case_string(job, "name"), case_number(job, "used", scene->now_s + 1));
    scene->fakes[scene->len - 1].is_busy = json_is_true(json_object_get(job, "busy"));
    if (json_is_true(json_object_get(job, "exited")))
        job_table_mark_exited(scene->table, scene->fakes[scene->len - 1].id);
}

/* After all are in: those with "touched" were used again, at that time. */
static void touch_case(struct scene *scene, const json_t *job)
{
    for (size_t i = 0; i < scene->len; i++)
        if (json_object_get(job, "touched") &&
            strcmp(scene->fakes[i].name, case_string(job, "name")) == 0)
            job_table_touch(scene->table, scene->fakes[i].id,
                            case_number(job, "touched", 0) * CLOCK_NS_PER_S);
}

static void pruning_case(void **state)
{
    static const char *const keys[] = {"why",    "capacity", "sessions", "insert",
                                       "pushed", "count",    NULL};
    const json_t *json = ((const struct test_case *)*state)->json;
    const json_t *jobs = json_object_get(json, "sessions");
    const char *wanted = case_string_or(json, "pushed", NULL);
    struct scene *scene = alloc_zero(1, sizeof *scene);
    struct job_table_options options = {.capacity = 200, .is_busy = is_busy};
    struct job_table_tombstone tombstone = {0};
    struct job_table_pushed pushed;
    struct err err;

    case_check_keys(json, keys);
    options.capacity = case_number(json, "capacity", 0);
    scene->table = job_table_new(&options, &err);
    assert_non_null(scene->table);
    for (size_t i = 0; i < json_array_size(jobs); i++)
        put_case(scene, json_array_get(jobs, i));
    for (size_t i = 0; i < json_array_size(jobs); i++)
        touch_case(scene, json_array_get(jobs, i));
    pushed = put(scene, "the new one", case_number(json, "insert", 1000));
    assert_int_equal(job_table_count(scene->table), case_number(json, "count", 0));
    assert_string_equal(pushed.job ? ((struct fake *)pushed.job)->name : "nobody",
                        wanted ? wanted : "nobody");
    if (wanted) {
        assert_null(job_table_find(scene->table, pushed.id));
        assert_true(job_table_tombstone(scene->table, pushed.id, &tombstone));
        assert_string_equal(job_fate_name(tombstone.end.fate), "pruned");
    }
    job_table_free(scene->table);
    free(scene);
}

/* --- against the rule, written down plainly --- */

enum { RANDOM_CAPACITY = 20, RANDOM_MAX = 60 };

struct plain {
    struct fake fake;
    bool is_there;
    bool has_exited;
    uint64_t used;
};

static uint64_t random_state;

static uint64_t number_below(uint64_t end)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (random_state >> 33) % end;
}

/* Whether fewer than eight were used after it. */
static bool is_protected(const struct plain *all, size_t len, const struct plain *one)
{
    size_t later = 0;

    for (size_t i = 0; i < len; i++)
        later += all[i].is_there && all[i].used > one->used;
    return later < JOB_TABLE_PROTECTED;
}

static const struct plain *oldest(const struct plain *all, size_t len, bool has_exited,
                                  bool *ret_spared)
{
    const struct plain *found = NULL;

    for (size_t i = 0; i < len; i++) {
        if (!all[i].is_there || all[i].has_exited != has_exited || is_protected(all, len, &all[i]))
            continue;
        if (all[i].fake.is_busy)
            *ret_spared = true;
        else if (!found || all[i].used < found->used)
            found = &all[i];
    }
    return found;
}

static const struct plain *expected(const struct plain *all, size_t len, size_t count)
{
    bool has_spared = false;
    bool ignored = false;
    const struct plain *found;

    if (count < RANDOM_CAPACITY)
        return NULL;
    found = oldest(all, len, true, &has_spared);
    return found || has_spared ? found : oldest(all, len, false, &ignored);
}

static void run_random(struct job_table *table)
{
    struct plain all[RANDOM_MAX] = {0};
    uint64_t now = 0;

    for (size_t len = 0; len < RANDOM_MAX; len++) {
        const struct plain *wanted = expected(all, len, job_table_count(table));
        struct job_table_pushed pushed;
        struct err err;

        assert_int_equal(job_table_reserve(table, &all[len].fake.id, &err), 0);
        all[len].used = ++now;
        job_table_insert(table,
                         &(struct job_table_entry){
                             .id = all[len].fake.id, .job = &all[len].fake, .used_ns = now},
                         &pushed);
        all[len].is_there = true;
        assert_ptr_equal(pushed.job, wanted ? &wanted->fake : NULL);
        if (pushed.job)
            ((struct plain *)pushed.job)->is_there = false;
        for (size_t i = 0; i < 5; i++) {
            struct plain *one = &all[number_below(len + 1)];

            one->fake.is_busy = !number_below(4);
            if (one->is_there && !number_below(3)) {
                one->has_exited = true;
                job_table_mark_exited(table, one->fake.id);
            }
            if (one->is_there && !number_below(3)) {
                one->used = ++now;
                job_table_touch(table, one->fake.id, now);
            }
        }
    }
}

static void random_use(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct job_table_options options = {.capacity = RANDOM_CAPACITY, .is_busy = is_busy};
        struct err err;
        struct job_table *table = job_table_new(&options, &err);

        random_state = seed;
        run_random(table);
        job_table_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest more[] = {cmocka_unit_test(random_use)};

    return cases_run("job/pruning", pruning_case, more, sizeof more / sizeof *more);
}
