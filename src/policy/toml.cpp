/* See toml.h: the one C++ file, a thin shell around toml++.
 *
 * The tree that toml++ builds is copied into plain structs, with children in the order of the text
 * (toml++ sorts them by name), and dropped. toml++ frees nested tables by recursion and puts no
 * limit on dotted keys, so the nesting is measured on the text first (toml_depth.c); what passes
 * there can overflow the stack neither here nor in the copy.
 *
 * No exception leaves: parse errors are values (TOML_EXCEPTIONS=0), and the only other thing that
 * can be thrown, for want of memory, ends the program like everywhere else (base/alloc.h). */
extern "C" {
#include "policy/toml.h"

#include "base/alloc.h"
#include "policy/toml_depth.h"
}

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <string_view>

namespace
{
/* Fills C nodes from toml++ ones; false when a NUL is in a text, `err` is set then. */
class copier
{
  public:
    explicit copier(struct err *where) : err(where)
    {
    }

    bool table(const toml::table &from, struct toml_node *to)
    {
        to->kind = TOML_TABLE;
        to->items = new_items(from.size());
        for (auto &&[key, value] : from) {
            struct toml_node *item = &to->items[to->len++];

            item->line = key.source().begin.line;
            if (!text(key.str(), item->line, &item->key) || !node(value, item))
                return false;
        }
        std::stable_sort(to->items, to->items + to->len,
                         [](const toml_node &a, const toml_node &b) { return a.line < b.line; });
        return true;
    }

  private:
    struct err *err;

    static struct toml_node *new_items(size_t count)
    {
        return static_cast<struct toml_node *>(alloc_zero(count, sizeof(struct toml_node)));
    }

    bool text(std::string_view from, unsigned line, char **to)
    {
        if (from.find('\0') != std::string_view::npos)
            return err_set(err, ERR_INVALID, "%u: a NUL character in a text", line) == 0;
        *to = alloc_strn(from.data(), from.size());
        return true;
    }

    bool array(const toml::array &from, struct toml_node *to)
    {
        to->kind = TOML_ARRAY;
        to->items = new_items(from.size());
        for (auto &&value : from) {
            struct toml_node *item = &to->items[to->len++];

            item->line = value.source().begin.line;
            if (!node(value, item))
                return false;
        }
        return true;
    }

    bool node(const toml::node &from, struct toml_node *to)
    {
        if (auto as_table = from.as_table())
            return table(*as_table, to);
        if (auto as_array = from.as_array())
            return array(*as_array, to);
        to->kind = TOML_OTHER;
        if (auto as_string = from.as_string()) {
            to->kind = TOML_STRING;
            return text(as_string->get(), to->line, &to->string);
        }
        if (auto as_integer = from.as_integer()) {
            to->kind = TOML_INTEGER;
            to->integer = as_integer->get();
        } else if (auto as_boolean = from.as_boolean()) {
            to->kind = TOML_BOOLEAN;
            to->boolean = as_boolean->get();
        }
        return true;
    }
};

struct toml_node *parse(const char *text, size_t len, struct err *err) noexcept
{
    const toml::parse_result result = toml::parse(std::string_view(text, len));

    if (!result) {
        const std::string_view what = result.error().description();

        err_set(err, ERR_INVALID, "%u: %.*s", result.error().source().begin.line,
                static_cast<int>(what.size()), what.data());
        return nullptr;
    }
    auto *root = static_cast<struct toml_node *>(alloc_zero(1, sizeof(struct toml_node)));
    if (!copier(err).table(result.table(), root)) {
        toml_free(root);
        return nullptr;
    }
    return root;
}

} // namespace

struct toml_node *toml_parse(const char *text, size_t len, struct err *err)
{
    if (toml_check_depth(text, len, err))
        return nullptr;
    return parse(text, len, err);
}
