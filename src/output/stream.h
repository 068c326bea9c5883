/* The output streams of a command. A command on a PTY has only the first. */
#pragma once

enum stream { STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

static inline const char *stream_name(enum stream stream)
{
    return stream == STREAM_STDERR ? "stderr" : "stdout";
}
