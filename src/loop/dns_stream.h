/* One question to a server of DNS by TCP (RFC 7766): for answers that a datagram has no room for. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct loop;
struct dns_stream;

enum dns_stream_type { DNS_STREAM_A = 1, DNS_STREAM_AAAA = 28 };

/* `addresses`: `len` of 4 or 16 bytes each. -1: there is no answer that could be read. */
typedef void dns_stream_fn(void *data, const uint8_t *addresses, int len);

/* Calls back once, and is gone then, unless it is freed before; never before it has returned. It sets no time limit.
 * NULL: the server cannot be asked. */
struct dns_stream *dns_stream_new(struct loop *loop, const struct sockaddr *server,
                                  socklen_t server_len, const char *name, enum dns_stream_type type,
                                  dns_stream_fn *on_answer, void *data);
void dns_stream_free(struct dns_stream *stream); /* NULL is fine */

enum { DNS_STREAM_ADDRESSES_MAX = 32 };

/* Pure: the addresses in the message that answers the question `id` about `type`, at most so many; -1 when it is none.
 * Whose they are is not looked at: what leads there from the name (CNAME) is the server's word as well. */
int dns_stream_read(const uint8_t *message, size_t len, uint16_t id, enum dns_stream_type type,
                    uint8_t ret[DNS_STREAM_ADDRESSES_MAX * 16]);
