/* libevent's own object of a loop, for the files of this room alone. */
#pragma once

struct event_base;
struct loop;

struct event_base *loop_event_base(struct loop *loop);
