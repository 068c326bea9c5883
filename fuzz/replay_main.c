/* Runs a fuzz target over its corpus without a fuzzer: every file of the folder given as argument
 * is one input. So every finding that was kept, and every seed, is an ordinary test with any
 * compiler.
 *
 * Each input lies in a heap block of exactly its size, so a sanitizer build sees one byte too many.
 */
#include "fuzz.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/strv.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 1 << 20 };

static int corpus_list(const char *folder, struct strv *ret, struct err *err)
{
    DIR *dir = opendir(folder);

    if (!dir)
        return err_sys(err, "opening %s", folder);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            strv_push_take(ret, path_join(folder, entry->d_name));
    closedir(dir);
    strv_sort(ret);
    if (ret->len == 0)
        return err_set(err, ERR_INVALID, "%s holds no input", folder);
    return 0;
}

static int input_run(const char *path, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO_FREE uint8_t *exact = NULL;

    if (fd_read_file(path, INPUT_MAX, &text, err))
        return -1;
    exact = malloc(text.len ? text.len : 1);
    if (!exact)
        return err_set(err, ERR_LIMIT, "no memory for %zu bytes", text.len);
    if (text.len)
        memcpy(exact, text.data, text.len);
    LLVMFuzzerTestOneInput(exact, text.len);
    return 0;
}

int main(int argc, char **argv)
{
    AUTO(strv_done) struct strv inputs = {0};
    struct err err = {0};

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    if (corpus_list(argv[1], &inputs, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < inputs.len; i++) {
        fprintf(stderr, "%s\n", inputs.items[i]); /* the last line names the culprit of a crash */
        if (input_run(inputs.items[i], &err)) {
            fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
    }
    printf("%zu inputs\n", inputs.len);
    return 0;
}
