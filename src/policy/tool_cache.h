/* The folders in which tools keep what they fetched and built, and the presets that give commands others in
 * their place (presets/; docs/decisions/0030-presets.md). Pure. */
#pragma once

/* The name of the preset for the tool whose folder `path` lies in, in `home`; NULL: none is known. Static. */
const char *tool_cache_preset(const char *path, const char *home);
