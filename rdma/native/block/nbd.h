/* What NBD says on the wire, as far as it is spoken here: "fixed newstyle" without structured replies and TLS
 * (the protocol's own document, doc/proto.md of NetworkBlockDevice/nbd). */
#ifndef PONDSTACK_BLOCK_NBD_H
#define PONDSTACK_BLOCK_NBD_H

#include <stddef.h>
#include <stdint.h>

#define NBD_GREETING     0x4e42444d41474943ULL /* NBDMAGIC */
#define NBD_OPTIONS      0x49484156454f5054ULL /* IHAVEOPT */
#define NBD_OPTION_REPLY 0x0003e889045565a9ULL
#define NBD_REQUEST      0x25609513U
#define NBD_SIMPLE_REPLY 0x67446698U

enum { NBD_FIXED_NEWSTYLE = 1, NBD_NO_ZEROES = 2 }; /* flags of the handshake, by both sides */
enum { NBD_HELLO_BYTES = 18, NBD_CLIENT_FLAGS_BYTES = 4, NBD_OPTION_BYTES = 16, NBD_OPTION_REPLY_BYTES = 20 };
enum { NBD_COMMAND_BYTES = 28, NBD_REPLY_BYTES = 16, NBD_PADDING_BYTES = 124, NBD_MOST_OPTION_BYTES = 8192 };

enum nbd_option { NBD_EXPORT_NAME = 1, NBD_ABORT = 2, NBD_LIST = 3, NBD_INFO = 6, NBD_GO = 7 };
enum nbd_info { NBD_INFO_EXPORT = 0, NBD_INFO_NAME = 1, NBD_INFO_BLOCK_SIZE = 3 };

#define NBD_REP_ACK         1U
#define NBD_REP_SERVER      2U
#define NBD_REP_INFO        3U
#define NBD_REP_UNSUPPORTED 0x80000001U
#define NBD_REP_INVALID     0x80000003U
#define NBD_REP_UNKNOWN     0x80000006U

/* What an export can do. MULTI_CONN: a flush over one connection is one of what came over all. */
enum {
    NBD_HAS_FLAGS = 1,
    NBD_SEND_FLUSH = 4,
    NBD_SEND_FUA = 8,
    NBD_SEND_TRIM = 32,
    NBD_SEND_WRITE_ZEROES = 64,
    NBD_MULTI_CONN = 256
};

enum nbd_command { NBD_READ = 0, NBD_WRITE = 1, NBD_DISCONNECT = 2, NBD_FLUSH = 3, NBD_TRIM = 4, NBD_WRITE_ZEROES = 6 };
enum { NBD_FUA = 1, NBD_NO_HOLE = 2 };                  /* flags of a command */
enum { NBD_EIO = 5, NBD_EINVAL = 22, NBD_ENOSPC = 28 }; /* errors, whatever the system's numbers are */

static inline void put_16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void put_32(uint8_t *at, uint32_t value)
{
    put_16(at, (uint16_t)(value >> 16));
    put_16(at + 2, (uint16_t)value);
}

static inline void put_64(uint8_t *at, uint64_t value)
{
    put_32(at, (uint32_t)(value >> 32));
    put_32(at + 4, (uint32_t)value);
}

static inline uint16_t get_16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t get_32(const uint8_t *at)
{
    return (uint32_t)get_16(at) << 16 | get_16(at + 2);
}

static inline uint64_t get_64(const uint8_t *at)
{
    return (uint64_t)get_32(at) << 32 | get_32(at + 4);
}

#endif
