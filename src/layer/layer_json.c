/* See layer_json.h. Both are objects with a version. What a later Cordon adds is left alone, and a file of another version
 * is refused, so that an older Cordon never works on what it does not understand. Whoever may write below the home
 * directory may have written these, so everything in them is checked before it is used: a number becomes the name
 * of a folder, a path is opened.
 *
 * A path of any bytes is "path", or "pathBase64" where it is no UTF-8. The argv of a step is for people: cut, and
 * lossy. */
#include "layer/layer_json.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "layer/change.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    ARGV_MAX = 64,         /* words of a step that are kept */
    ARGV_BYTES_MAX = 8192, /* of all of them */
    NAME_MAX_BYTES = 64,
};

bool layer_id_is_valid(const char *text)
{
    return strlen(text) == RECORD_ID_LEN && strspn(text, "0123456789abcdef") == RECORD_ID_LEN;
}

int layer_name_check(const char *name, struct err *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

    if (!*name || strlen(name) > NAME_MAX_BYTES || name[strspn(name, plain)] || name[0] == '-' ||
        name[0] == '.')
        return err_set(
            err, ERR_INVALID,
            "'%.64s' is no name for a layer: up to %d letters, digits and \"-_.\", beginning "
            "with a letter, a digit or \"_\"",
            name, NAME_MAX_BYTES);
    if (layer_id_is_valid(name))
        return err_set(err, ERR_INVALID, "'%s' looks like the id of a layer; choose another name",
                       name);
    return 0;
}

/* --- reading --- */

static int read_time(const struct json_at *object, const char *key, struct timespec *ret,
                     struct err *err)
{
    struct json_at at = json_at_field(object, key);
    int64_t ns = 0;

    if (json_at_integer(&at, 0, INT64_MAX, &ns, err))
        return -1;
    *ret = change_time_of(ns);
    return 0;
}

static int read_bool(const struct json_at *object, const char *key, bool *ret, struct err *err)
{
    struct json_at at = json_at_field(object, key);

    return json_at_is_given(&at) ? json_at_bool(&at, ret, err) : 0;
}

static int read_int(const struct json_at *object, const char *key, int64_t min, int *ret,
                    struct err *err)
{
    struct json_at at = json_at_field(object, key);
    int64_t value = 0;

    if (!json_at_is_given(&at))
        return 0;
    if (json_at_integer(&at, min, INT32_MAX, &value, err))
        return -1;
    *ret = (int)value;
    return 0;
}

static int read_boot(const struct json_at *object, char ret[RECORD_BOOT_MAX + 1], struct err *err)
{
    struct json_at at = json_at_field(object, "boot");
    const char *text;

    if (json_at_string(&at, &text, err))
        return -1;
    if (strlen(text) > RECORD_BOOT_MAX)
        return json_at_fail(&at, err, "is too long");
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

static int read_version(const struct json_at *root, struct err *err)
{
    struct json_at at = json_at_field(root, "version");
    int64_t version;

    if (json_at_integer(&at, 1, INT32_MAX, &version, err))
        return -1;
    return version == VERSION
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "$.version: made by a newer Cordon (version %d, this one knows %d)",
                         (int)version, VERSION);
}

/* The caller frees. NULL on failure. */
static char *read_base64(const struct json_at *at, struct err *err)
{
    AUTO_FREE char *path = NULL;
    const char *text;
    size_t len;

    if (json_at_string(at, &text, err))
        return NULL;
    len = base64_decoded_len(text, strlen(text));
    path = alloc_zero(1, len + 1);
    if (base64_decode(text, strlen(text), path, err)) {
        err_wrap(err, "$: a path");
        return NULL;
    }
    return TAKE_PTR(path);
}

/* A clean absolute path; the caller frees. */
static char *read_path(const struct json_at *object, struct err *err)
{
    struct json_at plain = json_at_field(object, "path");
    struct json_at coded = json_at_field(object, "pathBase64");
    AUTO_FREE char *path = NULL;
    const char *text;

    if (json_at_is_given(&coded))
        path = read_base64(&coded, err);
    else if (json_at_string(&plain, &text, err) == 0)
        path = alloc_str(text);
    if (!path)
        return NULL;
    if (!path_is_clean(path)) {
        json_at_fail(&plain, err, "should be a clean absolute path");
        return NULL;
    }
    return TAKE_PTR(path);
}

static int read_number(const struct json_at *object, const char *key, uint64_t *ret,
                       struct err *err)
{
    struct json_at at = json_at_field(object, key);
    int64_t value;

    if (json_at_integer(&at, INT64_MIN, INT64_MAX, &value, err))
        return -1;
    *ret = (uint64_t)value;
    return 0;
}

struct layer_root *layer_record_add_root(struct layer_record *record, const char *path)
{
    struct layer_root *root;

    record->roots =
        alloc_grow(record->roots, record->roots_len, &record->roots_cap, sizeof *record->roots);
    root = &record->roots[record->roots_len++];
    *root = (struct layer_root){.path = alloc_str(path)};
    return root;
}

static int read_root(const struct json_at *at, struct layer_record *record, struct err *err)
{
    AUTO_FREE char *path = NULL;
    uint64_t dev, ino;
    struct layer_root *root;
    bool is_direct = false;

    if (json_at_object(at, err))
        return -1;
    path = read_path(at, err);
    if (!path || read_number(at, "dev", &dev, err) || read_number(at, "ino", &ino, err) ||
        read_bool(at, "direct", &is_direct, err))
        return -1;
    for (size_t i = 0; i < record->roots_len; i++)
        if (str_eq(record->roots[i].path, path))
            return json_at_fail(at, err, "is there twice");
    root = layer_record_add_root(record, path);
    root->dev = dev;
    root->ino = ino;
    root->is_direct = is_direct;
    return 0;
}

static int read_roots(const struct json_at *object, struct layer_record *record, struct err *err)
{
    struct json_at at = json_at_field(object, "roots");
    size_t len;

    if (json_at_list(&at, &len, err))
        return -1;
    if (len > RECORD_ROOTS_MAX)
        return json_at_fail(&at, err, "has more than %d items", RECORD_ROOTS_MAX);
    for (size_t i = 0; i < len; i++) {
        struct json_at item = json_at_item(&at, i);

        if (read_root(&item, record, err))
            return -1;
    }
    return 0;
}

static int read_name(const struct json_at *object, struct layer_record *record, struct err *err)
{
    struct json_at id = json_at_field(object, "id");
    struct json_at name = json_at_field(object, "name");
    const char *text;

    if (json_at_string(&id, &text, err))
        return -1;
    if (!layer_id_is_valid(text))
        return json_at_fail(&id, err, "should be %d hexadecimal digits", RECORD_ID_LEN);
    memcpy(record->id, text, RECORD_ID_LEN + 1);
    if (!json_at_is_given(&name))
        return 0;
    if (json_at_string(&name, &text, err))
        return -1;
    if (layer_name_check(text, err))
        return err_wrap(err, "$.name");
    record->name = alloc_str(text);
    return 0;
}

static int read_layer(const json_t *json, struct layer_record *record, struct err *err)
{
    struct json_at root = json_at_root(json);
    struct json_at bytes = json_at_field(&root, "maxBytes");
    int64_t max = 0;

    if (json_at_object(&root, err) || read_version(&root, err) || read_name(&root, record, err) ||
        read_boot(&root, record->boot, err) || read_time(&root, "created", &record->created, err) ||
        read_bool(&root, "git", &record->has_git, err) ||
        json_at_strings(&root, "direct", &record->direct, err) || read_roots(&root, record, err))
        return -1;
    if (json_at_is_given(&bytes) && json_at_integer(&bytes, 0, INT64_MAX, &max, err))
        return -1;
    record->max_bytes = (uint64_t)max;
    for (size_t i = 0; i < record->direct.len; i++)
        if (!path_is_clean(record->direct.items[i]))
            return err_set(err, ERR_INVALID, "$.direct[%zu]: should be a clean absolute path", i);
    return 0;
}

int layer_record_parse(const char *text, size_t len, const char *path, struct layer_record *ret,
                       struct err *err)
{
    AUTO_JSON json_t *json = json_parse(text, len, err);
    AUTO(layer_record_done) struct layer_record record = {0};

    if (!json || read_layer(json, &record, err))
        return err_wrap(err, "%s", path);
    *ret = record;
    memset(&record, 0, sizeof record);
    return 0;
}

static int read_step(const json_t *json, struct step_record *record, struct err *err)
{
    struct json_at root = json_at_root(json);
    struct json_at number = json_at_field(&root, "number");
    struct json_at cwd = json_at_field(&root, "cwd");
    struct json_at clock = json_at_field(&root, "clock");
    struct layer_step *step = &record->step;
    const char *text;
    int64_t value = 0;
    int commands = 0;

    step->wait_status = -1;
    if (json_at_object(&root, err) || read_version(&root, err) ||
        json_at_integer(&number, 1, INT32_MAX - 1, &value, err) ||
        json_at_strings(&root, "argv", &step->argv, err) || read_boot(&root, record->boot, err) ||
        read_time(&root, "begun", &step->begun, err) ||
        read_time(&root, "ended", &step->ended, err) ||
        read_int(&root, "waitStatus", -1, &step->wait_status, err) ||
        read_int(&root, "commands", 0, &commands, err) ||
        read_int(&root, "squashedFrom", 0, &step->squashed_from, err) ||
        read_int(&root, "merging", 0, &record->merging, err) ||
        read_bool(&root, "shared", &step->is_shared, err) ||
        read_bool(&root, "removed", &record->is_removed, err))
        return -1;
    step->number = (int)value;
    step->commands = (unsigned)commands;
    if (json_at_is_given(&clock) &&
        json_at_integer(&clock, INT64_MIN, INT64_MAX, &record->clock, err))
        return -1;
    if (!json_at_is_given(&cwd))
        return 0;
    if (json_at_string(&cwd, &text, err))
        return -1;
    step->cwd = alloc_str(text);
    return 0;
}

int step_record_parse(const char *text, size_t len, const char *path, struct step_record *ret,
                      struct err *err)
{
    AUTO_JSON json_t *json = json_parse(text, len, err);
    AUTO(step_record_done) struct step_record record = {0};

    if (!json || read_step(json, &record, err))
        return err_wrap(err, "%s", path);
    *ret = record;
    memset(&record, 0, sizeof record);
    return 0;
}

/* --- writing --- */

static void append_json(json_t *json, struct buf *ret)
{
    AUTO_JSON json_t *owned = json;
    AUTO_FREE char *text = json_dumps(owned, JSON_INDENT(1) | JSON_ENSURE_ASCII);

    buf_init(ret, RECORD_MAX);
    if (text && buf_append_str(ret, text))
        buf_append_str(ret, "\n");
}

static json_t *root_to_json(const struct layer_root *root)
{
    json_t *json = json_object();
    size_t len = strlen(root->path);

    if (utf8_is_valid(root->path, len)) {
        json_object_set_new(json, "path", json_string(root->path));
    } else {
        AUTO_FREE char *coded = alloc_zero(1, base64_encoded_len(len) + 1);

        base64_encode(root->path, len, coded);
        json_object_set_new(json, "pathBase64", json_string(coded));
    }
    json_object_set_new(json, "dev", json_integer((json_int_t)root->dev));
    json_object_set_new(json, "ino", json_integer((json_int_t)root->ino));
    if (root->is_direct)
        json_object_set_new(json, "direct", json_true());
    return json;
}

void layer_record_format(const struct layer_record *record, struct buf *ret)
{
    json_t *json = json_object();
    json_t *roots = json_array();

    for (size_t i = 0; i < record->roots_len; i++)
        json_array_append_new(roots, root_to_json(&record->roots[i]));
    json_object_set_new(json, "version", json_integer(VERSION));
    json_object_set_new(json, "id", json_string(record->id));
    if (record->name)
        json_object_set_new(json, "name", json_string(record->name));
    json_object_set_new(json, "created", json_integer(change_ns_of(&record->created)));
    json_object_set_new(json, "boot", json_string(record->boot));
    if (record->has_git)
        json_object_set_new(json, "git", json_true());
    if (record->max_bytes)
        json_object_set_new(json, "maxBytes", json_integer((json_int_t)record->max_bytes));
    json_object_set_new(json, "direct", json_lossy_list(strv_view(&record->direct)));
    json_object_set_new(json, "roots", roots);
    append_json(json, ret);
}

static json_t *argv_to_json(const struct strv *argv)
{
    json_t *json = json_array();
    size_t bytes = 0;

    for (size_t i = 0; i < argv->len && i < ARGV_MAX; i++) {
        size_t len = strlen(argv->items[i]);

        if (bytes + len > ARGV_BYTES_MAX) {
            json_array_append_new(json, json_string("..."));
            break;
        }
        bytes += len;
        json_array_append_new(json, json_lossy(argv->items[i]));
    }
    return json;
}

void step_record_format(const struct step_record *record, struct buf *ret)
{
    const struct layer_step *step = &record->step;
    json_t *json = json_object();

    json_object_set_new(json, "version", json_integer(VERSION));
    json_object_set_new(json, "number", json_integer(step->number));
    json_object_set_new(json, "argv", argv_to_json(&step->argv));
    if (step->cwd && strlen(step->cwd) < ARGV_BYTES_MAX)
        json_object_set_new(json, "cwd", json_lossy(step->cwd));
    json_object_set_new(json, "begun", json_integer(change_ns_of(&step->begun)));
    json_object_set_new(json, "ended", json_integer(change_ns_of(&step->ended)));
    json_object_set_new(json, "waitStatus", json_integer(step->wait_status));
    json_object_set_new(json, "commands", json_integer(step->commands));
    json_object_set_new(json, "boot", json_string(record->boot));
    json_object_set_new(json, "clock", json_integer(record->clock));
    if (step->squashed_from)
        json_object_set_new(json, "squashedFrom", json_integer(step->squashed_from));
    if (record->merging)
        json_object_set_new(json, "merging", json_integer(record->merging));
    if (step->is_shared)
        json_object_set_new(json, "shared", json_true());
    if (record->is_removed)
        json_object_set_new(json, "removed", json_true());
    append_json(json, ret);
}

/* --- their end --- */

void layer_record_done(struct layer_record *record)
{
    for (size_t i = 0; i < record->roots_len; i++)
        free(record->roots[i].path);
    free(record->roots);
    free(record->name);
    strv_done(&record->direct);
    memset(record, 0, sizeof *record);
}

void step_record_done(struct step_record *record)
{
    strv_done(&record->step.argv);
    free(record->step.cwd);
    memset(record, 0, sizeof *record);
}
