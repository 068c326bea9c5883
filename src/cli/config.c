/* `cordon config`: the configuration file of the user, by commands.
 *
 *     init      a file in which every key is explained and none is set, never in the place of one
 *     check     whether a file is right: what is wrong in it with line and the key that is meant
 *     show      every value that counts, and where it comes from
 *     edit      an editor on a copy, which takes the place of the file when it is right
 *     profiles  the names that --profile takes, one a line, for completions
 *
 * What is edited is a copy beside the file, so that no command ever runs with a half of it, and so
 * that a mistake, which would stop every command, is told while the editor is at hand. */
#include "policy/config/config.h"
#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/config_template.h"
#include "cli/console.h"
#include "policy/config/config_values.h"
#include "workspace/presets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct config_options {
    bool wants_json;
};

/* --- the file --- */

/* The user's file, there or not; NULL when no place for it is known. Caller frees. */
static char *own_path(const struct config_file *place, struct err *err)
{
    if (place->dir)
        return path_join(place->dir, CONFIG_NAME);
    err_set(err, ERR_INVALID, "there is no home directory: set CORDON_HOME");
    return NULL;
}

/* What a link leads to, so that it stays one. Caller frees. */
static char *target_of(const char *path)
{
    char *target = realpath(path, NULL);

    return target ? target : alloc_str(path);
}

/* What a command with this profile (NULL: the default) would fail by; once, whatever leads to it. */
static void check_profile(const struct config *config, const char *name,
                          const struct config_file *place, struct strv *problems)
{
    AUTO(config_profile_done) struct config_profile profile = {0};
    AUTO(strv_done) struct strv found = {0};
    struct err err;

    if (config_profile(config, name, place->home, &profile, &err))
        strv_push(&found, err.msg);
    for (size_t i = 0; i < profile.presets.len; i++) {
        struct preset preset;

        if (preset_load(place->dir, profile.presets.items[i], &preset, NULL, &err)) {
            err_wrap(&err, "%s", profile.presets_from);
            strv_push(&found, err.msg);
        } else {
            preset_done(&preset);
        }
    }
    for (size_t i = 0; i < found.len; i++)
        if (!strv_has(problems, found.items[i]))
            strv_push(problems, found.items[i]);
}

/* The text as a configuration with all its profiles, each of which is read. */
static int check_text(const char *text, size_t len, const char *path,
                      const struct config_file *place, struct strv *problems)
{
    AUTO(strv_done) struct strv names = {0};
    struct config *config;
    struct err err;
    const struct config_warning *warnings;
    size_t warnings_len;

    config = config_load(text, len, path, &err);
    if (!config) {
        strv_push(problems, err.msg);
        return -1;
    }
    config_profile_names(config, &names);
    for (size_t i = 0; i < names.len; i++)
        check_profile(config, names.items[i], place, problems);
    if (config_default_profile(config))
        check_profile(config, NULL, place, problems);
    warnings = config_warnings(config, &warnings_len);
    for (size_t i = 0; i < warnings_len; i++)
        console_say("%s:%u: %s", warnings[i].file, warnings[i].line, warnings[i].text);
    config_free(config);
    return problems->len ? -1 : 0;
}

/* --- init --- */

static int config_init(const struct config_options *options, char **words)
{
    AUTO(config_file_done) struct config_file place = {0};
    AUTO_FREE char *path = NULL;
    AUTO_CLOSE int fd = -1;
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct err err;

    if (config_file_place(&place, &err) || !(path = own_path(&place, &err)) ||
        fd_make_dirs(place.dir, 0700, &err))
        return console_fail(&err);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return console_failf("%s is there already; \"cordon config edit\" changes it", path);
    if (fd < 0 || fd_write_all(fd, config_template, strlen(config_template), &err)) {
        if (fd < 0)
            err_sys(&err, "making %s", path);
        return console_fail(&err);
    }
    if (options->wants_json) {
        AUTO_JSON json_t *json = json_pack("{s:o}", "file", json_lossy(path));

        return console_print_json(json);
    }
    console_line(&text, "%s is there now, with every key explained and none set", path);
    return console_print(&text);
}

/* --- check --- */

static int config_check(const struct config_options *options, char **words)
{
    AUTO(config_file_done) struct config_file place = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO(buf_done) struct buf said = {.max = SIZE_MAX / 2};
    AUTO(strv_done) struct strv problems = {0};
    AUTO_FREE char *dir = getcwd(NULL, 0);
    AUTO_FREE char *path = NULL;
    bool is_there;
    struct err err;
    int status;

    if (config_file_place(&place, &err))
        return console_fail(&err);
    path = *words ? path_clean(dir ? dir : "/", *words) : own_path(&place, &err);
    if (!path)
        return console_fail(&err);
    buf_init(&text, CONFIG_SIZE_MAX);
    is_there = (*words ? fd_read_given : fd_read_file)(path, CONFIG_SIZE_MAX, &text, &err) == 0;
    if (!is_there && (*words || (err.sys != ENOENT && err.sys != ENOTDIR)))
        return console_fail(&err);
    if (is_there)
        check_text(text.data ? text.data : "", text.len, path, &place, &problems);
    if (options->wants_json) {
        AUTO_JSON json_t *json =
            json_pack("{s:o, s:b, s:b, s:o}", "file", json_lossy(path), "exists", is_there, "ok",
                      !problems.len, "problems", json_lossy_list(strv_view(&problems)));

        status = console_print_json(json);
    } else {
        for (size_t i = 0; i < problems.len; i++)
            console_line(&said, "%s", problems.items[i]);
        if (!problems.len)
            console_line(&said, is_there ? "%s: right" : "there is no %s, and none is needed",
                         path);
        status = console_print(&said);
    }
    return status == EXIT_OK && problems.len ? EXIT_NO : status;
}

/* --- show --- */

static void print_value(const json_t *item, struct buf *text)
{
    AUTO_FREE char *value = json_dumps(json_object_get(item, "value"), JSON_ENCODE_ANY);
    const char *means = json_string_value(json_object_get(item, "means"));
    const char *from = json_string_value(json_object_get(item, "from"));
    bool is_unset = json_is_null(json_object_get(item, "value")) && !from;
    AUTO_FREE char *setting =
        is_unset ? alloc_strf("%s is not set: %s", json_string_value(json_object_get(item, "key")),
                              means)
                 : alloc_strf("%s = %s", json_string_value(json_object_get(item, "key")), value);

    if (is_unset)
        console_line(text, "%s", setting);
    else
        console_line(text, "%-50s  %s", setting, from ? from : "the default");
}

static int config_show(const struct config_options *options, char **words)
{
    AUTO(config_file_done) struct config_file file = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO(strv_done) struct strv names = {0};
    AUTO_FREE char *dir = getcwd(NULL, 0);
    AUTO_JSON json_t *values = NULL;
    const char *named = getenv("CORDON_HOME");
    const char *from = *words            ? "named here"
                       : named && *named ? "CORDON_HOME"
                                         : "the default place";
    struct err err;

    if (config_file_load(*words, dir ? dir : "/", &file, &err))
        return console_fail(&err);
    values = config_values(file.config);
    config_profile_names(file.config, &names);
    if (options->wants_json) {
        AUTO_JSON json_t *json =
            json_pack("{s:o, s:s, s:O, s:o}", "file", json_lossy(file.path), "file_from", from,
                      "values", values, "profiles", json_lossy_list(strv_view(&names)));

        return console_print_json(json);
    }
    if (file.path)
        console_line(&text, "# %s (%s)", file.path, from);
    else
        console_line(&text, "# no file in %s (%s): \"cordon config init\" makes one",
                     file.dir ? file.dir : "any directory", from);
    for (size_t i = 0; i < json_array_size(values); i++)
        print_value(json_array_get(values, i), &text);
    return console_print(&text);
}

/* --- edit --- */

/* As git(1) runs it: the words of $VISUAL or $EDITOR are a shell's. The exit status, -1 with errno. */
static int run_editor(const char *path)
{
    const char *visual = getenv("VISUAL");
    const char *plain = getenv("EDITOR");
    const char *editor = visual && *visual ? visual : plain && *plain ? plain : "vi";
    AUTO_FREE char *script = alloc_strf("%s \"$@\"", editor);
    char *argv[] = {(char *)"sh", (char *)"-c", script, (char *)editor, (char *)path, NULL};
    int status = -1;
    pid_t child;

    signal(SIGINT, SIG_IGN); /* the editor's own */
    signal(SIGQUIT, SIG_IGN);
    child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        execv("/bin/sh", argv);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether the person wants to go on; a no where there is nobody to ask. */
static bool wants_more(void)
{
    char line[16] = "";

    if (!isatty(STDIN_FILENO))
        return false;
    console_say("edit it again? [Y/n]");
    return fgets(line, sizeof line, stdin) && line[0] != 'n' && line[0] != 'N';
}

/* The copy: beside the file, so that it can take its place, and with its ending, which editors look at.
 * A descriptor. */
static int make_copy(const char *path, const struct buf *text, char **ret, struct err *err)
{
    AUTO_FREE char *dir = path_parent(path);
    AUTO_FREE char *copy = alloc_strf("%s/.edit-XXXXXX.toml", dir);
    AUTO_CLOSE int fd = mkostemps(copy, (int)strlen(".toml"), O_CLOEXEC);

    if (fd < 0)
        return err_sys(err, "making a copy in %s", dir);
    if (fd_write_all(fd, text->data, text->len, err)) {
        unlink(copy);
        return err_wrap(err, "%s", copy);
    }
    *ret = TAKE_PTR(copy);
    return 0;
}

/* The text of the file, or where there is none what init would write. */
static int read_or_template(const char *path, struct buf *ret, struct err *err)
{
    buf_clear(ret);
    if (fd_read_file(path, CONFIG_SIZE_MAX, ret, err) == 0)
        return 0;
    if (err->sys != ENOENT)
        return -1;
    buf_append_str(ret, config_template);
    return 0;
}

/* The editor, until the copy is right or the person gives up: 0: it is right, and is in `text`. */
static int edit_until_right(const char *copy, const struct config_file *place, struct buf *text,
                            struct err *err)
{
    for (;;) {
        AUTO(strv_done) struct strv problems = {0};
        int status = run_editor(copy);

        if (status)
            return err_set(err, ERR_SYSTEM, "the editor ($VISUAL, $EDITOR) ended with %d", status);
        buf_done(text);
        if (fd_read_file(copy, CONFIG_SIZE_MAX, text, err))
            return -1;
        if (check_text(text->data ? text->data : "", text->len, copy, place, &problems) == 0)
            return 0;
        for (size_t i = 0; i < problems.len; i++)
            console_say("%s", problems.items[i]);
        if (!wants_more())
            return err_set(err, ERR_INVALID, "it is not right");
    }
}

static bool is_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

/* Whether the file has that text. */
static bool is_file(const char *path, const struct buf *text)
{
    AUTO(buf_done) struct buf there = {.max = CONFIG_SIZE_MAX};
    struct err ignored;

    return fd_read_file(path, CONFIG_SIZE_MAX, &there, &ignored) == 0 && is_same(&there, text);
}

static int config_edit(const struct config_options *options, char **words)
{
    AUTO(config_file_done) struct config_file place = {0};
    AUTO(buf_done) struct buf before = {.max = CONFIG_SIZE_MAX};
    AUTO(buf_done) struct buf now = {.max = CONFIG_SIZE_MAX};
    AUTO(buf_done) struct buf text = {.max = CONFIG_SIZE_MAX};
    AUTO_FREE char *path = NULL;
    AUTO_FREE char *target = NULL;
    AUTO_FREE char *copy = NULL;
    struct err err;

    if (options->wants_json)
        return console_failf("--json means nothing to \"cordon config edit\"");
    if (config_file_place(&place, &err) || !(path = own_path(&place, &err)) ||
        fd_make_dirs(place.dir, 0700, &err))
        return console_fail(&err);
    target = target_of(path);
    if (read_or_template(target, &before, &err) || make_copy(target, &before, &copy, &err))
        return console_fail(&err);
    if (edit_until_right(copy, &place, &text, &err) || read_or_template(target, &now, &err)) {
        console_fail(&err);
        if (is_file(copy, &before) && unlink(copy) == 0)
            return console_failf("%s is as it was", path);
        return console_failf("%s is as it was; what you wrote is in %s", path, copy);
    }
    if (!is_same(&now, &before))
        return console_failf("%s was changed by somebody else meanwhile, and is left so; what you "
                             "wrote is in %s",
                             path, copy);
    if (!is_same(&text, &before) && fd_replace_file(target, &text, 0600, &err)) {
        console_fail(&err);
        return console_failf("what you wrote is in %s", copy);
    }
    unlink(copy);
    console_say("%s %s", path, is_same(&text, &before) ? "is as it was" : "is changed");
    return EXIT_OK;
}

/* --- profiles --- */

/* Shells may expand what they are offered, so a name with anything else is not. */
static bool is_plain_name(const char *name)
{
    return *name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_.-")];
}

/* What a completion needs, so nothing is complained about: of a broken file there are no names. */
static int config_profiles(const struct config_options *options, char **words)
{
    AUTO(config_file_done) struct config_file file = {0};
    AUTO(strv_done) struct strv names = {0};
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    struct err ignored;

    strv_push(&names, "read-only");
    strv_push(&names, "workspace-write");
    strv_push(&names, "danger-full-access");
    if (config_file_load(NULL, "/", &file, &ignored) == 0)
        config_profile_names(file.config, &names);
    if (options->wants_json) {
        AUTO_JSON json_t *json = json_lossy_list(strv_view(&names));

        return console_print_json(json);
    }
    for (size_t i = 0; i < names.len; i++)
        if (is_plain_name(names.items[i]))
            console_line(&text, "%s", names.items[i]);
    return console_print(&text);
}

/* --- the command --- */

static const struct option config_options[] = {
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct config_options, wants_json),
     .help = "Prints one JSON value."},
    {.name = NULL},
};

static const struct option_group config_groups[] = {{"Options", config_options}, {NULL, NULL}};

static const char *const config_words[] = {"init", "check", "show", "edit", "profiles", NULL};

/* In the order of the words. */
static const struct subcommand {
    bool takes_file;
    int (*run)(const struct config_options *options, char **words);
} subcommands[] = {
    {false, config_init}, {true, config_check},     {true, config_show},
    {false, config_edit}, {false, config_profiles},
};

static int config_run(char **argv)
{
    struct config_options options = {.wants_json = false};
    char **words, **rest;
    int status, which;

    if (!argv[1] || *argv[1] == '-') {
        if (command_parse(&command_config, argv, &options, &rest, &status))
            status = console_failf("what about the configuration? cordon config init, check, show "
                                   "or edit (\"cordon help config\" explains)");
        return status;
    }
    which = command_find_word(&command_config, argv[1]);
    if (which < 0)
        return EXIT_FAILED;
    if (!command_parse(&command_config, argv + 1, &options, &words, &status))
        return status;
    rest = words;
    if (*words && subcommands[which].takes_file &&
        !command_parse(&command_config, words, &options, &rest, &status))
        return status; /* options behind the file count like those in front of it */
    if (!command_has_no_arguments(&command_config, rest, &status))
        return status;
    return subcommands[which].run(&options, words);
}

const struct command command_config = {
    .name = "config",
    .summary = "make, check, show or edit the configuration",
    .usage = "init|check [FILE]|show [FILE]|edit|profiles [--json]",
    .words = config_words,
    .about =
        "The configuration is config.toml in $CORDON_HOME, or else in ~/.config/cordon. None is "
        "needed.\n"
        "\n"
        "\"init\" writes one in which every key is explained and none is set, but never over one "
        "that is there. \"check\" tells whether yours, or FILE, is right: what is wrong with its "
        "line, and the key or word that was probably meant. \"show\" prints every value that "
        "counts, with the line that it comes from. \"edit\" opens $VISUAL or $EDITOR on a copy, "
        "which takes the place of the file when it is right; else you are asked to edit it again. "
        "\"profiles\" prints the names that --profile takes.\n"
        "\n"
        "The exit status is 0; 1 when \"check\" finds a mistake; 125 when it could not be done.\n",
    .examples = "  cordon config init\n"
                "  cordon config check\n"
                "  cordon config check ~/.codex/config.toml\n"
                "  cordon config show --json | jq '.values[] | select(.from)'\n"
                "  EDITOR=nano cordon config edit\n",
    .page = "cordon-config",
    .groups = config_groups,
    .run = config_run,
};
