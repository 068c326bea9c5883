/* The secrets of a profile's hooks and credentials: read here, outside of every sandbox, and given to the proxy alone. */
#pragma once

#include "base/err.h"

struct access_map;
struct strv;

/* Reads those that the network of `map` needs, from our own environment and files, into its hooks; chooses what the command
 * has in their place, and appends that to `env` ("NAME=stand-in"). Files of them are hidden. A variable that is not there is left
 * out. ERR_FORBIDDEN for a file that a command could change. */
int credentials_open(struct access_map *map, struct strv *env, struct err *err);
