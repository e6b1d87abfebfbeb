/* How an NBD client and an export begin: which export, of what size, in which blocks. Pure: bytes in, bytes out. */
#ifndef PONDSTACK_BLOCK_NEGOTIATION_H
#define PONDSTACK_BLOCK_NEGOTIATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_COMMAND_BYTES = 64 * 4096 }; /* with one command */
enum { MOST_ANSWERS_BYTES = 1024 };      /* to one option */

/* What is served. */
struct export
{
    const char *name;
    uint64_t bytes;
};

enum negotiated { GOES_ON, BEGINS, ENDS };

/* Write what the server says first; returns its size. */
size_t negotiation_hello(uint8_t *out);

/* Answer one option, of at most NBD_MOST_OPTION_BYTES, in at most MOST_ANSWERS_BYTES; adds their size to `written`. */
enum negotiated negotiation_answer(const struct export *export, uint32_t client_flags, uint32_t option,
                                   const uint8_t *data, uint32_t size, uint8_t *out, size_t *written);

#endif
