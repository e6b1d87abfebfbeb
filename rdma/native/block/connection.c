#define _GNU_SOURCE
#include "connection.h"

#include "../pager/counters.h"
#include "../pager/crash_point.h"
#include "../pager/latency.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* A store that does not take pages slows its writers down. */
static const struct timespec FAILED_WRITE_PAUSE = {.tv_nsec = 10000000};

struct command {
    uint16_t flags, kind;
    uint64_t cookie, offset;
    uint32_t bytes;
};

void connection_begin(struct nbd_connection *connection, struct device *device, const char *name)
{
    connection->device = device;
    connection->name = name;
    connection->phase = SAYS_FLAGS;
    connection->client_flags = connection->got = connection->taken = 0;
    connection->misbehaved = false;
    connection->put = (uint32_t)negotiation_hello(connection->out);
    COUNT(device->counters, connections, 1);
}

/* What of `in` was not taken yet. */
static const uint8_t *next(const struct nbd_connection *connection, uint32_t *bytes)
{
    *bytes = connection->got - connection->taken;
    return connection->in + connection->taken;
}

static void hang_up(struct nbd_connection *connection)
{
    connection->phase = FINISHED;
    connection->misbehaved = true;
}

/* Each of these takes one whole message; false: it is not all there yet, or there is no room to answer it. */

static bool take_flags(struct nbd_connection *connection)
{
    uint32_t there;
    const uint8_t *in = next(connection, &there);
    if (there < NBD_CLIENT_FLAGS_BYTES) {
        return false;
    }
    connection->client_flags = get_32(in);
    connection->taken += NBD_CLIENT_FLAGS_BYTES;
    connection->phase = CHOOSES;
    if ((connection->client_flags & ~(uint32_t)(NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES)) != 0) {
        hang_up(connection);
    }
    return true;
}

static bool take_option(struct nbd_connection *connection)
{
    uint32_t there;
    const uint8_t *in = next(connection, &there);
    if (there < NBD_OPTION_BYTES || connection->put + MOST_ANSWERS_BYTES > CONNECTION_OUT) {
        return false;
    }
    uint32_t option = get_32(in + 8), size = get_32(in + 12);
    if (get_64(in) != NBD_OPTIONS || size > NBD_MOST_OPTION_BYTES) {
        hang_up(connection);
        return true;
    }
    if (there - NBD_OPTION_BYTES < size) {
        return false;
    }
    struct export export = {.name = connection->name, .bytes = atomic_load(&connection->device->bytes)};
    size_t written = 0;
    enum negotiated outcome = negotiation_answer(&export, connection->client_flags, option, in + NBD_OPTION_BYTES, size,
                                                 connection->out + connection->put, &written);
    connection->put += (uint32_t)written;
    connection->taken += NBD_OPTION_BYTES + size;
    connection->phase = outcome == BEGINS ? COMMANDS : outcome == ENDS ? FINISHED : CHOOSES;
    return true;
}

static uint32_t error_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case EINVAL:
        return NBD_EINVAL;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return NBD_ENOSPC;
    default:
        return NBD_EIO;
    }
}

static int carry_out_read(struct device *device, const struct command *command, uint8_t *into)
{
    if (!device_has(device, command->offset, command->bytes)) {
        return EINVAL;
    }
    COUNT(device->counters, reads, 1);
    COUNT(device->counters, read_bytes, command->bytes);
    return device_read(device, command->offset, command->bytes, into);
}

static int carry_out_change(struct device *device, const struct command *command, const uint8_t *data)
{
    int error;
    if (!device_has(device, command->offset, command->bytes)) {
        return command->kind == NBD_TRIM ? EINVAL : ENOSPC;
    }
    if (command->kind == NBD_WRITE) {
        COUNT(device->counters, writes, 1);
        COUNT(device->counters, written_bytes, command->bytes);
        error = device_write(device, command->offset, command->bytes, data);
    } else {
        COUNT(device->counters, trims, 1);
        error = command->kind == NBD_TRIM
                    ? device_trim(device, command->offset, command->bytes)
                    : device_zero(device, command->offset, command->bytes, (command->flags & NBD_NO_HOLE) != 0);
    }
    if (error != 0) {
        nanosleep(&FAILED_WRITE_PAUSE, NULL);
    }
    return error;
}

/* Which flags a command may have. */
static uint16_t flags_of(uint16_t kind)
{
    return kind == NBD_WRITE_ZEROES ? NBD_FUA | NBD_NO_HOLE : NBD_FUA;
}

/* What was answered is as safe as it will ever be: it outlives this process, and neither it nor its key outlives the
 * host. So a flush, and FUA, have nothing to wait for. */
static int carry_out(struct device *device, const struct command *command, const uint8_t *data, uint8_t *into)
{
    if ((command->flags & ~flags_of(command->kind)) != 0) {
        return EINVAL;
    }
    switch (command->kind) {
    case NBD_READ:
        return carry_out_read(device, command, into);
    case NBD_WRITE:
    case NBD_TRIM:
    case NBD_WRITE_ZEROES:
        return carry_out_change(device, command, data);
    case NBD_FLUSH:
        COUNT(device->counters, flushes, 1);
        return 0;
    default:
        return EINVAL;
    }
}

static void answer(struct nbd_connection *connection, const struct command *command, int error)
{
    uint8_t *at = connection->out + connection->put;
    put_32(at, NBD_SIMPLE_REPLY);
    put_32(at + 4, error_of(error));
    put_64(at + 8, command->cookie);
    connection->put += NBD_REPLY_BYTES + (command->kind == NBD_READ && error == 0 ? command->bytes : 0);
    COUNT(connection->device->counters, refused, error == EINVAL);
}

static bool take_command(struct nbd_connection *connection)
{
    uint32_t there;
    const uint8_t *in = next(connection, &there);
    if (there < NBD_COMMAND_BYTES) {
        return false;
    }
    struct command command = {.flags = get_16(in + 4),
                              .kind = get_16(in + 6),
                              .cookie = get_64(in + 8),
                              .offset = get_64(in + 16),
                              .bytes = get_32(in + 24)};
    uint32_t sent = command.kind == NBD_WRITE ? command.bytes : 0;
    bool fits = command.bytes <= MOST_COMMAND_BYTES;
    uint32_t asked = command.kind == NBD_READ && fits ? command.bytes : 0;
    if (get_32(in) != NBD_REQUEST || (command.kind == NBD_WRITE && !fits) || command.kind == NBD_DISCONNECT) {
        connection->misbehaved = get_32(in) != NBD_REQUEST || command.kind == NBD_WRITE;
        connection->phase = FINISHED;
        return true;
    }
    if (there - NBD_COMMAND_BYTES < sent || connection->put + NBD_REPLY_BYTES + asked > CONNECTION_OUT) {
        return false;
    }
    uint64_t begun = clock_ns();
    int error = command.kind == NBD_READ && !fits ? EINVAL
                                                  : carry_out(connection->device, &command, in + NBD_COMMAND_BYTES,
                                                              connection->out + connection->put + NBD_REPLY_BYTES);
    answer(connection, &command, error);
    connection->taken += NBD_COMMAND_BYTES + sent;
    latency_record(&connection->device->service, clock_ns() - begun);
    CRASH_POINT("carried-out");
    return true;
}

void connection_step(struct nbd_connection *connection)
{
    bool took = true;
    while (took && connection->phase != FINISHED) {
        switch (connection->phase) {
        case SAYS_FLAGS:
            took = take_flags(connection);
            break;
        case CHOOSES:
            took = take_option(connection);
            break;
        default:
            took = take_command(connection);
        }
    }
    connection->got -= connection->taken;
    memmove(connection->in, connection->in + connection->taken, connection->got);
    connection->taken = 0;
}

void connection_sent(struct nbd_connection *connection, uint32_t bytes)
{
    connection->put -= bytes;
    memmove(connection->out, connection->out + bytes, connection->put);
}
