/* Change layers (layer/layer.h) as a workspace has them: hidden from every command, and lain under those that write to
 * one. */
#pragma once

#include "base/err.h"
#include "workspace/workspace.h"

struct access_map;
struct host_view;
struct strv;

/* No command sees what others have written, whatever its profile says. */
int layered_hide(const struct host_view *view, struct access_map *map, struct err *err);

/* Appends the canonical paths of the folders of layers, there or not: what sandboxes of `map` have to hold. */
int layered_guard(const struct access_map *map, struct strv *ret, struct err *err);

/* Of a workspace that has a layer, once its profile and mode are chosen: ERR_INVALID, with the remedy, when its
 * commands would write elsewhere. */
int layered_check(const struct workspace *workspace, const struct workspace_request *request,
                  struct err *err);

/* The map as commands in the layer have it. `grows`: what it does not lie over yet it will. */
int layered_cover(struct layer *layer, struct access_map *map, bool grows, struct err *err);

/* ERR_FORBIDDEN: nothing of it runs outside of a sandbox. */
int layered_refuse_outside(struct err *err);
