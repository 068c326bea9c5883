/* fs/createSymlink and fs/setMode: what a copy of a tree needs besides files and folders. */
#include "files/call.h"

#include "base/auto.h"
#include "base/sys.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE_MAX = 0777 };

int files_create_symlink(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    struct json_at text = json_at_field(&request->params, "target");
    AUTO_CLOSE int dir = -1;
    const char *name = NULL;
    const char *to = NULL;

    if (target_read(&request->params, "path", &target, err) || json_at_string(&text, &to, err))
        return -1;
    if (!*to)
        return json_at_fail(&text, err, "should name what the link leads to");
    dir = target_open_parent(&target, &name, err);
    if (dir < 0)
        return -1;
    if (sys_fault() || symlinkat(to, dir, name))
        return err_sys(err, "making the link %s", target.path);
    return reply_str(reply, "{}", err);
}

/* By what was opened, so that it is what was looked at, and without the right to read it. */
static int change_mode(int fd, mode_t mode)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return sys_fault() ? -1 : chmod(path, mode);
}

int files_set_mode(const struct files_request *request, struct reply *reply, struct err *err)
{
    AUTO(target_done) struct target target = {0};
    struct json_at field = json_at_field(&request->params, "mode");
    AUTO_CLOSE int fd = -1;
    int64_t mode = 0;

    if (target_read(&request->params, "path", &target, err) ||
        json_at_integer(&field, 0, MODE_MAX, &mode, err))
        return -1;
    fd = target_open(&target, O_PATH, 0, err);
    if (fd < 0)
        return -1;
    if (change_mode(fd, (mode_t)mode))
        return err_sys(err, "setting the mode of %s", target.path);
    return reply_str(reply, "{}", err);
}
