/* Reading layers of rules. The only questions here are which files count; what cannot be read is a
 * problem of the rules, like what cannot be parsed, because it may forbid something. */
#include "rules/rules_disk.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "rules/rules.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define SUFFIX ".rules"

int rules_read(const char *path, struct buf *ret, struct err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_sys(err, "reading %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "%s is no regular file", path);
    return fd_read_file(path, RULES_SIZE_MAX, ret, err);
}

static int load(struct rules *rules, const struct rules_origin *origin, struct err *err)
{
    AUTO(buf_done) struct buf text = {0};

    if (rules_read(origin->file, &text, err)) {
        rules_add_problem(rules, origin, err->msg);
        return -1;
    }
    return rules_add_text(rules, origin, text.data ? text.data : "", text.len, err);
}

int rules_load_file(struct rules *rules, const char *path, const char *home, struct err *err)
{
    const struct rules_origin origin = {.layer = RULE_LAYER_OPTION, .file = path, .home = home};

    return load(rules, &origin, err);
}

/* Folders, sockets and the like are no files of rules; a link to nothing is one that is missing. */
static bool is_candidate(const char *path)
{
    struct stat st;

    return stat(path, &st) || S_ISREG(st.st_mode);
}

/* Sorted. A folder that is not there is empty. */
static int list_folder(const char *folder, struct strv *ret, struct err *err)
{
    DIR *dir = opendir(folder);
    const struct dirent *item;

    if (!dir)
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(err, "reading %s", folder);
    for (errno = 0; (item = readdir(dir)); errno = 0) {
        AUTO_FREE char *path = path_join(folder, item->d_name);

        if (str_ends(item->d_name, SUFFIX) && is_candidate(path))
            strv_push_take(ret, TAKE_PTR(path));
    }
    if (errno) {
        err_sys(err, "reading %s", folder);
        closedir(dir);
        return -1;
    }
    closedir(dir);
    strv_sort(ret);
    return 0;
}

static void visit_folder(const struct rules_visitor *visitor, enum rule_layer layer,
                         const char *parent, const char *home)
{
    AUTO_FREE char *folder = path_join(parent, RULES_FOLDER);
    struct rules_origin origin = {.layer = layer, .file = folder, .home = home};
    AUTO(strv_done) struct strv paths = {0};
    struct err err;

    if (list_folder(folder, &paths, &err))
        visitor->visit(visitor->data, &origin, &err);
    for (size_t i = 0; i < paths.len; i++) {
        origin.file = paths.items[i];
        visitor->visit(visitor->data, &origin, NULL);
    }
}

void rules_visit(const struct rules_places *places, const struct rules_visitor *visitor)
{
    static const char *const names[] = {".codex", ".cordon"};

    if (places->user)
        visit_folder(visitor, RULE_LAYER_USER, places->user, places->home);
    for (size_t i = 0; places->project && i < 2; i++) {
        AUTO_FREE char *folder = path_join(places->project, names[i]);

        visit_folder(visitor, RULE_LAYER_PROJECT, folder, places->home);
    }
    if (places->administrator)
        visit_folder(visitor, RULE_LAYER_ADMINISTRATOR, places->administrator, places->home);
}

static void load_visited(void *data, const struct rules_origin *origin, const struct err *failure)
{
    struct rules *rules = data;
    struct err ignored; /* the rules remember it */

    if (failure)
        rules_add_problem(rules, origin, failure->msg);
    else
        (void)load(rules, origin, &ignored);
}

void rules_load_layers(struct rules *rules, const struct rules_places *places)
{
    const struct rules_visitor visitor = {.visit = load_visited, .data = rules};

    rules_visit(places, &visitor);
}
