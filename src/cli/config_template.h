/* What `cordon config init` writes. */
#pragma once

/* A file in which every key is explained and none is set: a line that begins with "# " explains, one that
 * begins with "#" and no blank is a setting, right as it stands when the "#" is taken away. */
extern const char config_template[];
