/* See layer_words.h. The one rule: a word with a slash is a path, so that what is called like a layer can be named all
 * the same (./agent). Options may follow the words, since that is where they come to mind; what follows "--" is left
 * to the command. */
#include "cli/layer_words.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/console.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_SHOWN = 8 }; /* digits of an id */

static void add_word(struct layer_words *words, const char *word, bool is_first)
{
    if (is_first && !strchr(word, '/'))
        words->layer = layers_find_id(word);
    if (!is_first || !words->layer)
        strv_push_take(&words->paths, path_clean(words->cwd, word));
}

bool layer_words_parse(const struct command *command, char **argv, void *data,
                       struct layer_words *ret, int *ret_status)
{
    bool is_first = true;

    *ret = (struct layer_words){.cwd = getcwd(NULL, 0)};
    if (!ret->cwd || *ret->cwd != '/') {
        *ret_status = console_failf("the current directory is not to be found");
        return false;
    }
    for (char **rest;; argv = rest) {
        if (!command_parse(command, argv, data, &rest, ret_status))
            return false;
        if (rest > argv + 1 && str_eq(rest[-1], "--")) {
            ret->behind = rest;
            return true;
        }
        if (!*rest)
            return true;
        if (!**rest) {
            *ret_status = console_failf("cordon %s: a path is empty", command->name);
            return false;
        }
        add_word(ret, *rest, is_first);
        is_first = false;
    }
}

void layer_words_done(struct layer_words *words)
{
    free(words->cwd);
    free(words->layer);
    strv_done(&words->paths);
    *words = (struct layer_words){.cwd = NULL};
}

/* --- the layer --- */

static bool is_in_a_root(const struct layer *layer, const char *path)
{
    size_t len;
    const struct layer_root *roots = layer_roots(layer, &len);

    for (size_t i = 0; i < len; i++)
        if (!roots[i].is_direct && path_is_within(path, roots[i].path))
            return true;
    return false;
}

/* The path without links in what leads to its last name; NULL: there is no such directory. Caller frees. */
static char *without_links(const char *path)
{
    AUTO_FREE char *parent = path_parent(path);
    AUTO_FREE char *real = realpath(parent, NULL);

    return real ? path_join(real, path_name(path)) : NULL;
}

/* Roots are canonical, and what a person names need not be. One above a root means all of that root. */
static int settle_path(const struct layer *layer, char **path, struct err *err)
{
    AUTO_FREE char *name = layer_shown_name(layer);
    AUTO_FREE char *real = NULL;
    size_t len;
    const struct layer_root *roots = layer_roots(layer, &len);

    if (is_in_a_root(layer, *path))
        return 0;
    real = without_links(*path);
    if (real && is_in_a_root(layer, real)) {
        free(*path);
        *path = TAKE_PTR(real);
        return 0;
    }
    for (size_t i = 0; i < len; i++)
        if (path_is_within(roots[i].path, *path))
            return 0;
    return err_set(err, ERR_INVALID,
                   "%.120s is in no folder of the layer %s, nor the name of a layer (\"cordon "
                   "layers\" lists them)",
                   *path, name);
}

struct layer *layer_words_open(struct layer_words *words, enum layer_use use, const char *held_by,
                               struct err *err)
{
    AUTO(layer_auto) struct layer *layer = layer_open(words->layer, words->cwd, use, held_by, err);

    for (size_t i = 0; layer && i < words->paths.len; i++)
        if (settle_path(layer, &words->paths.items[i], err))
            return NULL;
    return TAKE_PTR(layer);
}

char *const *layer_words_paths(const struct layer_words *words)
{
    return words->paths.len ? strv_view(&words->paths) : NULL;
}

/* A typing error looks like "nothing", and so does the name of a layer that is not there. */
size_t layer_words_tell_idle(const struct layer_words *words, const struct layer *layer,
                             const struct strv *found)
{
    AUTO_FREE char *name = layer_shown_name(layer);
    size_t count = 0;

    for (size_t i = 0; i < words->paths.len; i++) {
        const char *path = words->paths.items[i];
        AUTO_FREE char *shown = layer_shown_path(words->cwd, path);
        AUTO_FREE char *plain = utf8_plain(shown);
        struct stat st;
        bool is_known = false;

        for (size_t k = 0; k < found->len && !is_known; k++)
            is_known =
                path_is_within(found->items[k], path) || path_is_within(path, found->items[k]);
        count += !is_known;
        if (!is_known)
            console_say("%s: nothing is changed there in the layer %s%s", plain, name,
                        !words->layer && lstat(path, &st)
                            ? ", and no layer is called so (cordon layers)"
                            : "");
    }
    return count;
}

size_t layer_words_tell_unchanged(const struct layer_words *words, const struct layer *layer,
                                  const struct changes *changes)
{
    AUTO(strv_done) struct strv found = {0};

    for (size_t i = 0; words->paths.len && i < changes->len; i++) {
        const struct change *change = &changes->items[i];

        strv_push_take(&found, change_path(layer, change));
        if (change->from)
            strv_push_take(&found, change_from(layer, change));
    }
    return layer_words_tell_idle(words, layer, &found);
}

void layer_auto(struct layer **slot)
{
    if (*slot)
        layer_close(*slot);
}

/* --- as it is written --- */

char *layer_shown_path(const char *cwd, const char *path)
{
    if (str_eq(path, cwd))
        return alloc_str(".");
    if (path_is_within(path, cwd))
        return alloc_str(path + strlen(cwd) + !str_eq(cwd, "/"));
    return alloc_str(path);
}

char *layer_shown_name(const struct layer *layer)
{
    const char *name = layer_own_name(layer);

    return name ? alloc_str(name) : alloc_strn(layer_id(layer), ID_SHOWN);
}

char *layer_shell_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=@%+,-";
    struct buf word = {.max = SIZE_MAX / 2};

    if (*text && *text != '-' && !text[strspn(text, plain)])
        return alloc_str(text);
    buf_append_str(&word, *text == '-' ? "./" : "");
    buf_append_str(&word, "'");
    for (; *text; text++)
        if (*text == '\'')
            buf_append_str(&word, "'\\''");
        else
            buf_append(&word, text, 1);
    buf_append_str(&word, "'");
    return buf_take(&word);
}
