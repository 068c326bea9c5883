/* See skill_metadata.h. A wrong type anywhere makes the whole file wrong; a tool without a type or
 * value, and other texts that are too long, are left out. So does Codex 0.169.0
 * (tests/cases/discovery). */
#include "files/skill_metadata.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/str.h"
#include "files/document.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 64, TEXT_MAX = 1024 }; /* characters */

/* One line of text; null when it is empty or longer than `max`. */
static json_t *text_to_json(const char *text, size_t max)
{
    AUTO_FREE char *line = document_one_line(text);

    return line && *line && document_characters(line) <= max ? json_string(line) : json_null();
}

static int read_port(struct document *document, const yaml_node_t *tool, int *ret, struct err *err)
{
    const yaml_node_t *oauth = NULL;

    if (document_field(document, tool, "oauth", &oauth, err) ||
        document_port(document, oauth, "callbackPort", ret, err))
        return -1;
    return *ret < 0 ? document_port(document, oauth, "callback_port", ret, err) : 0;
}

static int add_tool(struct document *document, const yaml_node_t *tool, json_t *tools,
                    struct err *err)
{
    static const struct {
        const char *name;
        size_t max;
    } parts[] = {{"type", WORD_MAX},      {"value", TEXT_MAX},   {"description", TEXT_MAX},
                 {"transport", WORD_MAX}, {"command", TEXT_MAX}, {"url", TEXT_MAX}};
    AUTO_JSON json_t *made = json_object();
    int port = -1;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *text = NULL;

        if (document_text(document, tool, parts[i].name, &text, err))
            return -1;
        json_object_set_new(made, parts[i].name, text_to_json(text, parts[i].max));
    }
    if (read_port(document, tool, &port, err))
        return -1;
    json_object_set_new(made, "oauthCallbackPort", port < 0 ? json_null() : json_integer(port));
    if (json_is_string(json_object_get(made, "type")) &&
        json_is_string(json_object_get(made, "value")))
        json_array_append(tools, made);
    return 0;
}

/* `*ret` is a new reference: null, or {"tools"}. */
static int read_dependencies(struct document *document, const yaml_node_t *root, json_t **ret,
                             struct err *err)
{
    AUTO_JSON json_t *tools = json_array();
    const yaml_node_t *map = NULL;
    const yaml_node_t *list = NULL;

    if (document_field(document, root, "dependencies", &map, err) ||
        document_list(document, map, "tools", &list, err))
        return -1;
    for (const int *item = list ? list->data.sequence.items.start : NULL;
         list && item < list->data.sequence.items.top; item++)
        if (add_tool(document, document_node(document, *item), tools, err))
            return -1;
    *ret = json_array_size(tools) ? json_pack("{s:O}", "tools", tools) : json_null();
    return 0;
}

static int add_product(const yaml_node_t *node, json_t *products, struct err *err)
{
    static const char *const names[][2] = {
        {"codex", "CODEX"}, {"chatgpt", "CHATGPT"}, {"atlas", "ATLAS"}};
    const char *text =
        node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "a list";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(text, names[i][0]) || str_eq(text, names[i][1])) {
            json_array_append_new(products, json_string(names[i][0]));
            return 0;
        }
    return err_set(err, ERR_INVALID,
                   "line %zu: no product is named so; there are codex, chatgpt "
                   "and atlas",
                   node->start_mark.line + 1);
}

/* `*ret` is a new reference. */
static int read_policy(struct document *document, const yaml_node_t *root, json_t **ret,
                       struct err *err)
{
    AUTO_JSON json_t *products = json_array();
    const yaml_node_t *map = NULL;
    const yaml_node_t *list = NULL;
    int allows = -1;

    if (document_field(document, root, "policy", &map, err) ||
        document_flag(document, map, "allow_implicit_invocation", &allows, err) ||
        document_list(document, map, "products", &list, err))
        return -1;
    for (const int *item = list ? list->data.sequence.items.start : NULL;
         list && item < list->data.sequence.items.top; item++)
        if (add_product(document_node(document, *item), products, err))
            return -1;
    *ret = map ? json_pack("{s:o, s:O}", "allowImplicitInvocation",
                           allows < 0 ? json_null() : json_boolean(allows), "products", products)
               : json_null();
    return 0;
}

/* It is for people to look at and not passed on, but a wrong one makes the file wrong. */
static int check_interface(struct document *document, const yaml_node_t *root, struct err *err)
{
    static const char *const parts[] = {"display_name", "short_description", "icon_small",
                                        "icon_large",   "brand_color",       "default_prompt"};
    const yaml_node_t *map = NULL;
    const char *text = NULL;

    if (document_field(document, root, "interface", &map, err))
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (document_text(document, map, parts[i], &text, err))
            return -1;
    return 0;
}

void skill_metadata_none(json_t *skill)
{
    json_object_set_new(skill, "dependencies", json_null());
    json_object_set_new(skill, "policy", json_null());
}

int skill_metadata_add(json_t *skill, const char *text, size_t len, struct err *err)
{
    AUTO(document_done) struct document document = {0};
    AUTO_JSON json_t *dependencies = NULL;
    AUTO_JSON json_t *policy = NULL;
    const yaml_node_t *root;

    skill_metadata_none(skill);
    if (document_load(&document, text, len, err))
        return -1;
    root = document_root(&document);
    if (check_interface(&document, root, err) ||
        read_dependencies(&document, root, &dependencies, err) ||
        read_policy(&document, root, &policy, err))
        return -1;
    json_object_set(skill, "dependencies", dependencies);
    json_object_set(skill, "policy", policy);
    return 0;
}
