/* Checks of rdma/native/store: shared state, leases, the tier in a file, the store over them. store_checks FOLDER */
#define _GNU_SOURCE
#include "../../native/store/file_tier.h"
#include "../../native/store/page_store.h"
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGES = 100 };
static const char GUEST[] = "6f1c2d1e-0000-4000-8000-000000000001";
static struct problem problem;
static uint8_t pages[STORE_MOST_PAGES * PAGE_BYTES], found[STORE_MOST_PAGES * PAGE_BYTES];

static void check_state(int fd, struct shared_state *state)
{
    CHECK(state_open(state, fd, PAGES, 0, GUEST, &problem) != 0); /* an empty memfd */
    CHECK(state_create(state, fd, PAGES, 0, GUEST, true, &problem) == 0);
    uint8_t key[KEY_BYTES], zeros[KEY_BYTES] = {0};
    memcpy(key, state->header->key, KEY_BYTES);
    CHECK(memcmp(key, zeros, KEY_BYTES) != 0);
    state->rows[7].version = 42;
    state_close(state);
    state_close(state);
    CHECK(state_open(state, fd, PAGES + 1, 0, GUEST, &problem) != 0);
    CHECK(state_open(state, fd, PAGES, 0, "another", &problem) != 0);
    CHECK(state_open(state, fd, PAGES, 0, GUEST, &problem) == 0);
    CHECK(memcmp(key, state->header->key, KEY_BYTES) == 0 && state->rows[7].version == 42);
    CHECK(atomic_load(&state->header->userfault_fd) == -1);
    CHECK(ftruncate(fd, 4096) != 0 && errno == EPERM); /* whoever else has it */
    state_close(state);
    CHECK(state_create(state, fd, PAGES, 0, GUEST, true, &problem) == 0); /* once more: as if it were new */
    CHECK(memcmp(key, state->header->key, KEY_BYTES) != 0 && state->rows[7].version == 0);
    state_close(state);
    int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(state_create(state, other, PAGES, 0, GUEST, true, &problem) == 0);
    state_close(state);
    CHECK(state_open(state, other, PAGES, 0, GUEST, &problem) == 0);
    state_close(state);
    close(other);
    int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
    CHECK(state_create(state, unsealed, PAGES, 0, GUEST, true, &problem) != 0);
    close(unsealed);
    CHECK(state_open(state, fd, PAGES, 0, GUEST, &problem) == 0);
}

static void check_tier(const char *path, struct file_tier *file)
{
    struct file_tier second;
    struct stat stat_found;
    CHECK(file_tier_open(file, path, PAGES, false, &problem) != 0); /* only a fresh one is made */
    CHECK(file_tier_open(file, path, PAGES, true, &problem) == 0);
    CHECK(file_tier_open(&second, path, PAGES, false, &problem) != 0); /* it has one owner */
    CHECK(stat(path, &stat_found) == 0 && (stat_found.st_mode & 0777) == 0600);
    CHECK(stat_found.st_blocks * 512 >= PAGES * PAGE_BYTES); /* its room is taken */
    CHECK(file->tier.type->write(&file->tier, 3, 2, pages) == 0);
    CHECK(file->tier.type->read(&file->tier, 3, 2, found) == 0 && memcmp(pages, found, 2 * PAGE_BYTES) == 0);
    CHECK(file->tier.type->discard(&file->tier, 3, 1) == 0);
    CHECK(file->tier.type->read(&file->tier, 3, 2, found) == 0 && found[0] == 0);
    CHECK(memcmp(pages + PAGE_BYTES, found + PAGE_BYTES, PAGE_BYTES) == 0);
    CHECK(file->tier.type->read(&file->tier, PAGES, 1, found) == EIO);
    file->tier.type->close(&file->tier);
    file->tier.type->close(&file->tier);
    CHECK(file_tier_open(file, path, PAGES, false, &problem) == 0);
}

static void check_round_trip(struct page_store *store)
{
    for (uint32_t first = 0; first + STORE_MOST_PAGES <= PAGES; first += 9) {
        uint64_t version = store->state->rows[first].version;
        CHECK(store_write(store, first, STORE_MOST_PAGES, pages) == 0);
        CHECK(!store->sealed || store->state->rows[first].version > version);
        CHECK(store_has(store, first) && store_has(store, first + STORE_MOST_PAGES - 1));
        CHECK(store_read(store, first, STORE_MOST_PAGES, found) == 0);
        CHECK(memcmp(pages, found, sizeof pages) == 0);
        CHECK(store_read(store, first + 5, 1, found) == 0);
        CHECK(memcmp(pages + 5 * PAGE_BYTES, found, PAGE_BYTES) == 0);
    }
    CHECK(store_write(store, 0, STORE_MOST_PAGES + 1, pages) == EINVAL);
    CHECK(store_has(store, 0));
    store_drop(store, 0);
    CHECK(!store_has(store, 0) && store_has(store, 1));
}

/* What lies in the tier is not what was written, and a change of it is noticed. */
static void check_seal(struct page_store *store, struct file_tier *file)
{
    CHECK(file->tier.type->read(&file->tier, 1, 1, found) == 0);
    CHECK(memcmp(pages + PAGE_BYTES, found, PAGE_BYTES) != 0);
    CHECK(store_read(store, 1, 1, found) == 0);
    uint8_t byte;
    CHECK(pread(file->fd, &byte, 1, PAGE_BYTES + 100) == 1);
    byte ^= 4;
    CHECK(pwrite(file->fd, &byte, 1, PAGE_BYTES + 100) == 1);
    CHECK(store_read(store, 1, 1, found) == EBADMSG);
    CHECK(store_read(store, 2, 1, found) == 0);
}

/* A page whose write failed is not found: neither what it was nor a half of what it is to be. */
static void check_failed_write(struct page_store *store, struct file_tier *file)
{
    int fd = file->fd;
    CHECK(store_write(store, 2, 1, pages) == 0);
    file->fd = -1;
    CHECK(store_write(store, 2, 1, pages) == EBADF);
    CHECK(store_read(store, 3, 1, found) == EBADF);
    file->fd = fd;
    CHECK(!store_has(store, 2) && store_has(store, 3));
}

/* Pages lie in the lease with most room, and are found there as long as it is used. */
static void check_leases(struct file_tier *file)
{
    static struct leases leases;
    struct tier *tiers[] = {&file->tier, &file->tier};
    struct lease *made[2];
    CHECK(leases_begin(&leases, PAGES, &fifo_policy));
    CHECK(leases_write(&leases, 1, 1, pages) == 0 && leases_read(&leases, 1, 1, found) == 0);
    for (int at = 0; at < 2; at++) {
        made[at] = lease_make(tiers[at], at == 0 ? 10 : 20);
        CHECK(made[at] != NULL && leases_add(&leases, made[at]));
    }
    for (uint64_t page = 0; page < 16; page++) {
        CHECK(leases_write(&leases, page, 1, pages + page * PAGE_BYTES) == 1);
    }
    CHECK(made[0]->free_count == 7 && made[1]->free_count == 7);
    leases_drop(&leases, 15);
    leases_drop(&leases, 15);
    CHECK(made[0]->free_count + made[1]->free_count == 15 && leases_read(&leases, 15, 1, found) == 0);
    CHECK(leases_write(&leases, 15, 15, pages) == 15 && leases.sunk == 0); /* then they are full */
    CHECK(leases_write(&leases, 29, 1, pages) == 1 && leases.sunk == 0);   /* its own slot is free for it */
    atomic_store(&made[1]->state, LEASE_LEAVING);
    leases_sweep(&leases);
    CHECK(made[1]->state == LEASE_LEFT && made[1]->free_count == 20);
    leases_remove(&leases, made[1]);
    uint32_t there = 0;
    for (uint64_t page = 0; page < 31; page++) {
        there += leases_read(&leases, page, 1, found);
    }
    CHECK(there == 10);
    int fd = file->fd;
    file->fd = -1;
    for (uint64_t page = 0; page < 31; page++) {
        CHECK(leases_read(&leases, page, 1, found) == 0);
    }
    file->fd = fd;
    CHECK(made[0]->state == LEASE_LOST && leases_write(&leases, 0, 1, pages) == 0); /* never asked again */
    leases_remove(&leases, made[0]);
    leases_end(&leases);
    leases_end(&leases);
}

/* A run goes to as few lenders as have room for it, and comes back in as few accesses, page by page the right one. */
static void check_runs(struct file_tier *file)
{
    static struct leases leases;
    struct file_tier other = {.tier = file->tier, .fd = memfd_create("other", MFD_CLOEXEC)};
    CHECK(leases_begin(&leases, PAGES, &fifo_policy));
    struct lease *small = lease_make(&other.tier, 12), *large = lease_make(&file->tier, 30);
    CHECK(leases_add(&leases, small) && leases_add(&leases, large));
    CHECK(leases_write(&leases, 3, 5, pages) == 5); /* so that free slots are not in order */
    leases_drop(&leases, 4);
    leases_drop(&leases, 6);
    leases_drop(&leases, 3);
    CHECK(large->free_count == 28);
    CHECK(leases_write(&leases, 10, 45, pages) == 42 && leases.sunk == 2); /* all slots */
    CHECK(small->free_count == 0 && large->free_count == 0);
    CHECK(leases_read(&leases, 10, 45, found) == 30 && memcmp(pages, found, 30 * PAGE_BYTES) == 0);
    CHECK(leases_read(&leases, 40, 45, found) == 12);
    CHECK(memcmp(pages + 30 * PAGE_BYTES, found, 12 * PAGE_BYTES) == 0);
    CHECK(leases_read(&leases, 52, 1, found) == 0);
    /* One lender fails: nobody waits for the next one in the same call. */
    for (uint64_t page = 10; page < 52; page++) {
        leases_drop(&leases, page);
    }
    int fd = file->fd;
    file->fd = -1;
    CHECK(leases_write(&leases, 10, 45, pages) == 0 && large->state == LEASE_LOST && small->state == LEASE_ACTIVE);
    CHECK(leases_write(&leases, 10, 45, pages) == 12);
    file->fd = fd;
    leases_remove(&leases, small);
    leases_remove(&leases, large);
    leases_end(&leases);
    close(other.fd);
}

static bool is_lent(struct leases *leases, uint64_t page)
{
    return leases_read(leases, page, 1, found) == 1;
}

/* The page that was evicted the longest ago gives its slot to the next one, and has one again after its next eviction. */
static void check_sinking(struct file_tier *file)
{
    static struct leases leases;
    struct file_tier other = {.tier = file->tier, .fd = memfd_create("other", MFD_CLOEXEC)};
    CHECK(leases_begin(&leases, PAGES, &fifo_policy));
    struct lease *first = lease_make(&file->tier, 4), *second = lease_make(&other.tier, 2);
    CHECK(leases_add(&leases, first) && leases_add(&leases, second));
    CHECK(leases_write(&leases, 0, 6, pages) == 6);
    leases_drop(&leases, 1); /* comes home, is evicted again: the newest one */
    CHECK(leases_write(&leases, 1, 1, pages + PAGE_BYTES) == 1 && leases.sunk == 0);
    CHECK(leases_write(&leases, 50, 2, pages) == 2 && leases.sunk == 2);
    CHECK(!is_lent(&leases, 0) && !is_lent(&leases, 2) && is_lent(&leases, 1) && is_lent(&leases, 3));
    CHECK(leases_write(&leases, 0, 1, pages) == 1 && is_lent(&leases, 0) && !is_lent(&leases, 3));
    /* More than fits: as many as fit, and all others sink. */
    CHECK(leases_write(&leases, 70, 9, pages) == 6 && leases.sunk == 9 && !is_lent(&leases, 50));
    CHECK(leases_read(&leases, 70, 4, found) == 4 && memcmp(found, pages, 4 * PAGE_BYTES) == 0);
    /* Slots of a lender that is lost help nobody, and are not counted: its four pages go first. */
    lease_lose(first);
    CHECK(leases_write(&leases, 80, 2, pages) == 0 && leases_write(&leases, 82, 2, pages) == 0 && leases.sunk == 9);
    CHECK(leases_write(&leases, 84, 2, pages) == 2 && leases.sunk == 11 && is_lent(&leases, 84));
    lease_lose(second);
    CHECK(leases_write(&leases, 90, 4, pages) == 0 && leases.sunk == 11);
    leases_remove(&leases, first);
    leases_remove(&leases, second);
    leases_end(&leases);
    close(other.fd);
}

/* Pages that another host has left with a lender stay where they are when the guest is this host's, which writes. */
static void check_taking_over(struct file_tier *file)
{
    static struct leases source, leases;
    static const uint8_t buffer[BUFFER_ID_BYTES] = {1};
    uint32_t slot = 0;
    CHECK(leases_begin(&source, PAGES, &fifo_policy) && leases_begin(&leases, PAGES, &fifo_policy));
    struct lease *left = lease_make(&file->tier, 4), *handed = lease_make(&file->tier, 4);
    CHECK(lease_hand(handed) && leases_add(&source, left) && leases_add(&leases, handed));
    memcpy(handed->buffer, buffer, sizeof buffer);
    CHECK(leases_write(&source, 0, 3, pages) == 3);
    for (uint64_t page = 0; page < 3; page++) {
        CHECK(leases_where(&source, page, &slot) == left && leases_refer(&leases, page, buffer, slot));
        CHECK(!leases_refer(&leases, 20, buffer, slot)); /* another page has it */
    }
    CHECK(leases_write(&leases, 20, 2, pages) == 0); /* not before the guest is this host's, nor does a page sink for it */
    for (uint64_t page = 0; page < 3; page++) {
        CHECK(leases_where(&leases, page, &slot) == handed);
    }
    leases_take_over(&leases);
    CHECK(handed->free_count == 1 && leases_write(&leases, 10, 1, pages + 10 * PAGE_BYTES) == 1);
    for (uint64_t page = 0; page < 3; page++) {
        CHECK(is_lent(&leases, page) && memcmp(found, pages + page * PAGE_BYTES, PAGE_BYTES) == 0);
    }
    CHECK(is_lent(&leases, 10) && memcmp(found, pages + 10 * PAGE_BYTES, PAGE_BYTES) == 0);
    leases_remove(&leases, handed);
    leases_remove(&source, left);
    leases_end(&leases);
    leases_end(&source);
}

int main(int count, char **arguments)
{
    struct shared_state state;
    struct file_tier file;
    struct page_store store;
    char path[4096];
    CHECK(count == 2);
    snprintf(path, sizeof path, "%s/mirror", arguments[1]);
    for (size_t at = 0; at < sizeof pages; at++) {
        pages[at] = (uint8_t)(at * 7 + at / PAGE_BYTES + 1);
    }
    check_tier(path, &file);
    for (int sealed = 1; sealed >= 0; sealed--) {
        int fd = memfd_create("state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        check_state(fd, &state);
        state.header->sealed = (uint64_t)sealed;
        CHECK(store_begin(&store, &state, &file.tier, &problem) == 0);
        check_round_trip(&store);
        if (sealed) {
            check_seal(&store, &file);
        }
        check_failed_write(&store, &file);
        store_end(&store);
        store_end(&store);
        state_forget_key(&state);
        CHECK(state.header->key[0] == 0 && state.header->key[KEY_BYTES - 1] == 0);
        state_close(&state);
        close(fd);
    }
    check_leases(&file);
    check_runs(&file);
    check_sinking(&file);
    check_taking_over(&file);
    file.tier.type->close(&file.tier);
    puts("the store holds");
    return 0;
}
