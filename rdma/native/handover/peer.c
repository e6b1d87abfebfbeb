#include "peer.h"

#include "../links/wire.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANDOM_BYTES = 32, MAGIC_BYTES = 8 };
static const char MAGIC[MAGIC_BYTES] = {'p', 'o', 'n', 'd', 'h', 'o', 'v', '1'};

struct greeting {
    char magic[MAGIC_BYTES];
    uint8_t random[RANDOM_BYTES];
};

/* What a key is made of: for which direction, which guest, and between whom. */
struct origin {
    char label[24];
    char guest[UUID_BYTES];
    uint8_t connecting, accepting_random[RANDOM_BYTES], connecting_random[RANDOM_BYTES];
};

static int begin_sealer(struct sealer *sealer, const uint8_t key[KEY_BYTES], struct origin *origin, bool connecting)
{
    uint8_t derived[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct problem problem;
    origin->connecting = connecting;
    if (HMAC(EVP_sha256(), key, KEY_BYTES, (const uint8_t *)origin, sizeof *origin, derived, &size) == NULL) {
        return EIO;
    }
    int error = sealer_begin(sealer, derived, origin->guest, &problem) == 0 ? 0 : ENOMEM;
    OPENSSL_cleanse(derived, sizeof derived);
    return error;
}

static int begin_sealers(struct peer *peer, const uint8_t key[KEY_BYTES], const char *guest, bool connects,
                         const struct greeting *own, const struct greeting *other)
{
    struct origin origin = {.label = "pondstack hand-over 1"};
    strncpy(origin.guest, guest, sizeof origin.guest - 1);
    memcpy(origin.connecting_random, connects ? own->random : other->random, RANDOM_BYTES);
    memcpy(origin.accepting_random, connects ? other->random : own->random, RANDOM_BYTES);
    int error = begin_sealer(&peer->ours, key, &origin, connects);
    return error != 0 ? error : begin_sealer(&peer->theirs, key, &origin, !connects);
}

static int greet(struct peer *peer, struct greeting *own, struct greeting *other, bool connects, uint64_t ends_ns)
{
    memcpy(own->magic, MAGIC, sizeof MAGIC);
    if (getrandom(own->random, sizeof own->random, 0) != sizeof own->random) {
        return EIO;
    }
    int error = connects ? wire_send(peer->fd, own, sizeof *own, ends_ns) : 0;
    error = error != 0 ? error : wire_receive(peer->fd, other, sizeof *other, ends_ns);
    if (error == 0 && memcmp(other->magic, MAGIC, sizeof MAGIC) != 0) {
        error = EPROTO;
    }
    return error != 0 || connects ? error : wire_send(peer->fd, own, sizeof *own, ends_ns);
}

/* Each shows that it has the key, the one that connects first. */
static int prove(struct peer *peer, bool connects, uint64_t ends_ns)
{
    static const uint8_t proof[MESSAGE_BYTES] = "hand-over";
    uint8_t got[MESSAGE_BYTES];
    int error = connects ? peer_send(peer, proof, sizeof proof, ends_ns) : 0;
    error = error != 0 ? error : peer_receive(peer, got, sizeof got, ends_ns);
    if (error == 0 && memcmp(got, proof, sizeof proof) != 0) {
        error = EPROTO;
    }
    return error != 0 || connects ? error : peer_send(peer, proof, sizeof proof, ends_ns);
}

int peer_begin(struct peer *peer, int fd, const uint8_t key[KEY_BYTES], const char *guest, bool connects,
               uint64_t ends_ns)
{
    struct greeting own, other;
    *peer = (struct peer){.fd = fd, .staging = malloc(MOST_PAYLOAD + TAG_BYTES)};
    int error = peer->staging == NULL ? ENOMEM : greet(peer, &own, &other, connects, ends_ns);
    error = error != 0 ? error : begin_sealers(peer, key, guest, connects, &own, &other);
    error = error != 0 ? error : prove(peer, connects, ends_ns);
    if (error != 0) {
        peer_end(peer);
    }
    return error;
}

void peer_end(struct peer *peer)
{
    if (peer->fd >= 0) {
        close(peer->fd);
    }
    sealer_end(&peer->ours);
    sealer_end(&peer->theirs);
    free(peer->staging);
    *peer = (struct peer){.fd = -1};
}

int peer_send(struct peer *peer, const void *from, uint32_t bytes, uint64_t ends_ns)
{
    if (bytes > MOST_PAYLOAD ||
        !sealer_seal_bytes(&peer->ours, peer->sent++, bytes, from, bytes, peer->staging, peer->staging + bytes)) {
        return EIO;
    }
    return wire_send(peer->fd, peer->staging, (size_t)bytes + TAG_BYTES, ends_ns);
}

static int open_message(struct peer *peer, const uint8_t *sealed, uint32_t bytes, void *into)
{
    bool good = sealer_open_bytes(&peer->theirs, peer->received++, bytes, sealed, bytes, into, sealed + bytes);
    return good ? 0 : EBADMSG;
}

int peer_receive(struct peer *peer, void *into, uint32_t bytes, uint64_t ends_ns)
{
    if (bytes > MOST_PAYLOAD) {
        return EIO;
    }
    int error = wire_receive(peer->fd, peer->staging, (size_t)bytes + TAG_BYTES, ends_ns);
    return error != 0 ? error : open_message(peer, peer->staging, bytes, into);
}

int peer_look(struct peer *peer, uint8_t message[MESSAGE_BYTES])
{
    ssize_t got = recv(peer->fd, peer->wire + peer->got, sizeof peer->wire - peer->got, MSG_DONTWAIT);
    if (got <= 0) {
        int error = got == 0 ? ECONNRESET : errno;
        return error == EINTR ? EAGAIN : error;
    }
    peer->got += (uint32_t)got;
    if (peer->got < sizeof peer->wire) {
        return EAGAIN;
    }
    peer->got = 0;
    return open_message(peer, peer->wire, MESSAGE_BYTES, message);
}

int peer_ask(struct peer *peer, const struct peer_request *request, struct peer_answer *answer, void *payload,
             uint64_t ends_ns)
{
    uint8_t message[MESSAGE_BYTES];
    request_pack(request, message);
    int error = peer_send(peer, message, sizeof message, ends_ns);
    error = error != 0 ? error : peer_receive(peer, message, sizeof message, ends_ns);
    if (error == 0 && !answer_unpack(message, request, answer)) {
        error = EPROTO;
    }
    return error != 0 || answer->bytes == 0 ? error : peer_receive(peer, payload, answer->bytes, ends_ns);
}
