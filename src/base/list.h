/* Doubly linked lists whose links lie inside the items, so that neither joining nor leaving
 * allocates, and an item leaves without a search:
 *
 *     struct job { struct list in_table; ... };
 *     struct table { struct list jobs; ... };
 *
 *     list_append(&table->jobs, &job->in_table);
 *     list_for_each(job, &table->jobs, in_table)
 *         job_print(job);
 *     list_remove(&job->in_table);
 *
 * A head and a link are the same struct; the list is a ring that its head is part of. Zeros are an
 * empty list, and a link in no list, so that what alloc_zero() made needs no list_init(). A link is
 * in at most one list at a time. Neither a head that is not empty nor a link that is in a list may
 * be copied or moved: its neighbours point to it. A list owns nothing: who frees an item removes
 * it first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *previous;
};

/* The struct of `type` whose `member` is at `pointer`. */
#define container_of(pointer, type, member)                                                        \
    ({                                                                                             \
        const __typeof__(((type *)0)->member) *member_ = (pointer);                                \
        (type *)(void *)((char *)(member_)-offsetof(type, member));                                \
    })

/* An empty list, or a link in no list. */
static inline void list_init(struct list *list)
{
    list->next = list;
    list->previous = list;
}

static inline bool list_is_empty(const struct list *head)
{
    return !head->next || head->next == head;
}

/* Whether the link is in a list. */
static inline bool list_is_linked(const struct list *link)
{
    return !list_is_empty(link);
}

/* Puts `link`, which is in no list, in front of `place`: a link, or the head for the list's end. */
static inline void list_insert_before(struct list *place, struct list *link)
{
    if (!place->next)
        list_init(place);
    link->next = place;
    link->previous = place->previous;
    place->previous->next = link;
    place->previous = link;
}

/* Puts `link`, which is in no list, at the end of the list. */
static inline void list_append(struct list *head, struct list *link)
{
    list_insert_before(head, link);
}

/* Puts `link`, which is in no list, at the front of the list. */
static inline void list_add(struct list *head, struct list *link)
{
    list_insert_before(list_is_empty(head) ? head : head->next, link);
}

/* Takes `link` out of the list that it is in, if it is in one. */
static inline void list_remove(struct list *link)
{
    if (list_is_linked(link)) {
        link->previous->next = link->next;
        link->next->previous = link->previous;
    }
    list_init(link);
}

/* The link behind `place` (a link, or the head for the first one); NULL at the end. */
static inline struct list *list_after(const struct list *head, const struct list *place)
{
    return place->next == head ? NULL : place->next;
}

/* The link before `place` (a link, or the head for the last one); NULL at the front. */
static inline struct list *list_before(const struct list *head, const struct list *place)
{
    return place->previous == head ? NULL : place->previous;
}

/* The item of `type` whose link is `link`, NULL for NULL. */
#define list_item(link, type, member)                                                              \
    ({                                                                                             \
        struct list *link_ = (link);                                                               \
        link_ ? container_of(link_, type, member) : (type *)NULL;                                  \
    })

/* The first and the last item, NULL of an empty list. */
#define list_first(head, type, member) list_item(list_after(head, head), type, member)
#define list_last(head, type, member) list_item(list_before(head, head), type, member)

/* Goes through the items; the body must not remove `item` (a variable of the item's type). */
#define list_for_each(item, head, member)                                                          \
    for ((item) = list_first(head, __typeof__(*(item)), member); (item);                           \
         (item) = list_item(list_after(head, &(item)->member), __typeof__(*(item)), member))

/* The same; the body may remove and free `item`, but not `following`, where it goes on. */
#define list_for_each_safe(item, following, head, member)                                          \
    for ((item) = list_first(head, __typeof__(*(item)), member);                                   \
         (item) &&                                                                                 \
         ((following) = list_item(list_after(head, &(item)->member), __typeof__(*(item)), member), \
         true);                                                                                    \
         (item) = (following))
