/* The configuration for a server, whatever it speaks (serve.h). */
#include "cli/serve.h"

#include "cli/config_file.h"

#include "base/auto.h"
#include "base/str.h"
#include "policy/config/config.h"
#include "server/sandbox_request.h"
#include "server/server.h"

int serve_configure(const char *config, const char *dir, struct server_config *ret, struct err *err)
{
    AUTO(config_file_done) struct config_file file = {0};

    if (config_file_load(config, dir, &file, err))
        return -1;
    ret->file = TAKE_PTR(file.config);
    ret->path = TAKE_PTR(file.path);
    ret->text = TAKE_PTR(file.text);
    ret->dir = TAKE_PTR(file.dir);
    ret->home = TAKE_PTR(file.home);
    return 0;
}

int serve_check_sandbox(const struct config_file *file, const char *name, struct err *err)
{
    AUTO(config_profile_done) struct config_profile ignored = {0};

    if (!name || str_eq(name, SANDBOX_NONE) || str_eq(name, SANDBOX_DEFAULT))
        return 0;
    return config_profile(file->config, name, file->home, &ignored, err);
}
