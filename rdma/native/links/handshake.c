#include "handshake.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

static const unsigned char MARK[MARK_BYTES] = {'p', 'n', 'd', '1'};
enum { SECRET_BYTES = 64, SUBJECT_BYTES = 512 };

int handshake_request(const struct ticket *ticket, unsigned char request[REQUEST_BYTES], struct problem *problem)
{
    unsigned char secret[SECRET_BYTES];
    char subject[SUBJECT_BYTES];
    size_t size;
    unsigned int proof_bytes = 0;
    int length = snprintf(subject, sizeof subject, "pondstack borrower %s", ticket->borrower);
    if (OPENSSL_hexstr2buf_ex(secret, sizeof secret, &size, ticket->secret, '\0') != 1 ||
        length >= (int)sizeof subject) {
        return problem_set(problem, "ticket: borrower or secret is none; ask the lender's agent for a new ticket");
    }
    memcpy(request, MARK, MARK_BYTES);
    const void *made = HMAC(EVP_sha256(), secret, (int)size, (const unsigned char *)subject, (size_t)length,
                            request + MARK_BYTES, &proof_bytes);
    OPENSSL_cleanse(secret, sizeof secret);
    return made != NULL && proof_bytes == PROOF_BYTES ? 0 : problem_set(problem, "ticket: libcrypto makes no proof");
}

int handshake_port(const unsigned char response[WELCOME_BYTES])
{
    return memcmp(response, MARK, MARK_BYTES) == 0 ? response[MARK_BYTES] << 8 | response[MARK_BYTES + 1] : -1;
}
