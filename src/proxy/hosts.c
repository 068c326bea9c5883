/* See hosts.h. The file is kept as it is and gone through for each question: it has a few lines, or many thousands
 * that are read in a millisecond. A line is an address and its names; what cannot be read so is left out, as the C
 * library does it. */
#include "proxy/hosts.h"

#include "base/auto.h"
#include "base/fd.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { HOSTS_MAX = 16 << 20 };

void hosts_init(struct hosts *hosts, const char *path)
{
    *hosts = (struct hosts){.path = path};
    buf_init(&hosts->text, HOSTS_MAX);
}

void hosts_done(struct hosts *hosts)
{
    buf_done(&hosts->text);
}

uint64_t hosts_mark(const char *path)
{
    struct stat st;

    if (!path || stat(path, &st))
        return 0;
    return ((uint64_t)st.st_mtim.tv_sec * 1000000007u ^ (uint64_t)st.st_mtim.tv_nsec << 20 ^
            (uint64_t)st.st_ino << 8 ^ (uint64_t)st.st_size) |
           1;
}

static void refresh(struct hosts *hosts)
{
    AUTO(buf_done) struct buf text = {0};
    uint64_t mark = hosts_mark(hosts->path);
    struct err ignored;

    if (mark == hosts->mark)
        return;
    hosts->mark = mark;
    buf_clear(&hosts->text);
    if (mark && fd_read_file(hosts->path, HOSTS_MAX, &text, &ignored) == 0 && text.len)
        buf_append(&hosts->text, text.data, text.len);
}

/* A word of the line, from `*at` on, before `end`. */
static bool next_word(const char **at, const char *end, const char **ret, size_t *ret_len)
{
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        (*at)++;
    *ret = *at;
    while (*at < end && **at != ' ' && **at != '\t' && **at != '\r')
        (*at)++;
    *ret_len = (size_t)(*at - *ret);
    return *ret_len != 0;
}

/* The next line that starts with an address, and what follows that. */
static bool next_line(const char **at, struct net_address *ret, const char **ret_names,
                      const char **ret_end)
{
    while (**at) {
        const char *line = *at, *end = line + strcspn(line, "\n#"), *word;
        struct net_host host;
        struct err ignored;
        size_t len;

        *at = line + strcspn(line, "\n");
        *at += **at == '\n';
        if (next_word(&line, end, &word, &len) && net_host_parse(word, len, &host, &ignored) == 0 &&
            host.kind == NET_HOST_IS_ADDRESS) {
            *ret = host.address;
            *ret_names = line;
            *ret_end = end;
            return true;
        }
    }
    return false;
}

size_t hosts_find(struct hosts *hosts, const char *name, struct net_address *ret, size_t max)
{
    const char *at, *names, *end, *word;
    struct net_address address;
    size_t count = 0, name_len = strlen(name), len;

    refresh(hosts);
    at = hosts->text.data ? hosts->text.data : "";
    while (count < max && next_line(&at, &address, &names, &end))
        while (count < max && next_word(&names, end, &word, &len))
            if (len == name_len && strncasecmp(word, name, len) == 0)
                ret[count++] = address;
    return count;
}

bool hosts_name_of(struct hosts *hosts, const struct net_address *address, size_t index,
                   struct net_host *ret)
{
    const char *at, *names, *end, *word;
    struct net_address of_line;
    struct err ignored;
    size_t len;

    if (index == 0)
        refresh(hosts);
    at = hosts->text.data ? hosts->text.data : "";
    while (next_line(&at, &of_line, &names, &end))
        while (net_address_equal(&of_line, address) && next_word(&names, end, &word, &len))
            if (net_host_parse(word, len, ret, &ignored) == 0 && ret->kind == NET_HOST_IS_NAME &&
                index-- == 0)
                return true;
    return false;
}
