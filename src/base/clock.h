/* Time. Durations and deadlines are nanoseconds on the monotonic clock (`uint64_t ..._ns`); the
 * wall clock is for showing to people and for records only, since it may jump.
 *
 * Tests stop both clocks with clock_freeze() and move them with clock_advance(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CLOCK_NS_PER_MS UINT64_C(1000000)
#define CLOCK_NS_PER_S UINT64_C(1000000000)

/* "2026-11-20T10:34:00.123Z" and its NUL, with room for a year of any length. */
enum { CLOCK_UTC_SIZE = 48 };

uint64_t clock_now_ns(void);  /* monotonic, does not count time in suspend */
uint64_t clock_wall_ns(void); /* since 1970-01-01T00:00:00Z */

/* The wall clock as file systems stamp with it, which is that of the last tick: what is written afterwards has no older stamp. It
 * is behind the other one by some milliseconds, and by tens where many wait for the processors. */
uint64_t clock_stamp_ns(void);

/* `now_ns` and `delay_ns` added, UINT64_MAX ("never") when that does not fit. */
uint64_t clock_after(uint64_t now_ns, uint64_t delay_ns);

/* RFC 3339, UTC, cut to milliseconds. */
void clock_format_utc(uint64_t wall_ns, char ret_text[CLOCK_UTC_SIZE]);

/* Tests only: both clocks stand still at these values until clock_release(). */
void clock_freeze(uint64_t now_ns, uint64_t wall_ns);
void clock_advance(uint64_t ns); /* moves both frozen clocks */
void clock_release(void);
