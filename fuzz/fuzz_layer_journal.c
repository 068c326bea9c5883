/* Whatever a disk says of an accept, the parser stays in bounds, names nothing outside of a root, and what it reads it writes
 * again so that it reads the same. */
#include "fuzz.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/path.h"
#include "layer/journal.h"

#include <stdlib.h>
#include <string.h>

static void check_paths(const struct journal *journal)
{
    for (size_t i = 0; i < journal->len; i++) {
        AUTO_FREE char *whole = alloc_strf("/%s", journal->items[i].path);

        if (!path_is_clean(whole) || !*journal->items[i].path)
            abort();
    }
}

static bool is_same(const struct journal_item *one, const struct journal_item *other)
{
    return one->kind == other->kind && one->how == other->how && one->is_dir == other->is_dir &&
           one->stays == other->stays && one->root == other->root && one->step == other->step &&
           strcmp(one->path, other->path) == 0 && change_stamp_equal(&one->layer, &other->layer) &&
           change_stamp_equal(&one->real, &other->real);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(journal_done) struct journal journal = {0};
    AUTO(journal_done) struct journal again = {0};
    AUTO(buf_done) struct buf text = {.max = JOURNAL_MAX};
    struct err err;

    if (journal_parse((const char *)data, size, &journal, &err))
        return 0;
    if (journal.whole > size || journal.settled > journal.whole)
        abort();
    check_paths(&journal);
    if (!journal.whole)
        return 0;
    if (!journal_put_plan(&text, &journal) || journal_parse(text.data, text.len, &again, &err) ||
        again.len != journal.len || again.folders_len != journal.folders_len)
        abort();
    for (size_t i = 0; i < again.len; i++)
        if (!is_same(&journal.items[i], &again.items[i]))
            abort();
    return 0;
}
