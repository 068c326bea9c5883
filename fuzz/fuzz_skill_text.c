/* What a SKILL.md and its agents/openai.yaml say: whatever they are, a skill has a description of
 * one line and no name that is too long, and its metadata are those of the schema. */
#include "fuzz.h"

#include "base/auto.h"
#include "base/json.h"
#include "base/utf8.h"
#include "files/skill.h"

#include <stdlib.h>
#include <string.h>

static bool is_line(const char *text)
{
    return !text || (*text && !strpbrk(text, "\n\r\t") && !strstr(text, "  "));
}

static void check_skill(const char *text, size_t len)
{
    AUTO(skill_text_done) struct skill_text skill = {0};
    struct err err;

    if (skill_text_parse(text, len, &skill, &err))
        return;
    if (!skill.description || !is_line(skill.name) || !is_line(skill.description) ||
        !is_line(skill.short_description))
        abort();
    if (skill.name && text_characters(skill.name) > SKILL_NAME_MAX)
        abort();
}

static void check_metadata(const char *text, size_t len)
{
    AUTO_JSON json_t *skill = json_object();
    struct err err;
    int status = skill_metadata_add(skill, text, len, &err);
    const json_t *needs = json_object_get(skill, "dependencies");
    const json_t *policy = json_object_get(skill, "policy");

    if (json_object_size(skill) != 2 || (status && !(json_is_null(needs) && json_is_null(policy))))
        abort();
    if (!json_is_null(needs) && json_array_size(json_object_get(needs, "tools")) == 0)
        abort();
    if (!json_is_null(policy) && !json_is_array(json_object_get(policy, "products")))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    if (size == 0 || !utf8_is_valid(text, size))
        return 0;
    check_skill(text, size);
    check_metadata(text, size);
    return 0;
}
