/* See tls_link.h.
 *
 * The certificate is no secret; its key never leaves cordon-tls. The file lies in a folder where each has a name that its content
 * gives, and is kept by a lock (flock(2)) as long as its process lives: who makes the next one removes those that nobody
 * keeps, which is all that is left after a kill.
 *
 * A cordon-tls that has died is not replaced under a sandbox, whose commands trust the authority of the old one: what needs it
 * is refused, and the next sandbox starts a new one. */
#include "sandbox/linux/tls_link.h"

#include "base/alloc.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/str.h"
#include "policy/access.h"
#include "sandbox/linux/companion.h"
#include "tls/tls_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CERTIFICATE_MAX = 16 << 10, ROOTS_MAX = 4 << 20, CERTIFICATE_MS = 10000 };

static struct companion the_tls = {.name = TLS_PROGRAM,
                                   .word = "the program that ends TLS",
                                   .is_nobody = true,
                                   .is_busy = ATOMIC_FLAG_INIT};

static struct {
    atomic_flag is_busy;
    unsigned users;
    char *path; /* of the bundle */
    int lock;   /* it, kept */
} bundle = {.is_busy = ATOMIC_FLAG_INIT, .lock = -1};

/* Of OpenSSL, requests, curl, node, git, cargo, pip, bundler, npm, and those of the cloud's tools. */
static const char *const variables[] = {"SSL_CERT_FILE",
                                        "REQUESTS_CA_BUNDLE",
                                        "CURL_CA_BUNDLE",
                                        "NODE_EXTRA_CA_CERTS",
                                        "GIT_SSL_CAINFO",
                                        "CARGO_HTTP_CAINFO",
                                        "PIP_CERT",
                                        "BUNDLE_SSL_CA_CERT",
                                        "npm_config_cafile",
                                        "AWS_CA_BUNDLE",
                                        "CORDON_CA_CERTIFICATE"};

enum { VARIABLES = sizeof variables / sizeof *variables };

/* --- what this process trusts --- */

/* The next block of PEM from `at` on that is a certificate; NULL: there is none. */
static const char *next_certificate(const char *at, size_t *ret_len)
{
    static const char begin[] = "-----BEGIN ", dashes[] = "-----";
    static const char inside[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "+/=\r\n";

    for (; (at = strstr(at, begin)); at++) {
        const char *word = at + sizeof begin - 1;
        const char *text = word + strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ");
        AUTO_FREE char *kind = alloc_strn(word, (size_t)(text - word));
        AUTO_FREE char *end = alloc_strf("%sEND %s%s", dashes, kind, dashes);

        if (!str_ends(kind, "CERTIFICATE") || !str_starts(text, dashes))
            continue;
        text += strlen(dashes);
        text += strspn(text, inside);
        if (!str_starts(text, end))
            continue;
        *ret_len = (size_t)(text - at) + strlen(end);
        return at;
    }
    return NULL;
}

/* Its certificates, and nothing else: what we write can be read by every command, and some keep their key in the same
 * file. */
static void add_file(const char *path, struct buf *ret)
{
    AUTO(buf_done) struct buf text = {0};
    const char *at;
    size_t len = 0;
    struct err ignored;

    if (fd_read_file(path, ROOTS_MAX, &text, &ignored) || !text.len)
        return;
    for (at = text.data; (at = next_certificate(at, &len)); at += len)
        (void)(buf_append(ret, at, len) && buf_append_str(ret, "\n"));
}

static void read_roots(struct buf *ret)
{
    static const char *const places[] = {TLS_ROOTS};
    AUTO(strv_done) struct strv seen = {0};
    const char *own = getenv(variables[0]);

    for (size_t i = 0; i < sizeof places / sizeof *places && !own; i++)
        if (access(places[i], R_OK) == 0)
            own = places[i];
    if (own)
        strv_push(&seen, own);
    for (size_t i = 1; i < VARIABLES; i++) {
        const char *more = getenv(variables[i]);

        if (more && *more == '/' && !strv_has(&seen, more))
            strv_push(&seen, more);
    }
    buf_init(ret, ROOTS_MAX);
    buf_append_str(ret, "\n"); /* it is a file, whatever there is */
    for (size_t i = 0; i < seen.len; i++)
        add_file(seen.items[i], ret);
}

/* --- the file --- */

static char *folder_path(void)
{
    const char *home = getenv("HOME");
    const char *cache = getenv("XDG_CACHE_HOME");

    if (cache && *cache == '/')
        return path_clean(cache, "cordon/ca");
    if (home && home[0] == '/' && home[1])
        return path_clean(home, ".cache/cordon/ca");
    return geteuid() == 0 ? alloc_str("/var/cache/cordon/ca") : NULL;
}

/* Removes those that nobody keeps. */
static void clean_up(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        AUTO_CLOSE int file = -1;

        if (*entry->d_name == '.')
            continue;
        file = openat(folder, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
            unlinkat(folder, entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

static char *name_of(const struct buf *text)
{
    uint8_t digest[SHA256_SIZE];
    char name[SHA256_SIZE * 2 + 1];
    struct sha256 sha;

    sha256_start(&sha);
    sha256_add(&sha, text->data, text->len);
    sha256_finish(&sha, digest);
    for (size_t i = 0; i < SHA256_SIZE; i++)
        snprintf(name + i * 2, 3, "%02x", digest[i]);
    return alloc_strf("%s.pem", name);
}

/* Without a name until it is whole and kept. */
static int write_bundle(const struct buf *text, struct err *err)
{
    AUTO_FREE char *path = folder_path();
    AUTO_FREE char *name = name_of(text);
    AUTO_FREE char *real = NULL;
    AUTO_CLOSE int folder = -1;
    AUTO_CLOSE int file = -1;
    char proc[64];

    if (!path)
        return err_set(
            err, ERR_NOT_FOUND,
            "there is no folder for the certificate that commands have to trust: set HOME");
    if (fd_make_dirs(path, 0700, err))
        return -1;
    real = realpath(path, NULL);
    folder = real ? open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (folder < 0)
        return err_sys(err, "%s", path);
    clean_up(folder);
    file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return err_sys(err, "making a file in %s", path);
    if (flock(file, LOCK_SH) || fd_write_all(file, text->data, text->len, err) ||
        fchmod(file, 0444))
        return err_sys(err, "writing %s/%s", path, name);
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", file);
    if (linkat(AT_FDCWD, proc, folder, name, AT_SYMLINK_FOLLOW))
        return err_sys(err, "naming %s/%s", path, name);
    bundle.path = path_join(real, name);
    bundle.lock = TAKE_FD(file);
    return 0;
}

static void remove_bundle(void)
{
    if (bundle.path)
        unlink(bundle.path);
    free(TAKE_PTR(bundle.path));
    if (bundle.lock >= 0)
        close(TAKE_FD(bundle.lock));
}

/* --- the program --- */

static int read_certificate(int pipe, struct buf *ret, struct err *err)
{
    struct pollfd ready = {.fd = pipe, .events = POLLIN};
    char block[4096];
    ssize_t len;

    do {
        if (poll(&ready, 1, CERTIFICATE_MS) <= 0)
            break;
        len = read(pipe, block, sizeof block);
        if (len > 0 && !buf_append(ret, block, (size_t)len))
            break;
    } while (len > 0 || (len < 0 && errno == EINTR));
    return ret->len ? 0 : err_set(err, ERR_SYSTEM, "cordon-tls does not tell its certificate");
}

static int open_program(const struct companion_start *how, struct err *err)
{
    static char trusts[] = "SSL_CERT_FILE=/proc/self/fd/5";
    static char *const env[] = {trusts, NULL};
    AUTO(buf_done) struct buf roots = {0};
    AUTO(buf_done) struct buf text = {0};
    AUTO_CLOSE int told = -1;
    AUTO_CLOSE int tells = -1;
    AUTO_CLOSE int trusted = -1;
    int pair[2], more[2], status;
    bool is_new;

    read_roots(&roots);
    trusted = fd_sealed_memory("cordon-roots", roots.data, roots.len, err);
    if (trusted < 0)
        return -1;
    if (pipe2(pair, O_CLOEXEC))
        return err_sys(err, "making a pipe");
    told = pair[0];
    tells = pair[1];
    more[0] = tells;
    more[1] = trusted;
    the_tls.more = more;
    the_tls.more_len = 2;
    the_tls.env = env;
    status = companion_open(&the_tls, how, &is_new, err);
    the_tls.more = NULL;
    the_tls.more_len = 0;
    if (status)
        return -1;
    if (!is_new) /* else the one before has failed with its certificate */
        return bundle.path ? 0 : err_set(err, ERR_SYSTEM, "cordon-tls has told no certificate");
    close(TAKE_FD(tells));
    remove_bundle();
    buf_init(&text, ROOTS_MAX + CERTIFICATE_MAX);
    if (read_certificate(told, &text, err) || !buf_append(&text, roots.data, roots.len))
        return -1;
    return write_bundle(&text, err);
}

static void lock(void)
{
    while (atomic_flag_test_and_set(&bundle.is_busy))
        sched_yield();
}

static int join(const char *launcher, bool dies_with_thread, struct err *err)
{
    AUTO_FREE char *program = companion_program(&the_tls, launcher, "tls");
    const struct companion_start how = {.program = program, .dies_with_thread = dies_with_thread};
    int status;

    if (!program)
        return err_set(err, ERR_UNSUPPORTED,
                       "credentials, hooks and limited mode need the program " TLS_PROGRAM
                       ", which is missing: install it beside cordon-linux-sandbox");
    lock();
    companion_join(&the_tls);
    status = open_program(&how, err);
    bundle.users += status == 0;
    if (status)
        companion_leave(&the_tls);
    atomic_flag_clear(&bundle.is_busy);
    return status;
}

void tls_link_leave(void)
{
    lock();
    if (--bundle.users == 0)
        remove_bundle();
    companion_leave(&the_tls); /* with it: who comes next needs both, or neither */
    atomic_flag_clear(&bundle.is_busy);
    companion_reap(&the_tls);
}

int tls_link_control(void)
{
    return the_tls.control;
}

int tls_link_open(const char *launcher, bool dies_with_thread, struct access_map *access,
                  struct strv *env, struct err *err)
{
    if (join(launcher, dies_with_thread, err))
        return -1;
    if (access->restricted) {
        access_map_add(access, bundle.path, ACCESS_READ, ACCESS_FILE,
                       "certificates that commands trust");
        access_map_sort(access);
    }
    for (size_t i = 0; i < VARIABLES; i++)
        strv_pushf(env, "%s=%s", variables[i], bundle.path);
    return 0;
}
