/* A client of ours that stands in a sandbox: each message is read again from its start as more of it comes, since
 * none is longer than 263 bytes. See socks.h. */
#include "proxy/socks.h"

#include <arpa/inet.h>
#include <string.h>

enum { METHOD_NONE = 0, METHOD_UNACCEPTABLE = 0xff };
enum { ADDRESS_IP4 = 1, ADDRESS_NAME = 3, ADDRESS_IP6 = 4 };
enum { HEAD_BYTES = 4, PORT_BYTES = 2 }; /* version, command, reserved, type of the address */

const uint8_t socks_no_authentication[2] = {SOCKS_VERSION, METHOD_NONE};
const uint8_t socks_no_method[2] = {SOCKS_VERSION, METHOD_UNACCEPTABLE};

enum socks_step socks_read_greeting(const uint8_t *bytes, size_t len, size_t *ret_used)
{
    if (len && bytes[0] != SOCKS_VERSION)
        return SOCKS_BAD;
    if (len < 2 || len < 2 + (size_t)bytes[1])
        return SOCKS_MORE;
    *ret_used = 2 + (size_t)bytes[1];
    return memchr(bytes + 2, METHOD_NONE, bytes[1]) ? SOCKS_WHOLE : SOCKS_BAD;
}

static int read_name(const uint8_t *bytes, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] <= ' ' || bytes[i] >= 0x7f)
            return -1;
    memcpy(ret, bytes, len);
    ret[len] = '\0';
    return len ? 0 : -1;
}

/* Of the address behind the head; 0: it has no such type. `bytes` are `len`, one at least. */
static size_t address_bytes(uint8_t type, const uint8_t *bytes)
{
    return type == ADDRESS_IP4    ? sizeof(struct in_addr)
           : type == ADDRESS_IP6  ? sizeof(struct in6_addr)
           : type == ADDRESS_NAME ? 1 + (size_t)bytes[0]
                                  : 0;
}

static int read_address(uint8_t type, const uint8_t *bytes, size_t len, char *ret, size_t size)
{
    if (type == ADDRESS_NAME)
        return read_name(bytes + 1, len - 1, ret);
    return inet_ntop(type == ADDRESS_IP4 ? AF_INET : AF_INET6, bytes, ret, (socklen_t)size) ? 0
                                                                                            : -1;
}

enum socks_step socks_read_request(const uint8_t *bytes, size_t len, struct socks_request *ret,
                                   size_t *ret_used, enum socks_reply *ret_reply)
{
    const uint8_t *address = bytes + HEAD_BYTES;
    size_t size;

    *ret_reply = SOCKS_FAILURE;
    if ((len > 0 && bytes[0] != SOCKS_VERSION) || (len > 2 && bytes[2] != 0))
        return SOCKS_BAD;
    if (len <= HEAD_BYTES)
        return SOCKS_MORE;
    size = address_bytes(bytes[3], address);
    if (!size) {
        *ret_reply = SOCKS_NO_ADDRESS_TYPE;
        return SOCKS_BAD;
    }
    if (len < HEAD_BYTES + size + PORT_BYTES)
        return SOCKS_MORE;
    if (read_address(bytes[3], address, size, ret->host, sizeof ret->host))
        return SOCKS_BAD;
    ret->command = bytes[1];
    ret->port = (uint16_t)(address[size] << 8 | address[size + 1]);
    *ret_used = HEAD_BYTES + size + PORT_BYTES;
    return SOCKS_WHOLE;
}

void socks_write_reply(enum socks_reply reply, uint8_t ret[SOCKS_REPLY_BYTES])
{
    memset(ret, 0, SOCKS_REPLY_BYTES);
    ret[0] = SOCKS_VERSION;
    ret[1] = (uint8_t)reply;
    ret[3] = ADDRESS_IP4;
}
