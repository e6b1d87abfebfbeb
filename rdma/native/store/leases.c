#include "leases.h"

#include "sealer.h"

#include <stdlib.h>
#include <string.h>

/* Packed: the number of the lease in the list, from 1 on, in the upper 8 bits; the slot below. */
enum { SLOT_BITS = 24, SLOT_MASK = (1 << SLOT_BITS) - 1 };
_Static_assert(MOST_LEASES < 1 << (32 - SLOT_BITS) && MOST_LEASE_SLOTS <= 1 << SLOT_BITS, "they fit");

static uint32_t pack(uint32_t at, uint32_t slot)
{
    return (at + 1) << SLOT_BITS | slot;
}

bool leases_begin(struct leases *leases, uint64_t pages, const struct policy_type *policy)
{
    *leases = (struct leases){.pages = pages, .policy = policy};
    if (pages >= NO_PAGE) {
        return false;
    }
    leases->where = calloc(pages, sizeof *leases->where);
    leases->policy_memory = calloc(1, policy->size_bytes((uint32_t)pages));
    if (leases->where == NULL || leases->policy_memory == NULL) {
        leases_end(leases);
        return false;
    }
    policy->begin(leases->policy_memory, (uint32_t)pages, policy->default_parameter);
    return true;
}

void leases_end(struct leases *leases)
{
    free(leases->where);
    free(leases->policy_memory);
    leases->where = NULL;
    leases->policy_memory = NULL;
}

struct lease *lease_make(struct tier *tier, uint32_t slots)
{
    struct lease *lease = malloc(sizeof *lease + (size_t)slots * sizeof *lease->free);
    if (lease != NULL) {
        lease->tier = tier;
        lease->slots = slots;
        lease->taken = NULL;
        memset(lease->buffer, 0, sizeof lease->buffer);
        atomic_init(&lease->free_count, slots);
        atomic_init(&lease->state, LEASE_ACTIVE);
        for (uint32_t at = 0; at < slots; at++) {
            lease->free[at] = slots - 1 - at;
        }
    }
    return lease;
}

bool lease_hand(struct lease *lease)
{
    lease->taken = calloc(1, (size_t)lease->slots / 8 + 1);
    atomic_init(&lease->state, LEASE_HANDED);
    return lease->taken != NULL;
}

void lease_free(struct lease *lease)
{
    if (lease != NULL) {
        free(lease->taken);
        free(lease);
    }
}

bool leases_add(struct leases *leases, struct lease *lease)
{
    for (uint32_t at = 0; at < MOST_LEASES; at++) {
        if (atomic_load(&leases->list[at]) == NULL) {
            atomic_store(&leases->list[at], lease);
            if (at >= atomic_load(&leases->used)) {
                atomic_store(&leases->used, at + 1);
            }
            return true;
        }
    }
    return false;
}

void leases_remove(struct leases *leases, struct lease *lease)
{
    for (uint32_t at = 0; at < MOST_LEASES; at++) {
        if (atomic_load(&leases->list[at]) == lease) {
            atomic_store(&leases->list[at], NULL);
        }
    }
    lease_free(lease);
}

static enum lease_state state_of(const struct lease *lease)
{
    return (enum lease_state)atomic_load_explicit(&lease->state, memory_order_acquire);
}

/* A lender that failed once is not asked again: each of its pages would wait. */
void lease_lose(struct lease *lease)
{
    int active = LEASE_ACTIVE, handed = LEASE_HANDED;
    if (!atomic_compare_exchange_strong(&lease->state, &active, LEASE_LOST)) {
        atomic_compare_exchange_strong(&lease->state, &handed, LEASE_LOST);
    }
}

static struct lease *most_room(struct leases *leases, uint32_t *at)
{
    struct lease *best = NULL;
    uint32_t most = 0;
    uint32_t used = atomic_load_explicit(&leases->used, memory_order_acquire);
    for (uint32_t each = 0; each < used; each++) {
        struct lease *lease = atomic_load_explicit(&leases->list[each], memory_order_acquire);
        uint32_t free_count = lease == NULL || state_of(lease) != LEASE_ACTIVE ? 0 : lease->free_count;
        if (free_count > most) {
            best = lease;
            most = free_count;
            *at = each;
        }
    }
    return best;
}

/* The lease of a page; NULL when it has none that is used. */
static struct lease *lease_of(const struct leases *leases, uint64_t page)
{
    uint32_t where = leases->where[page];
    struct lease *lease = where == 0 ? NULL : atomic_load(&leases->list[(where >> SLOT_BITS) - 1]);
    return lease != NULL && state_of(lease) != LEASE_LEFT ? lease : NULL;
}

/* Returns whether another page can have it. */
static bool free_slot(struct leases *leases, uint64_t page)
{
    struct lease *lease = lease_of(leases, page);
    if (lease != NULL) {
        uint32_t slot = leases->where[page] & SLOT_MASK;
        if (state_of(lease) == LEASE_HANDED) {
            lease->taken[slot / 8] &= (uint8_t)~(1U << slot % 8); /* its list of free ones is made later */
        } else {
            lease->free[lease->free_count] = slot;
        }
        atomic_fetch_add(&lease->free_count, 1);
    }
    leases->where[page] = 0;
    return lease != NULL && state_of(lease) == LEASE_ACTIVE;
}

/* Returns how many leases may be written to, and sets how many slots are free there. */
static uint32_t count_active(struct leases *leases, uint64_t *free_slots)
{
    uint32_t used = atomic_load_explicit(&leases->used, memory_order_acquire), active = 0;
    *free_slots = 0;
    for (uint32_t each = 0; each < used; each++) {
        const struct lease *lease = atomic_load_explicit(&leases->list[each], memory_order_acquire);
        if (lease != NULL && state_of(lease) == LEASE_ACTIVE) {
            active++;
            *free_slots += atomic_load(&lease->free_count);
        }
    }
    return active;
}

/* Nobody sees an access to a page that is not local: it would come home. */
static bool never(void *context, uint32_t page)
{
    (void)context, (void)page;
    return false;
}

/* Have pages that are with lenders sink, until so many slots are free; fewer, where slots are lost lenders', and none
 * where nothing may be written: pages of HANDED leases would lose their places for nothing. */
static void make_room(struct leases *leases, uint32_t wanted)
{
    uint64_t room;
    uint32_t most = count_active(leases, &room) == 0 ? 0 : wanted;
    for (uint32_t tries = 0; room < wanted && tries < most; tries++) {
        uint32_t page = leases->policy->victim(leases->policy_memory, never, NULL);
        if (page == NO_PAGE) {
            return;
        }
        if (free_slot(leases, page)) {
            room++;
            atomic_fetch_add(&leases->sunk, 1);
        }
    }
}

/* Write as many pages to one lease as it has room for; 0: it failed. */
static uint32_t fill(struct leases *leases, uint32_t at, struct lease *lease, uint64_t first, uint32_t count,
                     const void *from)
{
    uint32_t slots[TIER_MOST_SLOTS] = {0}, room = lease->free_count;
    count = count < room ? count : room;
    count = count < TIER_MOST_SLOTS ? count : TIER_MOST_SLOTS;
    for (uint32_t each = 0; each < count; each++) {
        slots[each] = lease->free[room - 1 - each];
    }
    if (tier_scatter(lease->tier, slots, count, from) != 0) {
        lease_lose(lease);
        return 0;
    }
    atomic_fetch_sub(&lease->free_count, count);
    for (uint32_t each = 0; each < count; each++) {
        leases->where[first + each] = pack(at, slots[each]);
        leases->policy->admit(leases->policy_memory, (uint32_t)(first + each));
    }
    return count;
}

uint32_t leases_write(struct leases *leases, uint64_t first, uint32_t count, const void *from)
{
    uint32_t at, done = 0, more = 1;
    struct lease *lease;
    for (uint32_t each = 0; each < count; each++) {
        leases_drop(leases, first + each);
    }
    make_room(leases, count);
    while (done < count && more > 0 && (lease = most_room(leases, &at)) != NULL) {
        more = fill(leases, at, lease, first + done, count - done, (const char *)from + (size_t)done * PAGE_BYTES);
        done += more;
    }
    return done;
}

uint32_t leases_read(struct leases *leases, uint64_t first, uint32_t count, void *into)
{
    struct lease *lease = lease_of(leases, first);
    uint32_t slots[TIER_MOST_SLOTS] = {0}, same = 0, number = leases->where[first] >> SLOT_BITS;
    if (lease == NULL || state_of(lease) == LEASE_LOST) {
        return 0;
    }
    while (same < count && same < TIER_MOST_SLOTS && leases->where[first + same] >> SLOT_BITS == number) {
        slots[same] = leases->where[first + same] & SLOT_MASK;
        same++;
    }
    if (tier_gather(lease->tier, slots, same, into) != 0) {
        lease_lose(lease);
        return 0;
    }
    return same;
}

const struct lease *leases_where(const struct leases *leases, uint64_t page, uint32_t *slot)
{
    const struct lease *lease = lease_of(leases, page);
    *slot = leases->where[page] & SLOT_MASK;
    return lease != NULL && (state_of(lease) == LEASE_ACTIVE || state_of(lease) == LEASE_HANDED) ? lease : NULL;
}

static struct lease *handed(struct leases *leases, const uint8_t buffer[BUFFER_ID_BYTES], uint32_t *at)
{
    static const uint8_t unknown[BUFFER_ID_BYTES];
    uint32_t used = atomic_load_explicit(&leases->used, memory_order_acquire);
    bool known = memcmp(buffer, unknown, BUFFER_ID_BYTES) != 0;
    for (*at = 0; known && *at < used; ++*at) {
        struct lease *lease = atomic_load_explicit(&leases->list[*at], memory_order_acquire);
        if (lease != NULL && state_of(lease) == LEASE_HANDED && memcmp(lease->buffer, buffer, BUFFER_ID_BYTES) == 0) {
            return lease;
        }
    }
    return NULL;
}

bool leases_refer(struct leases *leases, uint64_t page, const uint8_t buffer[BUFFER_ID_BYTES], uint32_t slot)
{
    uint32_t at;
    struct lease *lease = handed(leases, buffer, &at);
    if (lease == NULL || slot >= lease->slots || (lease->taken[slot / 8] & 1U << slot % 8) != 0) {
        return false;
    }
    leases_drop(leases, page);
    lease->taken[slot / 8] |= (uint8_t)(1U << slot % 8);
    atomic_fetch_sub(&lease->free_count, 1);
    leases->where[page] = pack(at, slot);
    leases->policy->admit(leases->policy_memory, (uint32_t)page);
    return true;
}

void leases_take_over(struct leases *leases)
{
    uint32_t used = atomic_load_explicit(&leases->used, memory_order_acquire);
    for (uint32_t each = 0; each < used; each++) {
        struct lease *lease = atomic_load_explicit(&leases->list[each], memory_order_acquire);
        int expected = LEASE_HANDED;
        if (lease == NULL || state_of(lease) != LEASE_HANDED) {
            continue;
        }
        uint32_t count = 0;
        for (uint32_t slot = lease->slots; slot-- > 0;) {
            if ((lease->taken[slot / 8] & 1U << slot % 8) == 0) {
                lease->free[count++] = slot;
            }
        }
        atomic_store(&lease->free_count, count);
        atomic_compare_exchange_strong(&lease->state, &expected, LEASE_ACTIVE); /* else it is lost, or to be left */
    }
}

void leases_drop(struct leases *leases, uint64_t page)
{
    if (leases->where[page] != 0) {
        leases->policy->forget(leases->policy_memory, (uint32_t)page);
        free_slot(leases, page);
    }
}

void leases_sweep(struct leases *leases)
{
    for (uint32_t at = 0; at < MOST_LEASES; at++) {
        struct lease *lease = atomic_load(&leases->list[at]);
        enum lease_state state = lease == NULL ? LEASE_ACTIVE : state_of(lease);
        if (state != LEASE_LEAVING) {
            continue; /* pages of a lost one are found to be in the mirror one by one */
        }
        for (uint64_t page = 0; page < leases->pages; page++) {
            if (leases->where[page] >> SLOT_BITS == at + 1) {
                leases_drop(leases, page);
            }
        }
        atomic_store(&leases->list[at], NULL);
        atomic_store(&lease->state, LEASE_LEFT); /* last: the control thread may free it from now on */
    }
}
