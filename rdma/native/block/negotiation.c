#include "negotiation.h"

#include "nbd.h"

#include <string.h>

enum { PREFERRED_BLOCK = 4096, NAME_BYTES = 128 };
static const uint16_t FLAGS =
    NBD_HAS_FLAGS | NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM | NBD_SEND_WRITE_ZEROES | NBD_MULTI_CONN;

/* Where answers are put together. */
struct answers {
    uint8_t *out;
    size_t written;
    uint32_t option;
};

size_t negotiation_hello(uint8_t *out)
{
    put_64(out, NBD_GREETING);
    put_64(out + 8, NBD_OPTIONS);
    put_16(out + 16, NBD_FIXED_NEWSTYLE | NBD_NO_ZEROES);
    return NBD_HELLO_BYTES;
}

static void answer(struct answers *answers, uint32_t kind, const uint8_t *data, size_t size)
{
    uint8_t *at = answers->out + answers->written;
    put_64(at, NBD_OPTION_REPLY);
    put_32(at + 8, answers->option);
    put_32(at + 12, kind);
    put_32(at + 16, (uint32_t)size);
    if (size > 0) {
        memcpy(at + NBD_OPTION_REPLY_BYTES, data, size);
    }
    answers->written += NBD_OPTION_REPLY_BYTES + size;
}

/* The name is the export's, or the default one's. */
static bool is_ours(const struct export *export, const uint8_t *name, size_t size)
{
    return size == 0 || (size == strlen(export->name) && memcmp(name, export->name, size) == 0);
}

static size_t name_of(const struct export *export, uint8_t *into)
{
    size_t size = strlen(export->name);
    size = size < NAME_BYTES ? size : NAME_BYTES;
    memcpy(into, export->name, size);
    return size;
}

static void tell_about(struct answers *answers, const struct export *export)
{
    uint8_t about[2 + NAME_BYTES];
    put_16(about, NBD_INFO_EXPORT);
    put_64(about + 2, export->bytes);
    put_16(about + 10, FLAGS);
    answer(answers, NBD_REP_INFO, about, 12);
    put_16(about, NBD_INFO_BLOCK_SIZE);
    put_32(about + 2, 1);
    put_32(about + 6, PREFERRED_BLOCK);
    put_32(about + 10, MOST_COMMAND_BYTES);
    answer(answers, NBD_REP_INFO, about, 14);
    put_16(about, NBD_INFO_NAME);
    answer(answers, NBD_REP_INFO, about, 2 + name_of(export, about + 2));
    answer(answers, NBD_REP_ACK, NULL, 0);
}

/* A length, a name, a count, and so many kinds of information: what is known is told anyway. */
static enum negotiated answer_go(struct answers *answers, const struct export *export, const uint8_t *data,
                                 uint32_t size)
{
    uint32_t name = size < 6 ? 0 : get_32(data);
    if (size < 6 || name > size - 6 || size - 6 - name != 2U * get_16(data + 4 + name)) {
        answer(answers, NBD_REP_INVALID, NULL, 0);
        return GOES_ON;
    }
    if (!is_ours(export, data + 4, name)) {
        answer(answers, NBD_REP_UNKNOWN, NULL, 0);
        return GOES_ON;
    }
    tell_about(answers, export);
    return answers->option == NBD_GO ? BEGINS : GOES_ON;
}

static enum negotiated answer_list(struct answers *answers, const struct export *export, uint32_t size)
{
    uint8_t named[4 + NAME_BYTES];
    if (size != 0) {
        answer(answers, NBD_REP_INVALID, NULL, 0);
        return GOES_ON;
    }
    size_t name = name_of(export, named + 4);
    put_32(named, (uint32_t)name);
    answer(answers, NBD_REP_SERVER, named, 4 + name);
    answer(answers, NBD_REP_ACK, NULL, 0);
    return GOES_ON;
}

/* The old way to begin; the protocol has no other answer to an unknown name than the end. */
static enum negotiated answer_name(struct answers *answers, const struct export *export, uint32_t client_flags,
                                   const uint8_t *data, uint32_t size)
{
    if (!is_ours(export, data, size)) {
        return ENDS;
    }
    size_t padding = client_flags & NBD_NO_ZEROES ? 0 : NBD_PADDING_BYTES;
    put_64(answers->out, export->bytes);
    put_16(answers->out + 8, FLAGS);
    memset(answers->out + 10, 0, padding);
    answers->written += 10 + padding;
    return BEGINS;
}

enum negotiated negotiation_answer(const struct export *export, uint32_t client_flags, uint32_t option,
                                   const uint8_t *data, uint32_t size, uint8_t *out, size_t *written)
{
    struct answers answers = {.out = out, .option = option};
    enum negotiated outcome = GOES_ON;
    switch (option) {
    case NBD_EXPORT_NAME:
        outcome = answer_name(&answers, export, client_flags, data, size);
        break;
    case NBD_INFO:
    case NBD_GO:
        outcome = answer_go(&answers, export, data, size);
        break;
    case NBD_LIST:
        outcome = answer_list(&answers, export, size);
        break;
    case NBD_ABORT:
        answer(&answers, NBD_REP_ACK, NULL, 0);
        outcome = ENDS;
        break;
    default:
        answer(&answers, NBD_REP_UNSUPPORTED, NULL, 0);
    }
    *written += answers.written;
    return outcome;
}
