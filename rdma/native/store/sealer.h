/* Pages leave the host encrypted and authenticated: AES-256-GCM with a key per guest, as rdma/tests/page_sealer.py has
 * it.
 *
 * The guest, the page's number and its version are authenticated along with the content. The caller never seals a page
 * twice under one version: it writes the version down before it seals.
 */
#ifndef PONDSTACK_STORE_SEALER_H
#define PONDSTACK_STORE_SEALER_H

#include "problem.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096, KEY_BYTES = 32, TAG_BYTES = 16, UUID_BYTES = 37 };

struct sealer {
    EVP_CIPHER_CTX *seal;
    EVP_CIPHER_CTX *open;
    char guest[UUID_BYTES];
};

int sealer_begin(struct sealer *sealer, const uint8_t key[KEY_BYTES], const char *guest, struct problem *problem);

/* Go on with another key. False: libcrypto failed. No allocation. */
bool sealer_rekey(struct sealer *sealer, const uint8_t key[KEY_BYTES]);

/* Idempotent; forgets the key. */
void sealer_end(struct sealer *sealer);

/* Seal a page. False: libcrypto failed. No allocation. */
bool sealer_seal(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *plain, uint8_t *sealed,
                 uint8_t tag[TAG_BYTES]);

/* The same of any number of bytes, for what has a key of its own; the caller never uses two numbers twice. */
bool sealer_seal_bytes(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *plain, uint32_t bytes,
                       uint8_t *sealed, uint8_t tag[TAG_BYTES]);
bool sealer_open_bytes(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *sealed, uint32_t bytes,
                       uint8_t *plain, const uint8_t tag[TAG_BYTES]);

/* Open a page, in place if `plain` is `sealed`. False: it is not what was sealed as this version of this page. */
bool sealer_open(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *sealed, uint8_t *plain,
                 const uint8_t tag[TAG_BYTES]);

#endif
