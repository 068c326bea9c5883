/* layer.json and steps/NNNN.json. Beside memory errors: what is read is written again as the same, and names and paths
 * that come out can be used as such. The first byte says which of the two it is. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/path.h"
#include "layer/layer_json.h"

#include <stdlib.h>

static void check_layer(const char *text, size_t len)
{
    AUTO(layer_record_done) struct layer_record record = {0};
    AUTO(layer_record_done) struct layer_record again = {0};
    AUTO(buf_done) struct buf written = {0};
    struct err err;

    if (layer_record_parse(text, len, "layer.json", &record, &err))
        return;
    if (!layer_id_is_valid(record.id) || (record.name && layer_name_check(record.name, &err)))
        abort();
    for (size_t i = 0; i < record.roots_len; i++)
        if (!path_is_clean(record.roots[i].path))
            abort();
    layer_record_format(&record, &written);
    if (written.len && layer_record_parse(written.data, written.len, "layer.json", &again, &err))
        abort();
    if (written.len && again.roots_len != record.roots_len)
        abort();
}

static void check_step(const char *text, size_t len)
{
    AUTO(step_record_done) struct step_record record = {0};
    AUTO(step_record_done) struct step_record again = {0};
    AUTO(buf_done) struct buf written = {0};
    struct err err;

    if (step_record_parse(text, len, "0001.json", &record, &err))
        return;
    if (record.step.number < 1)
        abort();
    step_record_format(&record, &written);
    if (!written.len || step_record_parse(written.data, written.len, "0001.json", &again, &err) ||
        again.step.number != record.step.number || again.merging != record.merging ||
        again.step.begun.tv_sec != record.step.begun.tv_sec ||
        again.step.begun.tv_nsec != record.step.begun.tv_nsec)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] == 's')
        check_step((const char *)data + 1, size - 1);
    else
        check_layer((const char *)data + 1, size - 1);
    return 0;
}
