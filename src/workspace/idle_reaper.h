/* Gives back what idle sandboxes cache: the spare launcher, and the placeholders that the user can
 * see in the workspace. For hosts that run many commands in sandboxes of theirs.
 *
 *     idle_reaper_new(loop)
 *     sandbox_new() with cache_idle, on_idle = idle_reaper_on_idle, data = the reaper
 *     idle_reaper_forget(reaper, sandbox), then sandbox_free()
 *     idle_reaper_free(), before the loop
 */
#pragma once

struct idle_reaper;
struct loop;
struct sandbox;

struct idle_reaper *idle_reaper_new(struct loop *loop);
void idle_reaper_free(struct idle_reaper *reaper); /* NULL is fine */

/* `data` is the reaper. A sandbox that stays idle for a second from here on gives back what it caches. */
void idle_reaper_on_idle(void *data, struct sandbox *sandbox);

/* The sandbox is about to go. A NULL reaper is fine. */
void idle_reaper_forget(struct idle_reaper *reaper, const struct sandbox *sandbox);
