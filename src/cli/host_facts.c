/* See host_facts.h. Nothing here fails: a file that is not there says something, too. */
#include "cli/host_facts.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { FILE_MAX = 65536 };

/* landlock_create_ruleset(2): linux/landlock.h of 5.13; Debian 12 has both */
enum { LANDLOCK_VERSION_FLAG = 1 };

/* The first line of a file, without its end; caller frees. NULL when it cannot be read. */
static char *read_line(const char *root, const char *name)
{
    AUTO_FREE char *path = alloc_strf("%s%s", root, name);
    AUTO(buf_done) struct buf text = {0};
    struct err ignored;

    if (fd_read_file(path, FILE_MAX, &text, &ignored))
        return NULL;
    return text.data ? alloc_strn(text.data, strcspn(text.data, "\n")) : alloc_str("");
}

static int64_t read_switch(const char *root, const char *name)
{
    AUTO_FREE char *line = read_line(root, name);
    struct err ignored;
    uint64_t value;

    if (!line || units_parse_count(line, &value, &ignored) || value > INT64_MAX)
        return HOST_FACT_MISSING;
    return (int64_t)value;
}

static bool exists(const char *root, const char *name)
{
    AUTO_FREE char *path = alloc_strf("%s%s", root, name);

    return access(path, F_OK) == 0;
}

/* Two files that the engines leave, then what systemd, podman and lxc tell pid 1
 * (systemd's CONTAINER_INTERFACE). */
static void find_container(const char *root, char *ret, size_t size)
{
    AUTO_FREE char *named = NULL;

    *ret = '\0';
    if (exists(root, "/.dockerenv")) {
        snprintf(ret, size, "docker");
    } else if (exists(root, "/run/.containerenv")) {
        snprintf(ret, size, "podman");
    } else if ((named = read_line(root, "/run/systemd/container")) && *named) {
        snprintf(ret, size, "%s", named);
    } else if (exists(root, "/var/run/secrets/kubernetes.io")) {
        snprintf(ret, size, "kubernetes");
    }
}

/* spec/sandboxing.md 2.5: an explicit version decides; the bare vendor mark is the first one. */
static bool is_wsl1(const char *root)
{
    AUTO_FREE char *version = read_line(root, "/proc/version");

    return version && strcasestr(version, "microsoft") && !strcasestr(version, "wsl2") &&
           !strcasestr(version, "microsoft-standard");
}

static void ask_landlock(struct host_facts *facts)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);

    facts->landlock_abi = abi > 0 ? (int)abi : 0;
    facts->landlock_error = abi > 0 ? 0 : errno;
}

void host_facts_read(const char *root, struct host_facts *ret)
{
    AUTO_FREE char *lsm = read_line(root, "/sys/kernel/security/lsm");
    struct utsname system = {.release = ""};
    ssize_t len;

    *ret = (struct host_facts){
        .is_root = geteuid() == 0,
        .is_wsl1 = is_wsl1(root),
        .has_systemd = exists(root, "/run/systemd/system"),
        .apparmor_restricts_userns =
            read_switch(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        .userns_clone = read_switch(root, "/proc/sys/kernel/unprivileged_userns_clone"),
        .max_user_namespaces = read_switch(root, "/proc/sys/user/max_user_namespaces"),
    };
    ask_landlock(ret);
    find_container(root, ret->container, sizeof ret->container);
    snprintf(ret->lsm, sizeof ret->lsm, "%s", lsm ? lsm : "");
    uname(&system);
    snprintf(ret->release, sizeof ret->release, "%s", system.release);
    len = readlink("/proc/self/exe", ret->program, sizeof ret->program - 1);
    ret->program[len < 0 ? 0 : len] = '\0';
}
