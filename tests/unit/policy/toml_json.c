/* See toml_json.h. */
#include "toml_json.h"

#include <stddef.h>

json_t *toml_to_json(const struct toml_node *node)
{
    json_t *json = node->kind == TOML_TABLE ? json_object() : json_array();

    switch (node->kind) {
    case TOML_TABLE:
        for (size_t i = 0; i < node->len; i++)
            json_object_set_new(json, node->items[i].key, toml_to_json(&node->items[i]));
        return json;
    case TOML_ARRAY:
        for (size_t i = 0; i < node->len; i++)
            json_array_append_new(json, toml_to_json(&node->items[i]));
        return json;
    case TOML_STRING:
    case TOML_INTEGER:
    case TOML_BOOLEAN:
    case TOML_OTHER:
        break;
    }
    json_decref(json);
    return node->kind == TOML_STRING    ? json_string(node->string)
           : node->kind == TOML_INTEGER ? json_integer(node->integer)
           : node->kind == TOML_BOOLEAN ? json_boolean(node->boolean)
                                        : json_null();
}
