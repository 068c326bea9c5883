/* `cordon presets`: which presets for tools there are, and what each of them opens and sets. What a
 * preset comes to in a workspace shows `cordon explain --with NAME`. */
#include "workspace/presets.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/console.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* "npm, pip": what the lists of a preset have, each behind `before`. */
static char *join(const struct strv *texts, const char *before)
{
    struct buf out = {.max = SIZE_MAX / 2};

    for (size_t i = 0; i < texts->len; i++)
        buf_appendf(&out, "%s%s%s", i ? ", " : "", before, texts->items[i]);
    return out.data ? buf_take(&out) : alloc_str("");
}

/* The directory that is {cache}. */
static char *cache_text(const struct preset_file *file, const struct preset *preset)
{
    return alloc_strf("~/" PRESETS_CACHE_DIR "/%s%s", file->name,
                      preset->per_workspace ? "/WORKSPACE" : "");
}

/* --- for programs --- */

static json_t *env_json(const struct strv *env)
{
    json_t *json = json_object();

    for (size_t i = 0; i < env->len; i++) {
        const char *pair = env->items[i];
        AUTO_FREE char *name = alloc_strn(pair, strcspn(pair, "="));

        json_object_set_new(json, name, json_lossy(pair + strlen(name) + 1));
    }
    return json;
}

static json_t *preset_json(const struct preset_file *file, const struct preset *preset)
{
    AUTO_FREE char *cache = cache_text(file, preset);
    json_t *opens = json_array();
    json_t *outside = json_object();

    json_array_append_new(opens, json_lossy(cache));
    for (size_t i = 0; i < preset->write.len; i++) {
        AUTO_FREE char *path = alloc_strf("~/%s", preset->write.items[i]);

        json_array_append_new(opens, json_lossy(path));
    }
    for (size_t i = 0; i < preset->outside_len; i++) {
        AUTO_FREE char *path = alloc_strf("~/%s", preset->outside[i].path);

        json_object_set_new(outside, path, env_json(&preset->outside[i].env));
    }
    return json_pack("{s:s, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     file->name, "file", json_lossy(file->path), "own", file->is_own, "shadows",
                     file->is_twice, "about", json_lossy(preset->about), "why",
                     json_lossy(preset->why), "opens", opens, "env", env_json(&preset->env),
                     "offline_env", env_json(&preset->offline_env), "outside", outside, "hosts",
                     json_lossy_list(strv_view(&preset->hosts)), "hosts_from",
                     json_lossy_list(strv_view(&preset->hosts_from)));
}

/* --- for people --- */

static const char *whose(const struct preset_file *file)
{
    return file->is_twice ? " (yours, in place of Cordon's)" : file->is_own ? " (yours)" : "";
}

static void print_variables(const char *what, const struct strv *env, struct buf *text)
{
    for (size_t i = 0; i < env->len; i++)
        console_line(text, "  %-8s %s", i ? "" : what, env->items[i]);
}

static void print_whole(const struct preset_file *file, const struct preset *preset,
                        struct buf *text)
{
    AUTO_FREE char *hosts = join(&preset->hosts, "");
    AUTO_FREE char *cache = cache_text(file, preset);

    console_line(text, "%s: %s", file->name, preset->about);
    console_line(text, "  file     %s%s", file->path, whose(file));
    console_line(text, "  opens    %s ({cache} below)", cache);
    for (size_t i = 0; i < preset->write.len; i++)
        console_line(text, "           ~/%s", preset->write.items[i]);
    print_variables("sets", &preset->env, text);
    for (size_t i = 0; i < preset->outside_len; i++) {
        console_line(text, "  reads    ~/%s, where it is there", preset->outside[i].path);
        print_variables("  with", &preset->outside[i].env, text);
    }
    print_variables("offline", &preset->offline_env, text);
    if (*hosts)
        console_line(text, "  hosts    %s", hosts);
    for (size_t i = 0; i < preset->hosts_from.len; i++)
        console_line(text, "  hosts    of ~/%s", preset->hosts_from.items[i]);
    if (preset->why) {
        buf_append_str(text, "\n");
        options_print_text(preset->why, 2, text);
    }
}

static void print_line(const struct preset_file *file, const struct preset *preset,
                       struct buf *text)
{
    AUTO_FREE char *more = join(&preset->write, "~/");
    AUTO_FREE char *cache = cache_text(file, preset);

    console_line(text, "%-11s %s%s", file->name, preset->about, whose(file));
    console_line(text, "%-11s opens %s%s%s", "", cache, *more ? ", " : "", more);
}

/* --- the command --- */

struct presets_options {
    bool wants_json;
    bool wants_names;
};

/* What completions take. */
static int show_names(const struct presets_options *options, const struct preset_files *files,
                      const char *wanted)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *list = json_array();

    for (size_t i = 0; i < files->len; i++) {
        if (wanted && !str_eq(wanted, files->items[i].name))
            continue;
        console_line(&text, "%s", files->items[i].name);
        json_array_append_new(list, json_string(files->items[i].name));
    }
    return options->wants_json ? console_print_json(list) : console_print(&text);
}

/* All of them, or the one of this name; an exit status. One that is broken is said, and the others
 * are shown. */
static int show(const struct presets_options *options, const struct config_file *config,
                const struct preset_files *files, const char *wanted)
{
    AUTO(buf_done) struct buf text = {.max = SIZE_MAX / 2};
    AUTO_JSON json_t *list = json_array();
    int broken = 0;
    int status;

    for (size_t i = 0; i < files->len; i++) {
        const struct preset_file *file = &files->items[i];
        AUTO(preset_done) struct preset preset = {0};
        struct err err;

        if (wanted && !str_eq(wanted, file->name))
            continue;
        if (preset_load(config->dir, file->name, &preset, NULL, &err)) {
            broken = console_fail(&err);
            continue;
        }
        if (options->wants_json)
            json_array_append_new(list, preset_json(file, &preset));
        else if (wanted)
            print_whole(file, &preset, &text);
        else
            print_line(file, &preset, &text);
    }
    if (wanted && broken)
        return broken;
    status = options->wants_json ? console_print_json(wanted ? json_array_get(list, 0) : list)
                                 : console_print(&text);
    return status == EXIT_OK ? broken : status;
}

static int presets_run(char **argv)
{
    struct presets_options options = {.wants_json = false};
    AUTO(config_file_done) struct config_file config = {0};
    AUTO(preset_files_done) struct preset_files files = {0};
    AUTO(preset_done) struct preset preset = {0};
    struct err err;
    char **name, **rest;
    int status;

    if (!command_parse(&command_presets, argv, &options, &name, &status))
        return status;
    rest = name;
    if (*name && !command_parse(&command_presets, name, &options, &rest, &status))
        return status; /* options behind the name count like those in front of it */
    if (*rest)
        return console_failf("one name at a time: cordon presets NAME");
    if (config_file_place(&config, &err) || preset_files_find(config.dir, &files, &err) ||
        (*name && preset_load(config.dir, *name, &preset, NULL, &err)))
        return console_fail(&err);
    return options.wants_names ? show_names(&options, &files, *name)
                               : show(&options, &config, &files, *name);
}

static const struct option presets_options[] = {
    {.name = "json",
     .letter = 'j',
     INTO_TRUE(struct presets_options, wants_json),
     .help = "Prints one JSON value: a list, or with NAME an object."},
    {.name = "names",
     INTO_TRUE(struct presets_options, wants_names),
     .help = "Prints the names alone."},
    {.name = NULL},
};

static const struct option_group presets_groups[] = {{"Output", presets_options}, {NULL, NULL}};

const struct command command_presets = {
    .name = "presets",
    .summary = "list the presets for tools (--with), and what each opens",
    .usage = "[OPTION]... [NAME]",
    .about = "Lists the presets that \"cordon run --with\" takes: those that come with Cordon, and "
             "yours, presets/NAME.toml in the config directory (~/.config/cordon). With NAME it "
             "shows what that one opens, sets and reads, and why.\n",
    .examples = "  cordon presets\n"
                "  cordon presets npm\n"
                "  cordon presets --json cargo | jq .env\n"
                "  cordon explain --with npm,pip\n",
    .page = "cordon-presets",
    .groups = presets_groups,
    .run = presets_run,
};
