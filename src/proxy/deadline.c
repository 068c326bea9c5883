/* See deadline.h. All in a list wait equally long, so whoever starts (anew) is the last of it. The timer is set to the
 * first; when that one has started anew meanwhile, it is set again when it fires, and not before. */
#include "proxy/deadline.h"

#include "base/clock.h"
#include "loop/loop.h"

static void arm(struct deadline_queue *queue)
{
    const struct deadline *first = list_first(&queue->waiting, struct deadline, in_queue);
    uint64_t now = clock_now_ns();

    queue->is_running = first != NULL;
    if (first)
        loop_timer_start(queue->timer, first->due_ns > now ? first->due_ns - now : 1);
}

static void on_timer(void *data)
{
    struct deadline_queue *queue = data;
    uint64_t now = clock_now_ns();
    struct deadline *first;

    while ((first = list_first(&queue->waiting, struct deadline, in_queue)) &&
           first->due_ns <= now) {
        deadline_clear(first);
        queue->on_time(first); /* frees it, or sets another */
    }
    arm(queue);
}

void deadline_queue_init(struct deadline_queue *queue, struct loop *loop, uint64_t wait_ns,
                         deadline_fn *on_time)
{
    *queue = (struct deadline_queue){.wait_ns = wait_ns, .on_time = on_time};
    queue->timer = loop_timer_new(loop, on_timer, queue);
}

void deadline_queue_done(struct deadline_queue *queue)
{
    loop_timer_free(queue->timer);
}

void deadline_set(struct deadline *deadline, struct deadline_queue *queue)
{
    deadline_clear(deadline);
    deadline->queue = queue;
    deadline->due_ns = clock_now_ns() + queue->wait_ns;
    list_append(&queue->waiting, &deadline->in_queue);
    if (!queue->is_running)
        arm(queue);
}

void deadline_touch(struct deadline *deadline)
{
    if (!deadline->queue)
        return;
    deadline->due_ns = clock_now_ns() + deadline->queue->wait_ns;
    list_remove(&deadline->in_queue);
    list_append(&deadline->queue->waiting, &deadline->in_queue);
}

void deadline_clear(struct deadline *deadline)
{
    list_remove(&deadline->in_queue);
    deadline->queue = NULL;
}
