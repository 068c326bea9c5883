/* capture: compared with a model that keeps everything, over many random histories. */
#include "../base/support.h"

#include "base/buf.h"
#include "output/capture.h"

#include <stdlib.h>
#include <string.h>

/* xorshift32: the same histories in every run */
static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

#define EVENTS_MAX 4096

/* Everything that was added, in order. */
struct model {
    struct buf streams[STREAM_COUNT];
    struct {
        enum stream stream;
        size_t len;
    } events[EVENTS_MAX];
    size_t events_len;
};

static void model_check_stream(const struct model *model, struct capture *capture,
                               enum stream stream, size_t max)
{
    const struct buf *all = &model->streams[stream];
    const char *data = all->data ? all->data : "";
    size_t head = all->len < max / 2 ? all->len : max / 2;
    size_t tail = all->len - head < max - max / 2 ? all->len - head : max - max / 2;
    struct capture_view view;

    capture_view(capture, stream, &view);
    assert_int_equal(view.total, all->len);
    assert_int_equal(view.head_len, head);
    assert_int_equal(view.tail_len, tail);
    assert_int_equal(view.omitted, all->len - head - tail);
    assert_memory_equal(view.head, data, head);
    assert_memory_equal(view.tail, data + all->len - tail, tail);
}

/* Segments are contiguous, never two of a stream in a row, and say what was added. */
static void model_check_order(const struct model *model, struct capture *capture)
{
    uint64_t omitted;
    size_t len;
    const struct capture_segment *segment = capture_segments(capture, &len, &omitted);
    const struct capture_segment *end = len ? segment + len : segment;
    uint64_t at[STREAM_COUNT] = {0};
    uint64_t offset = 0;

    assert_int_equal(omitted, 0);
    for (size_t i = 0; i < model->events_len; i++) {
        enum stream stream = model->events[i].stream;

        if (!model->events[i].len)
            continue;
        if (offset == segment->offset + segment->len) {
            segment++;
            assert_true(segment < end);
            assert_int_not_equal(segment->stream, segment[-1].stream);
            assert_int_equal(segment->offset, offset);
            assert_int_equal(segment->at, at[stream]);
        }
        assert_int_equal(segment->stream, stream);
        offset += model->events[i].len;
        at[stream] += model->events[i].len;
        assert_true(offset <= segment->offset + segment->len);
    }
    if (offset)
        assert_ptr_equal(segment + 1, end);
}

static void check_history(uint32_t seed)
{
    static const size_t limits[] = {0, 1, 2, 3, 10, 100, 4096, 10000, 70000};
    size_t max = limits[next_random(&seed) % (sizeof limits / sizeof *limits)];
    size_t piece_max = 1 + next_random(&seed) % (max ? 2 * max : 10);
    size_t pieces = next_random(&seed) % 60;
    struct capture *capture = capture_new(max);
    struct model *model = calloc(1, sizeof *model);
    char *piece = malloc(piece_max);

    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&model->streams[i], (size_t)32 << 20);
    for (size_t i = 0; i < pieces; i++) {
        enum stream stream = next_random(&seed) % 3 ? STREAM_STDOUT : STREAM_STDERR;
        size_t len = next_random(&seed) % (piece_max + 1);

        for (size_t k = 0; k < len; k++)
            piece[k] = (char)next_random(&seed);
        capture_add(capture, stream, piece, len);
        assert_true(buf_append(&model->streams[stream], piece, len));
        model->events[model->events_len].stream = stream;
        model->events[model->events_len++].len = len;
        if (next_random(&seed) % 4 == 0) /* looking changes nothing */
            model_check_stream(model, capture, stream, max);
    }
    for (int i = 0; i < STREAM_COUNT; i++)
        model_check_stream(model, capture, (enum stream)i, max);
    model_check_order(model, capture);
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&model->streams[i]);
    capture_free(capture);
    free(model);
    free(piece);
}

static void test_random_histories(void **state)
{
    for (uint32_t seed = 1; seed <= 2000; seed++)
        check_history(seed * 2654435761u);
}

/* The worked example of docs/model-calls.md. */
static void test_render(void **state)
{
    struct capture *capture = capture_new(10);
    struct buf text;

    buf_init(&text, 100);
    capture_add(capture, STREAM_STDOUT, "0123456789", 10);
    assert_true(capture_render(capture, STREAM_STDOUT, &text));
    assert_string_equal(text.data, "0123456789");
    buf_clear(&text);
    capture_add(capture, STREAM_STDOUT, "ab", 2);
    assert_true(capture_render(capture, STREAM_STDOUT, &text));
    assert_string_equal(text.data, "01234\n... 2 bytes omitted ...\n789ab");
    buf_done(&text);

    buf_init(&text, 20);
    assert_false(capture_render(capture, STREAM_STDOUT, &text));
    buf_done(&text);
    capture_free(capture);
}

static void test_nothing(void **state)
{
    struct capture *capture = capture_new(10);
    struct capture_view view;
    uint64_t omitted;
    size_t len;

    capture_add(capture, STREAM_STDOUT, "", 0);
    capture_view(capture, STREAM_STDOUT, &view);
    assert_int_equal(view.total, 0);
    assert_non_null(view.head);
    assert_non_null(view.tail);
    capture_segments(capture, &len, &omitted);
    assert_int_equal(len, 0);
    capture_free(capture);
    capture_free(NULL);
}

/* Too many changes of stream: the oldest of the second half go, counted. */
static void test_segments_are_bounded(void **state)
{
    enum { CHANGES = 3 * CAPTURE_SEGMENTS_MAX + 5, LOST = CHANGES - CAPTURE_SEGMENTS_MAX };
    struct capture *capture = capture_new(100);
    const struct capture_segment *segments;
    uint64_t omitted;
    size_t len;

    for (size_t i = 0; i < CHANGES; i++)
        capture_add(capture, i % 2 ? STREAM_STDERR : STREAM_STDOUT, "xyz", 3);
    segments = capture_segments(capture, &len, &omitted);
    assert_int_equal(len, CAPTURE_SEGMENTS_MAX);
    assert_int_equal(omitted, 3 * LOST);
    for (size_t i = 0; i < len; i++) {
        size_t number = i < len / 2 ? i : i + LOST;

        assert_int_equal(segments[i].offset, 3 * number);
        assert_int_equal(segments[i].stream, number % 2 ? STREAM_STDERR : STREAM_STDOUT);
        assert_int_equal(segments[i].at, 3 * (number / 2));
        assert_int_equal(segments[i].len, 3);
    }
    capture_add(capture, STREAM_STDOUT, "a", 1); /* goes on after being looked at */
    capture_add(capture, STREAM_STDERR, "b", 1);
    segments = capture_segments(capture, &len, &omitted);
    assert_int_equal(segments[len - 1].stream, STREAM_STDERR);
    assert_int_equal(segments[len - 1].offset, 3 * (uint64_t)CHANGES + 1);
    capture_free(capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_render),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_segments_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
