/* The versions of MCP that are spoken, and in what they differ. Pure. */
#pragma once

#include <stdbool.h>

/* In the order in which they came. */
enum mcp_version {
    MCP_2025_03_26,
    MCP_2025_06_18,
    MCP_2025_11_25, /* the newest that begins with initialize */
    MCP_2026_07_28, /* without sessions: every request says who asks (modern.c) */
};

enum mcp_feature {
    MCP_HAS_BATCHES = 1,           /* arrays of messages */
    MCP_HAS_STRUCTURED = 2,        /* titles, outputSchema, structuredContent */
    MCP_HAS_ELICITATION = 4,       /* elicitation/create with a form */
    MCP_HAS_ELICITATION_MODES = 8, /* mode, form and url; titled choices; defaults */
    MCP_HAS_PRIMING = 16,          /* SSE: an event without data begins a stream */
    MCP_HAS_VERSION_HEADER = 32,   /* HTTP: MCP-Protocol-Version is sent */
};

/* false: not one of them. */
bool mcp_version_parse(const char *text, enum mcp_version *ret);
const char *mcp_version_text(enum mcp_version version);

/* Those without initialize. */
bool mcp_version_is_modern(enum mcp_version version);

/* All of them, the newest first; NULL-terminated. */
extern const char *const mcp_version_texts[];

bool mcp_version_has(enum mcp_version version, enum mcp_feature feature);

/* What is answered to an initialize that asks for this one: the same, or else the newest, with which the client is
 * free to go away (lifecycle, "Version Negotiation"). */
enum mcp_version mcp_version_negotiate(const char *asked);
