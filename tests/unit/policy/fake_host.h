/* A host made of JSON, for everything that works on a host_view:
 *
 *     {"/usr/bin/sh": "file", "/bin": {"link": "usr/bin"}, "/w/.git": {"text": "gitdir: ../x"},
 *      "/srv": "dir", "/dev/x": "other", "/root": "hidden", "/lost": "unreadable"}
 *
 * Directories on the way to a path need not be listed. "hidden" is a directory that does not let a
 * process look up a name in it, "unreadable" one that may not be listed, "broken" one that fails to
 * be; {"denied": true} is a file that cannot be read. A long list of files can be written
 * {"/w/many": {"files": 9000}}. */
#pragma once

#include "policy/host_view.h"

#include <jansson.h>

struct fake_host {
    struct host_view view; /* give &host.view to what is tested */
    json_t *paths;
};

/* Borrows `paths` (NULL: an empty host). */
struct fake_host fake_host_make(json_t *paths);
