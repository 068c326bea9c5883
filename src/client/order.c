/* See order.h. A sorted list: nearly always the event that comes is the next one, or the last of
 * the few that wait. */
#include "client/order.h"

#include "base/alloc.h"

#include <stdlib.h>

struct order_event {
    struct order_event *next;
    uint64_t seq;
    char *method;
    json_t *params;
};

static void order_drop_first(struct order *order)
{
    struct order_event *event = order->first;

    order->first = event->next;
    order->held--;
    free(event->method);
    json_decref(event->params);
    free(event);
}

void order_done(struct order *order)
{
    while (order->first)
        order_drop_first(order);
}

bool order_put(struct order *order, uint64_t seq, const char *method, const json_t *params)
{
    struct order_event **slot = &order->first;
    struct order_event *event;

    while (*slot && (*slot)->seq < seq)
        slot = &(*slot)->next;
    if (seq <= order->taken || (*slot && (*slot)->seq == seq))
        return true;
    if (order->held == ORDER_HELD_MAX)
        return false;
    event = alloc_zero(1, sizeof *event);
    *event = (struct order_event){
        .next = *slot,
        .seq = seq,
        .method = alloc_str(method),
        .params = json_incref((json_t *)params),
    };
    *slot = event;
    order->held++;
    return true;
}

bool order_take(struct order *order, char **ret_method, json_t **ret_params)
{
    struct order_event *event = order->first;

    if (!event || event->seq != order->taken + 1)
        return false;
    order->taken = event->seq;
    *ret_method = event->method;
    *ret_params = event->params;
    event->method = NULL;
    event->params = NULL;
    order_drop_first(order);
    return true;
}
