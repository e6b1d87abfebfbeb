#define _GNU_SOURCE
#include "lender.h"

#include "../store/sealer.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_NAME_BYTES = 64 };

bool key_is_located(const json_t *key)
{
    return json_is_object(json_object_get(key, "location"));
}

struct lender *lender_make(struct link *link, struct problem *problem)
{
    struct lender *lender = calloc(1, sizeof *lender);
    if (lender == NULL) {
        problem_set(problem, "no memory for a lender");
        link_end(link);
        return NULL;
    }
    lender->link = link;
    return lender;
}

struct window *lender_window(const struct lender *lender, uint64_t number)
{
    struct window *window = lender->windows;
    while (window != NULL && window->number != number) {
        window = window->next;
    }
    return window;
}

static void close_window(struct window *window)
{
    if (window->tier != NULL) {
        window->tier->type->close(window->tier);
        free(window->tier);
    }
    free(window);
}

static int unpack(json_t *json, struct key *key, struct problem *problem)
{
    json_int_t number, bytes;
    json_error_t error;
    if (json_unpack_ex(json, &error, 0, "{s:I, s:I}", "number", &number, "size_bytes", &bytes) != 0) {
        return problem_set(problem, "key: %s", error.text);
    }
    *key = (struct key){.json = json, .number = (uint64_t)number, .slots = (uint64_t)bytes / PAGE_BYTES};
    return bytes > 0 && key->slots > 0 && key->slots <= MOST_LEASE_SLOTS
               ? 0
               : problem_set(problem, "key: size_bytes: %d to %lld, not %lld", PAGE_BYTES,
                             (long long)MOST_LEASE_SLOTS * PAGE_BYTES, (long long)bytes);
}

/* Name the memory of a key the same way as every host that has a key of it: by its lender and the buffer there. */
static bool name_buffer(struct lease *lease, const char *lender, const json_t *key)
{
    const char *buffer = json_string_value(json_object_get(key, "buffer"));
    uint8_t digest[EVP_MAX_MD_SIZE] = {0};
    char name[LENDER_NAME_BYTES + BUFFER_NAME_BYTES];
    if (buffer == NULL) {
        return true; /* a former release of the agent does not say it */
    }
    int size = snprintf(name, sizeof name, "%s/%s", lender, buffer);
    bool named = size > 0 && (size_t)size < sizeof name &&
                 EVP_Digest(name, (size_t)size, digest, NULL, EVP_sha256(), NULL) == 1;
    memcpy(lease->buffer, digest, sizeof lease->buffer);
    return named;
}

/* Make the lease of a window. False: there is no memory. */
static bool make_lease(struct window *window, const struct lender *lender, const struct key *key, bool hands)
{
    bool handed = hands && json_is_true(json_object_get(key->json, "handed"));
    window->lease = lease_make(window->tier, (uint32_t)key->slots);
    return window->lease != NULL && name_buffer(window->lease, lender->link->name, key->json) &&
           (!handed || lease_hand(window->lease));
}

int lender_lease(struct lender *lender, json_t *json, bool hands, struct leases *leases, struct problem *problem)
{
    struct key key;
    if (unpack(json, &key, problem) != 0) {
        return -1;
    }
    if (lender_window(lender, key.number) != NULL) {
        return 0; /* told once more */
    }
    key.location = lender->link->kept ? json_object_get(json, "location") : NULL;
    struct window *window = calloc(1, sizeof *window);
    if (window == NULL) {
        return problem_set(problem, "no memory for a key");
    }
    window->number = key.number;
    window->tier = link_open(lender->link, &key, problem);
    if (window->tier == NULL) {
        close_window(window);
        return -1;
    }
    if (!make_lease(window, lender, &key, hands) || !leases_add(leases, window->lease)) {
        lease_free(window->lease);
        close_window(window);
        return problem_set(problem, "key %llu of lender %s: there are %d leases already, or there is no memory",
                           (unsigned long long)key.number, lender->link->name, MOST_LEASES);
    }
    window->next = lender->windows;
    lender->windows = window;
    return 0;
}

bool lender_leave(struct lender *lender, uint64_t number)
{
    struct window *window = lender_window(lender, number);
    if (window != NULL && atomic_load(&window->lease->state) != LEASE_LEFT) {
        atomic_store(&window->lease->state, LEASE_LEAVING);
    }
    return window != NULL;
}

void lender_look(struct lender *lender)
{
    if (!link_lives(lender->link)) {
        for (struct window *window = lender->windows; window != NULL; window = window->next) {
            lease_lose(window->lease);
        }
    }
}

void lender_release(struct lender *lender, struct leases *leases, bool all)
{
    for (struct window **at = &lender->windows; *at != NULL;) {
        struct window *window = *at;
        if (!all && atomic_load(&window->lease->state) != LEASE_LEFT) {
            at = &window->next;
            continue;
        }
        *at = window->next;
        leases_remove(leases, window->lease);
        close_window(window);
    }
}

void lender_end(struct lender *lender)
{
    link_end(lender->link);
    free(lender);
}
