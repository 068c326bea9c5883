/* The order of versions. */
#pragma once

/* By the rules of Semantic Versioning 2.0.0, with build metadata as the last word, when both are
 * such versions; bytewise otherwise. */
int plugin_version_compare(const char *a, const char *b);
