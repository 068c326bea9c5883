/* See version.h. One row per version: a difference is a flag here, and never a comparison of dates elsewhere. */
#include "mcp/version.h"

#include "base/str.h"

#include <stddef.h>

enum {
    SINCE_06_18 = MCP_HAS_STRUCTURED | MCP_HAS_ELICITATION | MCP_HAS_VERSION_HEADER,
    SINCE_11_25 = SINCE_06_18 | MCP_HAS_ELICITATION_MODES | MCP_HAS_PRIMING,
};

static const struct {
    const char *text;
    unsigned features;
} versions[] = {
    [MCP_2025_03_26] = {"2025-03-26", MCP_HAS_BATCHES},
    [MCP_2025_06_18] = {"2025-06-18", SINCE_06_18},
    [MCP_2025_11_25] = {"2025-11-25", SINCE_11_25},
    [MCP_2026_07_28] = {"2026-07-28", SINCE_11_25 & ~MCP_HAS_PRIMING},
};

const char *const mcp_version_texts[] = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
                                         NULL};

bool mcp_version_parse(const char *text, enum mcp_version *ret)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (!str_eq(versions[i].text, text))
            continue;
        *ret = (enum mcp_version)i;
        return true;
    }
    return false;
}

const char *mcp_version_text(enum mcp_version version)
{
    return versions[version].text;
}

bool mcp_version_is_modern(enum mcp_version version)
{
    return version >= MCP_2026_07_28;
}

bool mcp_version_has(enum mcp_version version, enum mcp_feature feature)
{
    return versions[version].features & feature;
}

enum mcp_version mcp_version_negotiate(const char *asked)
{
    enum mcp_version version = MCP_2025_11_25;

    mcp_version_parse(asked, &version);
    return mcp_version_is_modern(version) ? MCP_2025_11_25 : version;
}
