/* See remedies.h. Reading facts never fails: a file that is not there says something, too.
 *
 * Causes are asked in the order from the one that explains most: a kernel that has no namespaces at
 * all, a switch that forbids them, a security module, a container around us. What none of these
 * explains is said as far as it is known. */
#include "cli/remedies.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/units.h"
#include "cli/layer_trial.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* --- facts --- */

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

/* As Codex tells it: an explicit version decides; the bare vendor mark is the first one. */
static bool is_wsl1(const char *root)
{
    AUTO_FREE char *version = read_line(root, "/proc/version");

    return version && strcasestr(version, "microsoft") && !strcasestr(version, "wsl2") &&
           !strcasestr(version, "microsoft-standard");
}

static bool is_chroot(const char *root)
{
    AUTO_FREE char *path = alloc_strf("%s/", root);
    struct statx st;

    return statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &st) == 0 &&
           (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) &&
           !(st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static bool is_filtered(const char *root)
{
    AUTO_FREE char *path = alloc_strf("%s/proc/self/status", root);
    AUTO(buf_done) struct buf text = {0};
    struct err err;

    return fd_read_file(path, FILE_MAX, &text, &err) == 0 && text.len &&
           strstr(text.data, "\nSeccomp:\t2\n");
}

void host_facts_read(const char *root, struct host_facts *ret)
{
    AUTO_FREE char *lsm = read_line(root, "/sys/kernel/security/lsm");
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);
    int landlock_error = abi > 0 ? 0 : errno;
    struct utsname system = {.release = ""};
    AUTO_FREE char *self = program_self();

    *ret = (struct host_facts){
        .is_root = geteuid() == 0,
        .is_wsl1 = is_wsl1(root),
        .is_chroot = is_chroot(root),
        .is_filtered = is_filtered(root),
        .has_systemd = exists(root, "/run/systemd/system"),
        .apparmor_restricts_userns =
            read_switch(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        .userns_clone = read_switch(root, "/proc/sys/kernel/unprivileged_userns_clone"),
        .max_user_namespaces = read_switch(root, "/proc/sys/user/max_user_namespaces"),
        .landlock_abi = abi > 0 ? (int)abi : 0,
        .landlock_error = landlock_error,
    };
    find_container(root, ret->container, sizeof ret->container);
    snprintf(ret->lsm, sizeof ret->lsm, "%s", lsm ? lsm : "");
    uname(&system);
    snprintf(ret->release, sizeof ret->release, "%s", system.release);
    snprintf(ret->program, sizeof ret->program, "%s", self);
}

/* --- remedies --- */

/* The ABI that brings scopes for signals and abstract sockets (Linux 6.12), landlock(7). */
enum { LANDLOCK_WHOLE_ABI = 6 };

void remedies_done(struct remedies *remedies)
{
    for (size_t i = 0; i < remedies->len; i++) {
        free(remedies->items[i].cause);
        free(remedies->items[i].how);
    }
    free(remedies->items);
    *remedies = (struct remedies){0};
}

/* Takes both texts over. */
static void remedies_add(struct remedies *remedies, const char *finding, const char *about,
                         char *cause, char *how)
{
    remedies->items =
        alloc_grow(remedies->items, remedies->len, &remedies->cap, sizeof *remedies->items);
    remedies->items[remedies->len++] =
        (struct remedy){.finding = finding, .about = about, .cause = cause, .how = how};
}

static bool is_missing(const struct defence_report *layers, enum defence layer)
{
    return layers[layer].state == DEFENCE_ABSENT || layers[layer].state == DEFENCE_PARTIAL;
}

/* --- namespaces --- */

static bool explain_wsl1(const struct host_facts *facts, const char *about, struct remedies *ret)
{
    if (!facts->is_wsl1)
        return false;
    remedies_add(ret, "wsl-1", about,
                 alloc_str("This is WSL 1, whose kernel has no namespaces and no Landlock; WSL 2 "
                           "has both."),
                 alloc_str("in Windows:  wsl --list --verbose\n"
                           "             wsl --set-version DISTRIBUTION 2\n"));
    return true;
}

static bool explain_limit(const struct host_facts *facts, const char *about, struct remedies *ret)
{
    if (facts->max_user_namespaces != 0)
        return false;
    remedies_add(ret, "no-user-namespaces", about,
                 alloc_str("user.max_user_namespaces is 0, so no user may make a user namespace."),
                 alloc_str("sudo sysctl -w user.max_user_namespaces=15000\n"
                           "echo user.max_user_namespaces=15000 | sudo tee "
                           "/etc/sysctl.d/99-cordon.conf\n"));
    return true;
}

static bool explain_clone_switch(const struct host_facts *facts, const char *about,
                                 struct remedies *ret)
{
    if (facts->userns_clone != 0 || facts->is_root)
        return false;
    remedies_add(ret, "user-namespaces-of-root", about,
                 alloc_str("kernel.unprivileged_userns_clone is 0, so only root may make a user "
                           "namespace (a switch of older Debian kernels)."),
                 alloc_str("sudo sysctl -w kernel.unprivileged_userns_clone=1\n"
                           "echo kernel.unprivileged_userns_clone=1 | sudo tee "
                           "/etc/sysctl.d/99-cordon.conf\n"));
    return true;
}

/* The profile is for the program that makes the namespaces, which is cordon; its launcher inherits
 * it. "flags=(unconfined)" with "userns" is what Ubuntu 24.04 ships for bubblewrap's users. */
static bool explain_apparmor(const struct host_facts *facts, const char *about,
                             struct remedies *ret)
{
    if (facts->apparmor_restricts_userns != 1 || facts->is_root)
        return false;
    remedies_add(
        ret, "apparmor", about,
        alloc_str("AppArmor keeps programs without a profile of their own from using user "
                  "namespaces (kernel.apparmor_restrict_unprivileged_userns is 1, as on Ubuntu "
                  "24.04). Give cordon one:"),
        alloc_strf("sudo tee /etc/apparmor.d/cordon <<'END'\n"
                   "abi <abi/4.0>,\n"
                   "include <tunables/global>\n"
                   "profile cordon %s flags=(unconfined) {\n"
                   "  userns,\n"
                   "  include if exists <local/cordon>\n"
                   "}\n"
                   "END\n"
                   "sudo apparmor_parser -r /etc/apparmor.d/cordon\n"
                   "\n"
                   "or, for every program:\n"
                   "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n",
                   *facts->program ? facts->program : "/usr/bin/cordon"));
    return true;
}

#define ALONE "cordon run --sandbox landlock ...\n"

/* The kernel lets nobody make a user namespace there (user_namespaces(7): EPERM), and mount(2) takes no
 * directory that is no mount point for the root of a tree. */
static bool explain_chroot(const struct host_facts *facts, const char *about, struct remedies *ret)
{
    if (!facts->is_chroot)
        return false;
    remedies_add(
        ret, "chroot", about,
        alloc_str("This is a chroot: the kernel lets nobody make a user namespace there, and / "
                  "is no mount point, so nothing can be mounted in it. Start it as a container "
                  "(with a root that is a mount), or use Landlock alone, which is weaker:"),
        alloc_str("sudo systemd-nspawn -D DIR ...\n" ALONE));
    return true;
}

static bool explain_container(const struct host_facts *facts, const char *about,
                              struct remedies *ret)
{
    if (!*facts->container)
        return false;
    remedies_add(
        ret, "container", about,
        alloc_strf("This is a container (%s), whose own restrictions forbid new namespaces or hide "
                   "parts of /proc. Loosen these; the sandbox then restricts the command itself.",
                   facts->container),
        alloc_str("docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
                  "--security-opt systempaths=unconfined ...\n"
                  "podman run --security-opt seccomp=unconfined --security-opt unmask=ALL ...\n"
                  "Kubernetes: securityContext: {seccompProfile: {type: Unconfined}, procMount: "
                  "Unmasked}, hostUsers: false\n"
                  "or, weaker: " ALONE));
    return true;
}

static void explain_namespaces(const struct host_facts *facts, const char *about,
                               struct remedies *ret)
{
    if (explain_wsl1(facts, about, ret) || explain_limit(facts, about, ret) ||
        explain_clone_switch(facts, about, ret) || explain_apparmor(facts, about, ret) ||
        explain_container(facts, about, ret) || explain_chroot(facts, about, ret))
        return;
    remedies_add(
        ret, facts->is_filtered ? "seccomp-filter" : "namespaces-refused", about,
        alloc_str(
            facts->is_filtered
                ? "A seccomp filter around this process refuses new namespaces: another sandbox, a "
                  "container, or a unit of systemd with RestrictNamespaces=. Where that cannot be "
                  "loosened, Landlock alone is weaker, and lets commands write:"
                : "The kernel refuses new namespaces, and none of the known switches says why. A "
                  "unit "
                  "of systemd with RestrictNamespaces= and SELinux do that, too. Landlock alone is "
                  "weaker, and lets commands write:"),
        alloc_str(ALONE));
}

static void explain_proc(const struct host_facts *facts, const char *about, struct remedies *ret)
{
    if (explain_container(facts, about, ret))
        return;
    remedies_add(ret, "covered-proc", about,
                 alloc_str("A /proc of its own cannot be mounted, because something is mounted "
                           "over parts of the /proc here."),
                 alloc_str("grep /proc/ /proc/self/mountinfo      # what it is\n"));
}

/* --- Landlock --- */

static void explain_landlock(const struct host_facts *facts, const char *about,
                             struct remedies *ret)
{
    if (facts->landlock_abi >= LANDLOCK_WHOLE_ABI)
        return; /* it is the profile that does without */
    if (facts->landlock_abi > 0) {
        remedies_add(ret, "old-landlock", about,
                     alloc_strf("The kernel (%s) has Landlock ABI %d; scopes for signals and "
                                "abstract sockets came with ABI %d.",
                                facts->release, facts->landlock_abi, LANDLOCK_WHOLE_ABI),
                     alloc_str("install Linux 6.12 or newer\n"));
    } else if (facts->landlock_error == EOPNOTSUPP) {
        remedies_add(ret, "landlock-not-enabled", about,
                     alloc_str("The kernel has Landlock, but it was not enabled at boot."),
                     alloc_strf("add to the kernel's command line (GRUB_CMDLINE_LINUX in "
                                "/etc/default/grub, then sudo update-grub), and boot again:\n"
                                "lsm=landlock,%s\n",
                                *facts->lsm ? facts->lsm : "lockdown,yama,integrity,apparmor,bpf"));
    } else if (facts->landlock_error == EPERM && explain_container(facts, about, ret)) {
        return;
    } else {
        remedies_add(ret, "no-landlock", about,
                     alloc_strf("The kernel (%s) has no Landlock: it is older than Linux 5.13, or "
                                "was built without CONFIG_SECURITY_LANDLOCK.",
                                facts->release),
                     alloc_str("install Linux 6.12 or newer\n"));
    }
}

/* --- the guard --- */

static void explain_guard(const struct defence_report *layer, struct remedies *ret)
{
    remedies_add(
        ret, "no-guard", defence_name(DEFENCE_GUARD),
        alloc_strf("System calls cannot be put to Cordon's guard (%s). Without it no file or "
                   "directory can be made directly in a workspace, only in its subdirectories that "
                   "are there at the start, and what is refused is guessed from the output.",
                   layer->why),
        alloc_str("start cordon outside of the other sandbox or container engine that supervises "
                  "system calls; install Linux 5.19 or newer; and keep cordon-guard beside "
                  "cordon-linux-sandbox\n"));
}

static void explain_proxy(const struct defence_report *layer, struct remedies *ret)
{
    remedies_add(
        ret, "no-proxy", defence_name(DEFENCE_PROXY),
        alloc_strf("A network cannot be led to Cordon's proxy (%s): --allow-host and --network "
                   "proxied are refused.",
                   layer->why),
        alloc_str("modprobe nft_redir   # nf_tables and nf_nat of the kernel (CONFIG_NFT_REDIR, "
                  "CONFIG_NF_NAT)\n"));
}

void remedies_find(const struct host_facts *facts, const struct defence_report *layers,
                   struct remedies *ret)
{
    static const enum defence namespaces[] = {DEFENCE_USER_NAMESPACE, DEFENCE_MOUNT_NAMESPACE,
                                              DEFENCE_IPC_NAMESPACE,  DEFENCE_NET_NAMESPACE,
                                              DEFENCE_UTS_NAMESPACE,  DEFENCE_CGROUP_NAMESPACE};
    bool is_explained = false;

    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces && !is_explained; i++)
        if (is_missing(layers, namespaces[i])) {
            explain_namespaces(facts, defence_name(namespaces[i]), ret);
            is_explained = true;
        }
    if (is_missing(layers, DEFENCE_PID_NAMESPACE) && !is_explained)
        explain_proc(facts, defence_name(DEFENCE_PID_NAMESPACE), ret);
    if (is_missing(layers, DEFENCE_LANDLOCK) && !facts->is_wsl1)
        explain_landlock(facts, defence_name(DEFENCE_LANDLOCK), ret);
    if (is_missing(layers, DEFENCE_GUARD) && *layers[DEFENCE_GUARD].why)
        explain_guard(&layers[DEFENCE_GUARD], ret);
    if (is_missing(layers, DEFENCE_PROXY) && !is_missing(layers, DEFENCE_NET_NAMESPACE))
        explain_proxy(&layers[DEFENCE_PROXY], ret);
}

/* --- change layers --- */

#define OTHER_STATE "XDG_STATE_HOME=FOLDER cordon run --layer ...\n"

void remedies_add_layers(const struct layer_trial *trial, const char *dir, struct remedies *ret)
{
    static const char about[] = "change layers";
    const char *finding = trial->finding;

    if (!finding)
        return;
    if (str_eq(finding, "no-overlayfs"))
        remedies_add(
            ret, "no-overlayfs", about,
            alloc_strf(
                "The kernel mounts no overlay for a user (%s): --layer and --undo are refused.",
                trial->refusal.msg),
            alloc_str(
                "sudo modprobe overlay        # or Linux 5.11 or newer; in a container, what it "
                "forbids\n"));
    else if (str_eq(finding, "layers-folder"))
        remedies_add(ret, "layers-folder", about,
                     alloc_strf("There is no folder for them: %s.", trial->refusal.msg),
                     alloc_str(OTHER_STATE));
    else if (str_eq(finding, "no-layer-here"))
        remedies_add(ret, "no-layer-here", about,
                     alloc_strf("No layer can lie over %s: %s.", dir, trial->refusal.msg),
                     alloc_str("cordon run --layer -C A-FOLDER-BELOW ...\n"
                               "cordon run --layer --layer-direct WHAT-IS-MOUNTED-THERE ...\n"));
    else if (str_eq(finding, "layers-in-memory"))
        remedies_add(
            ret, "layers-in-memory", about,
            alloc_strf(
                "No disk here can keep a layer (an overlay of a container, NFS, FUSE), so they are "
                "kept in memory (%s): they take memory, and are gone when this machine is.",
                trial->folder),
            alloc_str("docker run -v VOLUME:/state -e XDG_STATE_HOME=/state ...\n" OTHER_STATE));
    else
        remedies_add(
            ret, "layers-far", about,
            alloc_strf(
                "Layers are kept in %s, on another file system than %s: accepting copies what it "
                "could move, and the first write to a file copies it.",
                trial->folder, dir),
            alloc_str(OTHER_STATE));
}

/* --- limits --- */

void remedies_add_cgroup(const struct host_facts *facts, const char *reason, struct remedies *ret)
{
    const char *how =
        facts->has_systemd
            ? facts->is_root ? "systemd-run --scope -p Delegate=yes cordon run --max-memory 2G -- "
                               "COMMAND\n"
                             : "systemd-run --user --scope -p Delegate=yes cordon run --max-memory "
                               "2G -- COMMAND\n"
            : "start cordon in a cgroup v2 below one that is yours and has \"+memory +pids\" in "
              "its cgroup.subtree_control\n";

    remedies_add(ret, "no-cgroup", "limits",
                 alloc_strf("No cgroup for --max-memory (%s): it holds for each process by itself "
                            "instead of for all together.",
                            reason),
                 alloc_str(how));
}
