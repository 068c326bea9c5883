/* See stream.h. */
#include "exec/stream.h"

const char *stream_name(enum stream stream)
{
    return stream == STREAM_STDERR ? "stderr" : "stdout";
}
