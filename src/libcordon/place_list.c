/* The places of an engine. A policy is remembered by the text of all that it says, so that hosts
 * need not keep anything to get the same sandbox again. What it means on this host is looked at
 * anew for each command: what came to match a pattern since the last one must not be seen by the
 * next. */
#include "libcordon/place_part.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/str.h"
#include "libcordon/engine.h"
#include "libcordon/policy_key.h"

#include <stdlib.h>

/* Canonical, since it becomes a root. Caller frees. */
static char *find_workspace(const char *asked, struct err *err)
{
    char *folder = realpath(asked ? asked : ".", NULL);

    if (!folder)
        err_sys(err, "the workspace %s", asked ? asked : "(the current folder)");
    return folder;
}

static struct place *place_keep(struct cordon_engine *engine, struct place *place, char *key)
{
    place->key = key;
    place->next = engine->places;
    engine->places = place;
    return place;
}

/* The place, or the one that stands in for it from now on. */
static const struct place *place_renew(struct cordon_engine *engine, struct place *place,
                                       struct err *err)
{
    bool is_default = place == engine->place;
    struct place *anew;

    if (place_is_current(place))
        return place;
    anew = place_make_of(engine, &place->policy.policy, place->workspace, err);
    if (!anew)
        return NULL;
    place_keep(engine, anew, TAKE_PTR(place->key));
    if (is_default)
        engine->place = anew;
    return anew;
}

static struct place *place_default(const struct cordon_engine *engine)
{
    struct place *place = engine->places;

    while (place != engine->place)
        place = place->next;
    return place;
}

const struct place *place_find(struct cordon_engine *engine, const struct cordon_policy *given,
                               struct err *err)
{
    struct cordon_policy policy = {0};
    AUTO_FREE char *workspace = NULL;
    AUTO_FREE char *key = NULL;
    struct place *place;

    if (!given && engine->place)
        return place_renew(engine, place_default(engine), err);
    if (given && options_read(&policy, sizeof policy, given, err)) {
        err_wrap(err, "policy");
        return NULL;
    }
    workspace = find_workspace(policy.workspace, err);
    if (!workspace)
        return NULL;
    key = policy_key(&policy, workspace);
    for (place = engine->places; place; place = place->next)
        if (place->key && str_eq(place->key, key))
            return place_renew(engine, place, err);
    place = place_make_of(engine, &policy, workspace, err);
    return place ? place_keep(engine, place, TAKE_PTR(key)) : NULL;
}
