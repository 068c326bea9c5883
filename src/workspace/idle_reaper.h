/* Gives back what idle sandboxes keep warm: the spare launcher, and the stand-ins that the user can
 * see in the workspace. For hosts that run many commands in sandboxes of theirs.
 *
 *     cooler_new(loop)
 *     sandbox_new() with keep_warm, on_idle = cooler_on_idle, data = the cooler
 *     cooler_forget(cooler, sandbox), then sandbox_free()
 *     cooler_free(), before the loop
 */
#pragma once

struct cooler;
struct loop;
struct sandbox;

struct cooler *cooler_new(struct loop *loop);
void cooler_free(struct cooler *cooler); /* NULL is fine */

/* `data` is the cooler. A sandbox that stays idle for a second from here on cools down. */
void cooler_on_idle(void *data, struct sandbox *sandbox);

/* The sandbox is about to go. A NULL cooler is fine. */
void cooler_forget(struct cooler *cooler, const struct sandbox *sandbox);
