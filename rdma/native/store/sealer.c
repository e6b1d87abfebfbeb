#include "sealer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NONCE_BYTES = 12, HALF_BYTES = 6, ABOUT_BYTES = 128 };

static EVP_CIPHER_CTX *context(const uint8_t *key, int encrypt)
{
    EVP_CIPHER_CTX *made = EVP_CIPHER_CTX_new();
    if (made != NULL && EVP_CipherInit_ex(made, EVP_aes_256_gcm(), NULL, key, NULL, encrypt) != 1) {
        EVP_CIPHER_CTX_free(made);
        made = NULL;
    }
    return made;
}

int sealer_begin(struct sealer *sealer, const uint8_t key[KEY_BYTES], const char *guest, struct problem *problem)
{
    *sealer = (struct sealer){.seal = context(key, 1), .open = context(key, 0)};
    snprintf(sealer->guest, sizeof sealer->guest, "%s", guest);
    if (sealer->seal == NULL || sealer->open == NULL) {
        sealer_end(sealer);
        return problem_set(problem, "libcrypto has no AES-256-GCM; see `openssl list -cipher-algorithms`");
    }
    return 0;
}

bool sealer_rekey(struct sealer *sealer, const uint8_t key[KEY_BYTES])
{
    return EVP_CipherInit_ex(sealer->seal, NULL, NULL, key, NULL, -1) == 1 &&
           EVP_CipherInit_ex(sealer->open, NULL, NULL, key, NULL, -1) == 1;
}

void sealer_end(struct sealer *sealer)
{
    EVP_CIPHER_CTX_free(sealer->seal);
    EVP_CIPHER_CTX_free(sealer->open);
    sealer->seal = sealer->open = NULL;
}

static void put_big_endian(uint8_t *at, uint64_t value)
{
    for (int byte = HALF_BYTES - 1; byte >= 0; byte--) {
        at[byte] = (uint8_t)value;
        value >>= 8;
    }
}

/* Begin with nonce and authenticated data. The key stays from `context`, so nothing is allocated. */
static bool begin(EVP_CIPHER_CTX *cipher, const char *guest, uint64_t page, uint64_t version)
{
    uint8_t nonce[NONCE_BYTES];
    char about[ABOUT_BYTES];
    int got;
    put_big_endian(nonce, page);
    put_big_endian(nonce + HALF_BYTES, version);
    int size = snprintf(about, sizeof about, "pondstack page 1:%" PRIu64 ":%" PRIu64 ":%s", page, version, guest);
    return EVP_CipherInit_ex(cipher, NULL, NULL, NULL, nonce, -1) == 1 &&
           EVP_CipherUpdate(cipher, NULL, &got, (const uint8_t *)about, size) == 1;
}

bool sealer_seal_bytes(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *plain, uint32_t bytes,
                       uint8_t *sealed, uint8_t tag[TAG_BYTES])
{
    int got, size = (int)bytes;
    return begin(sealer->seal, sealer->guest, page, version) &&
           EVP_CipherUpdate(sealer->seal, sealed, &got, plain, size) == 1 && got == size &&
           EVP_CipherFinal_ex(sealer->seal, sealed + got, &got) == 1 &&
           EVP_CIPHER_CTX_ctrl(sealer->seal, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag) == 1;
}

bool sealer_open_bytes(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *sealed, uint32_t bytes,
                       uint8_t *plain, const uint8_t tag[TAG_BYTES])
{
    int got, size = (int)bytes;
    uint8_t expected[TAG_BYTES];
    memcpy(expected, tag, TAG_BYTES);
    return begin(sealer->open, sealer->guest, page, version) &&
           EVP_CipherUpdate(sealer->open, plain, &got, sealed, size) == 1 && got == size &&
           EVP_CIPHER_CTX_ctrl(sealer->open, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, expected) == 1 &&
           EVP_CipherFinal_ex(sealer->open, plain + got, &got) == 1;
}

bool sealer_seal(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *plain, uint8_t *sealed,
                 uint8_t tag[TAG_BYTES])
{
    return sealer_seal_bytes(sealer, page, version, plain, PAGE_BYTES, sealed, tag);
}

bool sealer_open(struct sealer *sealer, uint64_t page, uint64_t version, const uint8_t *sealed, uint8_t *plain,
                 const uint8_t tag[TAG_BYTES])
{
    return sealer_open_bytes(sealer, page, version, sealed, PAGE_BYTES, plain, tag);
}
