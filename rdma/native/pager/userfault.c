#include "userfault.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Removal, so that what the guest discards (a balloon) is forgotten. */
static const uint64_t FEATURES = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_MISSING_SHMEM |
                                 UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;

static int call(int fd, unsigned long request, void *argument)
{
    return ioctl(fd, request, argument) == 0 ? 0 : errno;
}

int userfault_register(int fd, uint64_t address, uint64_t bytes)
{
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
    int error = call(fd, UFFDIO_API, &api);
    if (error != 0 && error != EINVAL) { /* EINVAL: agreed before; where features are missing, the next call fails */
        return error;
    }
    struct uffdio_register range = {
        .range = {.start = address, .len = bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
    };
    return call(fd, UFFDIO_REGISTER, &range);
}

/* Let those go on that give pages up: each waits until its event is read, also after the memory is no longer watched.
 * While one does, other calls are answered with EAGAIN, this one too, which has nothing to fill any more. */
static void release_discards(int fd, uint64_t address)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    struct uffd_msg told;
    do {
        while (read(fd, &told, sizeof told) == (ssize_t)sizeof told) {
        }
    } while (userfault_zero(fd, address, (uint64_t)sysconf(_SC_PAGESIZE)) == EAGAIN && poll(&event, 1, 1) >= 0);
}

int userfault_unregister(int fd, uint64_t address, uint64_t bytes)
{
    struct uffdio_range range = {.start = address, .len = bytes};
    int error = call(fd, UFFDIO_UNREGISTER, &range);
    if (error == 0) {
        release_discards(fd, address);
        /* The kernel wakes who waits for a page before it shuts out faults that are under way (those that hold a VMA's
         * own lock, Linux 6.4): one that begins to wait in between would do so for ever. Its fault is repeated. */
        userfault_wake(fd, address, bytes);
    }
    return error;
}

int userfault_copy(int fd, uint64_t address, const void *from, uint64_t bytes, bool forbid, uint64_t *done)
{
    struct uffdio_copy copy = {
        .dst = address,
        .src = (uint64_t)(uintptr_t)from,
        .len = bytes,
        .mode = forbid ? UFFDIO_COPY_MODE_WP : 0,
    };
    int error = call(fd, UFFDIO_COPY, &copy);
    *done = error == 0 ? bytes : copy.copy > 0 ? (uint64_t)copy.copy : 0;
    return error;
}

int userfault_zero(int fd, uint64_t address, uint64_t bytes)
{
    struct uffdio_zeropage zero = {.range = {.start = address, .len = bytes}};
    return call(fd, UFFDIO_ZEROPAGE, &zero);
}

int userfault_protect(int fd, uint64_t address, uint64_t bytes, bool forbid)
{
    struct uffdio_writeprotect protect = {
        .range = {.start = address, .len = bytes},
        .mode = forbid ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
    };
    return call(fd, UFFDIO_WRITEPROTECT, &protect);
}

int userfault_wake(int fd, uint64_t address, uint64_t bytes)
{
    struct uffdio_range range = {.start = address, .len = bytes};
    return call(fd, UFFDIO_WAKE, &range);
}
