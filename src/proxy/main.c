/* cordon-proxy: the way out of the networks of sandboxed commands whose network is proxied. It runs outside of them, and
 * alone reads what they send.
 *
 *     host -> control socket -> a command: its channel and its policy
 *     launcher -> channel -> the listeners in the command's network
 *     listeners -> connections and look-ups, decided, dialled, relayed
 *
 * It is a program of its own, like the guard: what it parses comes from hostile processes and servers, and the host's
 * memory has tokens and other commands' output. One loop, no threads. It ends with the control socket and every command's
 * channel closed; a command whose policy cannot be read is let go, and reaches nothing. */
#include "base/auto.h"
#include "base/confine.h"
#include "base/fd.h"
#include "base/pass.h"
#include "base/path.h"
#include "base/sys.h"
#include "loop/loop.h"
#include "loop/resolve.h"
#include "proxy/command.h"
#include "proxy/connection.h"
#include "proxy/dial.h"
#include "proxy/explicit.h"
#include "proxy/limits.h"
#include "proxy/proxy.h"
#include "proxy/relay.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct loop_watch *control;
static bool is_over;

static void look_whether_over(const struct proxy *proxy)
{
    is_over = !control && list_is_empty(&proxy->commands);
}

/* Takes the next command. */
static void on_control(void *data, int fd, unsigned ready)
{
    struct proxy_hello hello = {0};
    int fds[PASS_MAX];
    size_t count;
    ssize_t len = pass_receive(fd, &hello, sizeof hello, MSG_DONTWAIT, fds, &count);

    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == EMFILE))
        return;
    if (len <= 0)
        loop_watch_free(TAKE_PTR(control));
    else if (len != (ssize_t)sizeof hello || hello.magic != PROXY_MAGIC ||
             hello.version != PROXY_VERSION || count <= PROXY_FD_POLICY || count > PROXY_FDS)
        pass_close(fds, count);
    else
        command_new(data, fds[PROXY_FD_CHANNEL], fds[PROXY_FD_POLICY],
                    count > PROXY_FD_TLS ? fds[PROXY_FD_TLS] : -1, hello.flags);
    look_whether_over(data);
}

void proxy_refresh_resolver(struct proxy *proxy)
{
    uint64_t mark = hosts_mark(proxy->resolv_conf);

    if (mark == proxy->resolv_conf_mark)
        return;
    proxy->resolv_conf_mark = mark;
    loop_resolver_read(proxy->resolver, proxy->resolv_conf);
    search_read(&proxy->search, proxy->resolv_conf);
}

void proxy_command_ended(struct proxy *proxy)
{
    look_whether_over(proxy);
}

static void proxy_init(struct proxy *proxy)
{
    const struct {
        struct deadline_queue *queue;
        uint64_t wait_ns;
        deadline_fn *on_time;
    } queues[] = {
        {&proxy->connecting, LIMIT_CONNECT_NS, dial_on_time},
        {&proxy->trying, LIMIT_TRY_NS, dial_on_attempt},
        {&proxy->first_bytes, LIMIT_FIRST_BYTES_NS, connection_on_first_bytes},
        {&proxy->explicit_head, LIMIT_EXPLICIT_HEAD_NS, explicit_on_time},
        {&proxy->closing, LIMIT_CLOSING_NS, connection_on_time},
        {&proxy->idle, LIMIT_IDLE_NS, connection_on_idle},
        {&proxy->dns_streams, LIMIT_DNS_STREAM_NS, dns_server_on_idle},
        {&proxy->visitors, LIMIT_CONNECT_NS, published_on_time},
    };

    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        deadline_queue_init(queues[i].queue, proxy->loop, queues[i].wait_ns, queues[i].on_time);
    upstreams_read(&proxy->upstreams);
    hosts_init(&proxy->hosts, "/etc/hosts");
    gethostname(proxy->own_name, sizeof proxy->own_name - 1);
    proxy->resolv_conf = "/etc/resolv.conf";
    proxy->resolv_conf_mark = UINT64_MAX; /* not read yet, be it there or not */
}

/* --- what it keeps once it is set up --- */

static const long calls[] = {
    SYS_read,         SYS_write,        SYS_readv,           SYS_writev,       SYS_close,
    SYS_lseek,        SYS_splice,       SYS_pipe2,           SYS_socketpair,   SYS_sendto,
    SYS_recvfrom,     SYS_sendmsg,      SYS_recvmsg,         SYS_accept4,      SYS_connect,
    SYS_bind,         SYS_shutdown,     SYS_getsockname,     SYS_getpeername,  SYS_setsockopt,
    SYS_getsockopt,   SYS_fcntl,        SYS_ioctl,           SYS_openat,       SYS_fstat,
    SYS_newfstatat,   SYS_statx,        SYS_readlinkat,      SYS_epoll_ctl,    SYS_epoll_pwait,
    SYS_ppoll,        SYS_mmap,         SYS_munmap,          SYS_mremap,       SYS_mprotect,
    SYS_madvise,      SYS_brk,          SYS_futex,           SYS_getrandom,    SYS_clock_gettime,
    SYS_gettimeofday, SYS_nanosleep,    SYS_clock_nanosleep, SYS_getpid,       SYS_gettid,
    SYS_tgkill,       SYS_rt_sigaction, SYS_rt_sigprocmask,  SYS_rt_sigreturn, SYS_restart_syscall,
    SYS_exit,         SYS_exit_group,
#ifdef SYS_epoll_wait /* older ones, of x86 alone */
    SYS_epoll_wait,   SYS_stat,         SYS_lstat,           SYS_open,         SYS_readlink,
    SYS_poll,         SYS_time,
#endif
};

static int confine_proxy(struct err *err)
{
    AUTO_FREE char *resolv_conf = realpath("/etc/resolv.conf", NULL);
    AUTO_FREE char *its_folder = resolv_conf ? path_parent(resolv_conf) : NULL;
    /* where resolv.conf may come to lie when the machine changes networks */
    const char *const folders[] = {"/etc",
                                   "/run/systemd/resolve",
                                   "/run/NetworkManager",
                                   "/run/resolvconf",
                                   "/run/connman",
                                   its_folder,
                                   NULL};
    const struct confine_options options = {.folders = folders,
                                            .calls = calls,
                                            .calls_len = sizeof calls / sizeof *calls,
                                            .has_network = true};

    return confine(&options, err);
}

int main(void)
{
    static struct proxy proxy;
    struct err err;

    sys_close_range(PROXY_CONTROL_FD + 1, ~0u, 0);
    signal(SIGPIPE, SIG_IGN);
    fd_raise_limit();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chdir("/"))
        return 1;
    proxy.loop = loop_new(&err);
    proxy.resolver = proxy.loop ? loop_resolver_new(proxy.loop, LIMIT_RESOLVE_NS, &err) : NULL;
    if (!proxy.resolver)
        return 1;
    proxy_init(&proxy);
    control = loop_watch_new(proxy.loop, PROXY_CONTROL_FD, LOOP_READ, on_control, &proxy, &err);
    if (!control || confine_proxy(&err))
        return 1;
    return loop_run(proxy.loop, &is_over, &err) ? 1 : 0;
}
