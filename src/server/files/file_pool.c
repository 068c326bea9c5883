/* See file_pool.h.
 *
 * One call at a time is one helper's; a call for which there is none starts one, unless there are
 * too many: then an idle one of another workspace goes, or the call waits. A helper that was idle
 * for a while goes, too; so does one whose sandbox was built from directories that are no longer
 * what they were (a helper lives on behind mounts of the moment in which it started), and one that
 * works on a call that no client waits for any more. */
#include "server/files/file_pool.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/clock.h"
#include "base/program.h"
#include "loop/loop.h"
#include "policy/access.h"
#include "server/sandbox_request.h"
#include "server/server.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { WORKERS_MAX = 32 };

#define IDLE_NS (5 * CLOCK_NS_PER_S)       /* between the calls of one step of an agent */
#define IN_LAYER_IDLE_NS CLOCK_NS_PER_S    /* where a step of a layer goes on as long as it lives */
#define ABANDONED_NS (30 * CLOCK_NS_PER_S) /* for a copy or a removal to come to its end */

struct stamp {
    dev_t dev;
    ino_t ino;
};

struct worker {
    struct workspace *workspace; /* held */
    struct file_helper *helper;
    struct file_pool *pool;
    struct file_job *job; /* NULL: idle, or its job was abandoned */
    struct stamp *stamps; /* of what the access map names, in its order */
    uint64_t since_ns;    /* idle or abandoned */
};

struct file_job {
    struct file_job *next; /* of those that wait */
    struct file_pool *pool;
    struct workspace *workspace; /* held */
    struct worker *worker;
    struct file_call call; /* its text and data until they are sent */
};

struct file_pool {
    struct loop *loop;
    struct loop_timer *timer; /* while there are workers */
    bool is_ticking;
    uint64_t tick_ns;
    struct worker *workers[WORKERS_MAX];
    size_t len;
    struct file_job *waiting; /* the oldest first */
};

static void pool_serve(struct file_pool *pool);

static uint64_t idle_ns(const struct worker *worker)
{
    return worker->workspace->layer ? IN_LAYER_IDLE_NS : IDLE_NS;
}

static void pool_tick(struct file_pool *pool)
{
    uint64_t least_ns = IDLE_NS;

    for (size_t i = 0; i < pool->len; i++)
        if (idle_ns(pool->workers[i]) < least_ns)
            least_ns = idle_ns(pool->workers[i]);
    if (!pool->is_ticking || least_ns < pool->tick_ns)
        loop_timer_start(pool->timer, least_ns);
    pool->is_ticking = true;
    pool->tick_ns = least_ns;
}

/* --- what a sandbox was built from --- */

static struct stamp stamp_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st))
        return (struct stamp){0};
    return (struct stamp){.dev = st.st_dev, .ino = st.st_ino};
}

static struct stamp *stamps_take(const struct access_map *access)
{
    struct stamp *stamps = alloc_zero(access ? access->len + 1 : 1, sizeof *stamps);

    for (size_t i = 0; access && i < access->len; i++)
        stamps[i] = stamp_of(access->entries[i].path);
    return stamps;
}

static bool stamps_hold(const struct worker *worker)
{
    const struct access_map *access = worker->workspace->access;

    for (size_t i = 0; access && i < access->len; i++) {
        struct stamp now = stamp_of(access->entries[i].path);

        if (now.dev != worker->stamps[i].dev || now.ino != worker->stamps[i].ino)
            return false;
    }
    return true;
}

/* --- workers --- */

static void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    file_helper_free(worker->helper);
    if (worker->workspace)
        workspace_release(worker->workspace);
    free(worker->stamps);
    free(worker);
}

static void worker_auto(struct worker **slot)
{
    worker_free(*slot);
}

static void pool_drop(struct file_pool *pool, size_t index)
{
    struct worker *worker = pool->workers[index];

    pool->workers[index] = pool->workers[--pool->len];
    worker_free(worker);
}

static void pool_drop_worker(struct file_pool *pool, const struct worker *worker)
{
    for (size_t i = 0; i < pool->len; i++) {
        if (pool->workers[i] == worker) {
            pool_drop(pool, i);
            return;
        }
    }
}

static struct worker *worker_start(struct file_pool *pool, struct workspace *workspace,
                                   struct err *err)
{
    AUTO(worker_auto) struct worker *worker = alloc_zero(1, sizeof *worker);
    AUTO_FREE char *program = program_find("cordon-files", err);
    const struct file_helper_options options = {
        .loop = pool->loop, .sandbox = workspace->sandbox, .program = program};

    if (!program) {
        err->code = ERR_BUG; /* of ours: the client's file may well be there */
        return NULL;
    }
    worker->pool = pool;
    worker->workspace = workspace;
    workspace_hold(workspace);
    worker->helper = file_helper_start(&options, err);
    if (!worker->helper)
        return NULL;
    worker->stamps = stamps_take(workspace->access);
    pool->workers[pool->len++] = worker;
    pool_tick(pool);
    return TAKE_PTR(worker);
}

static bool worker_is_idle(const struct worker *worker)
{
    return !file_helper_is_busy(worker->helper);
}

/* An idle one of the workspace that is fit for use; those that are not go. */
static struct worker *pool_find(struct file_pool *pool, const struct workspace *workspace)
{
    for (size_t i = 0; i < pool->len;) {
        struct worker *worker = pool->workers[i];

        if (worker->workspace != workspace || !worker_is_idle(worker))
            i++;
        else if (file_helper_is_gone(worker->helper) || !stamps_hold(worker))
            pool_drop(pool, i);
        else
            return worker;
    }
    return NULL;
}

/* Makes room for one more; false when all are at work. */
static bool pool_make_room(struct file_pool *pool)
{
    size_t oldest = pool->len;

    if (pool->len < WORKERS_MAX)
        return true;
    for (size_t i = 0; i < pool->len; i++)
        if (worker_is_idle(pool->workers[i]) &&
            (oldest == pool->len || pool->workers[i]->since_ns < pool->workers[oldest]->since_ns))
            oldest = i;
    if (oldest == pool->len)
        return false;
    pool_drop(pool, oldest);
    return true;
}

/* --- jobs --- */

static void job_free(struct file_job *job)
{
    workspace_release(job->workspace);
    file_call_done(&job->call);
    free(job);
}

static void job_end(struct file_job *job, const struct file_answer *answer)
{
    file_answer_fn *on_answer = job->call.on_answer;
    void *user = job->call.user;

    job_free(job);
    on_answer(user, answer);
}

static void job_fail(struct file_job *job, const struct err *failure)
{
    struct buf text = {0};
    int fd = -1;
    const struct file_answer answer = {.text = &text, .fd = &fd, .failure = failure};

    job_end(job, &answer);
}

static void on_worker_answer(void *data, const struct file_answer *answer)
{
    struct worker *worker = data;
    struct file_pool *pool = worker->pool;
    struct file_job *job = TAKE_PTR(worker->job);

    worker->since_ns = clock_now_ns();
    if (file_helper_is_gone(worker->helper))
        pool_drop_worker(pool, worker);
    if (job)
        job_end(job, answer);
    pool_serve(pool);
}

/* A helper that turns out to be gone says so here at once, and is not used again. */
static void job_run(struct file_job *job, struct worker *worker)
{
    struct file_call call = {.text = TAKE_PTR(job->call.text),
                             .len = job->call.len,
                             .data = TAKE_PTR(job->call.data),
                             .on_answer = on_worker_answer,
                             .user = worker};
    struct err err;

    worker->job = job;
    job->worker = worker;
    if (file_helper_call(worker->helper, &call, &err)) {
        worker->job = NULL;
        job_fail(job, &err);
    }
}

/* false when it has to wait. */
static bool job_begin(struct file_pool *pool, struct file_job *job)
{
    struct worker *worker = pool_find(pool, job->workspace);
    struct err err;

    if (!worker && !pool_make_room(pool))
        return false;
    if (!worker)
        worker = worker_start(pool, job->workspace, &err);
    if (worker)
        job_run(job, worker);
    else
        job_fail(job, &err);
    return true;
}

static void pool_serve(struct file_pool *pool)
{
    while (pool->waiting) {
        struct file_job *job = pool->waiting;

        pool->waiting = job->next;
        job->next = NULL;
        if (job_begin(pool, job))
            continue;
        job->next = pool->waiting;
        pool->waiting = job;
        return;
    }
}

void file_pool_call(struct file_pool *pool, struct workspace *workspace, struct file_call *call,
                    struct file_job **ret)
{
    struct file_job *job = alloc_zero(1, sizeof *job);
    struct file_job **last = &pool->waiting;

    *job = (struct file_job){.pool = pool, .workspace = workspace, .call = *call};
    *call = (struct file_call){0};
    workspace_hold(workspace);
    *ret = job;
    while (*last)
        last = &(*last)->next;
    *last = job;
    pool_serve(pool);
}

void file_job_abandon(struct file_job *job)
{
    struct file_job **slot = &job->pool->waiting;

    if (job->worker) {
        job->worker->job = NULL;
        job->worker->since_ns = clock_now_ns();
    } else {
        while (*slot != job)
            slot = &(*slot)->next;
        *slot = job->next;
    }
    job_free(job);
}

/* --- the pool --- */

static bool worker_is_due(const struct worker *worker, uint64_t now_ns)
{
    if (worker->job)
        return false;
    return now_ns >= worker->since_ns + (worker_is_idle(worker) ? idle_ns(worker) : ABANDONED_NS);
}

void file_pool_end_idle(struct file_pool *pool, const struct layer *layer)
{
    for (size_t i = 0; i < pool->len;) {
        const struct worker *worker = pool->workers[i];

        if (worker->workspace->layer == layer && !worker->job && worker_is_idle(worker))
            pool_drop(pool, i);
        else
            i++;
    }
}

static void on_time(void *data)
{
    struct file_pool *pool = data;
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < pool->len;) {
        if (worker_is_due(pool->workers[i], now_ns))
            pool_drop(pool, i);
        else
            i++;
    }
    pool->is_ticking = false;
    if (pool->len)
        pool_tick(pool);
    pool_serve(pool);
}

struct file_pool *file_pool_new(struct loop *loop)
{
    struct file_pool *pool = alloc_zero(1, sizeof *pool);

    pool->loop = loop;
    pool->timer = loop_timer_new(loop, on_time, pool);
    return pool;
}

struct file_pool *server_file_pool(struct server *server)
{
    if (!server->file_pool)
        server->file_pool = file_pool_new(server->loop);
    return server->file_pool;
}

void file_pool_free(struct file_pool *pool)
{
    if (!pool)
        return;
    while (pool->waiting) {
        struct file_job *job = pool->waiting;

        pool->waiting = job->next;
        job_free(job);
    }
    while (pool->len) {
        if (pool->workers[pool->len - 1]->job)
            job_free(pool->workers[pool->len - 1]->job);
        pool_drop(pool, pool->len - 1);
    }
    loop_timer_free(pool->timer);
    free(pool);
}
