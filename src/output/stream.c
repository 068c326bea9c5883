/* See stream.h. */
#include "output/stream.h"

const char *stream_name(enum stream stream)
{
    return stream == STREAM_STDERR ? "stderr" : "stdout";
}
