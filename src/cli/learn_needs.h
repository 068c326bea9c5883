/* What a run needed beyond its profile, gathered of its events (timeline/timeline.h), and where that may be at
 * all: places, which are caches and the folders in which tools keep what they fetched.
 *
 *     learn_places_find()                       before the run: those that are there, or are made for it
 *     learn_needs_add()                         each event
 *     learn_needs_end()                         after it: what is left of them on the disk
 *     learn_needs_done(), learn_places_done() */
#pragma once

#include "base/strv.h"

#include <stdbool.h>
#include <stddef.h>

struct access_map;
struct timeline_event;

/* --- places --- */

struct learn_place {
    char *path;    /* canonical */
    bool is_whole; /* what is in it is one thing; else each name in it is one */
};

struct learn_places {
    struct learn_place *items;
    size_t len;
    size_t cap;
    struct strv made; /* for the run: folders, those that are in others last */
    struct strv kept; /* in them, what nobody may write */
};

/* Those of `home` (as the user names it; NULL: none is known), and those that variables of the environment
 * name. Folders of tools that are found in $PATH are made where they are missing. `own_paths`: what belongs to
 * Cordon, in which no place is; NULL-terminated. */
void learn_places_find(const char *home, char *const *own_paths, struct learn_places *ret);

/* One that the person names. */
void learn_places_add(struct learn_places *places, const char *path, bool is_whole);

/* The path is below a place, and not one itself. */
bool learn_places_have_below(const struct learn_places *places, const char *path);

/* Takes the folders away that were made and are empty still. */
void learn_places_done(struct learn_places *places);

/* --- needs --- */

struct learn_need {
    char *path; /* canonical: a folder with everything in it, or a file; of a socket its path */
    struct strv who; /* "npm: create", sorted, each once; a few */
    bool is_socket;
};

/* What is not in the profile. */
struct learn_refusal {
    char *what; /* "create /etc/x" */
    char *who;
    char *why;
};

struct learn_needs {
    const struct learn_places *places;
    const struct access_map *base; /* what the profile that is extended allows; borrowed */
    const char *home;              /* canonical; NULL: not known */
    struct learn_need *items;
    size_t len;
    size_t cap;
    struct learn_refusal *refusals;
    size_t refusals_len;
    size_t refusals_cap;
    size_t refusals_more;    /* that are not kept */
    struct strv git;         /* who wrote in a repository what git "commit" opens */
    struct strv remote;      /* "npm: connect 192.0.2.1:443" that was refused or done */
    struct strv hosts;       /* "example.org:443" that were reached by name, through the proxy */
    struct strv hosts_who;   /* who each was first reached by */
    unsigned long long lost; /* events that nobody saw */
    bool is_proxied;         /* the network of the run is */
    bool is_watched;         /* something was seen at all */
};

void learn_needs_add(struct learn_needs *needs, const struct timeline_event *event);

/* Moves what no profile can have to the refusals, and brings the rest into order. */
void learn_needs_end(struct learn_needs *needs);
void learn_needs_done(struct learn_needs *needs);
