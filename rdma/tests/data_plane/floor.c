/* The floor of paging by userfaultfd: pages move between a process's shared memory and another one's private memory.
 *
 * floor MIB LIMIT_MIB SECONDS SEED. A child touches random pages, as standin_guest's pattern `touch`; this process
 * serves its faults by a copy from memory, and evicts the oldest page by write-protecting it, a copy to memory, and a
 * hole: what no pager can do without. No map, no store, no seal, no policy, no limit that changes. Prints JSON.
 */
#define _GNU_SOURCE
#include "../../native/pager/latency.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, AHEAD = 64, INLINE = 4 }; /* as the pager has it: pages evicted ahead, or with a fault */

/* What both processes write to. */
static struct shared {
    struct latencies touches;
    uint64_t accesses;
    _Atomic bool stop;
} *shared;

static char *memory, *store; /* at the same address in both, as the child is a fork; only the child touches `memory` */
static uint32_t pages, limit, resident, hand, *queue;
static int file, userfault;
static uint64_t seed;
static struct latencies service, eviction;

static void *map(size_t bytes, int flags, int fd)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static bool begin(void)
{
    size_t bytes = (size_t)pages * PAGE;
    file = memfd_create("floor", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
        return false;
    }
    memory = map(bytes, MAP_SHARED, file);
    shared = map(sizeof *shared, MAP_SHARED | MAP_ANONYMOUS, -1);
    queue = calloc(pages, sizeof *queue);
    return memory != MAP_FAILED && shared != MAP_FAILED && queue != NULL;
}

/* In the child: register its memory, and send the userfaultfd. */
static bool offer(int link)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_MISSING_SHMEM |
                                         UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
    struct uffdio_register range = {.range = {(uint64_t)(uintptr_t)memory, (uint64_t)pages * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
    char byte = 0, beside[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = beside, .msg_controllen = sizeof beside};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    *control = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(control), &fd, sizeof fd);
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0 &&
           sendmsg(link, &message, 0) == 1;
}

static bool take(int link)
{
    char byte, beside[CMSG_SPACE(sizeof userfault)];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = beside, .msg_controllen = sizeof beside};
    if (recvmsg(link, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL) {
        return false;
    }
    memcpy(&userfault, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof userfault);
    store = map((size_t)pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1);
    return store != MAP_FAILED;
}

static void evict(void)
{
    uint64_t begun = clock_ns();
    uint32_t page = queue[hand];
    off_t at = (off_t)page * PAGE;
    struct uffdio_writeprotect protect = {.range = {(uint64_t)(uintptr_t)memory + (uint64_t)at, PAGE},
                                          .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    ioctl(userfault, UFFDIO_WRITEPROTECT, &protect);
    if (pread(file, store + at, PAGE, at) != PAGE) {
        abort();
    }
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, PAGE);
    hand = (hand + 1) % pages;
    resident--;
    latency_record(&eviction, clock_ns() - begun);
}

static void fill(uint64_t at)
{
    struct uffdio_copy copy = {
        .dst = (uint64_t)(uintptr_t)memory + at, .src = (uint64_t)(uintptr_t)store + at, .len = PAGE};
    if (resident >= limit) {
        for (int at_once = 0; at_once < INLINE; at_once++) {
            evict();
        }
    }
    if (ioctl(userfault, UFFDIO_COPY, &copy) == 0) {
        queue[(hand + resident++) % pages] = (uint32_t)(at / PAGE);
    } else { /* a write to a page on its way out */
        struct uffdio_range range = {copy.dst, PAGE};
        ioctl(userfault, UFFDIO_WAKE, &range);
    }
}

static void serve(void)
{
    struct uffd_msg event;
    while (!shared->stop) {
        ssize_t got = read(userfault, &event, sizeof event);
        if (got == sizeof event && event.event == UFFD_EVENT_PAGEFAULT) {
            uint64_t begun = clock_ns();
            fill((event.arg.pagefault.address - (uint64_t)(uintptr_t)memory) & ~(uint64_t)(PAGE - 1));
            latency_record(&service, clock_ns() - begun);
        } else if (resident + AHEAD > limit) {
            evict();
        } else {
            struct pollfd fd = {.fd = userfault, .events = POLLIN};
            poll(&fd, 1, 100);
        }
    }
}

/* splitmix64, as in standin_guest.c */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

static void touch(double seconds)
{
    uint64_t dice = mix(seed), ends = clock_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t begun = clock_ns(); begun < ends; begun = clock_ns()) {
        dice = mix(dice);
        volatile uint64_t *word = (uint64_t *)(memory + (dice >> 16) % pages * PAGE);
        unsigned char there = 0;
        mincore((void *)(uintptr_t)word, PAGE, &there);
        begun = clock_ns();
        if (dice & 1) {
            *word = *word + 1;
        } else {
            (void)*word;
        }
        shared->accesses++;
        if ((there & 1) == 0) {
            latency_record(&shared->touches, clock_ns() - begun);
        }
    }
}

int main(int count, char **arguments)
{
    int link[2];
    if (count != 5) {
        return 2;
    }
    pages = (uint32_t)atoi(arguments[1]) * 256;
    limit = (uint32_t)atoi(arguments[2]) * 256;
    seed = strtoull(arguments[4], NULL, 10);
    pid_t child = begin() && socketpair(AF_UNIX, SOCK_STREAM, 0, link) == 0 ? fork() : -1;
    if (child == 0) {
        if (offer(link[1])) {
            touch(atof(arguments[3]));
        }
        shared->stop = true;
        return 0;
    }
    if (child < 0 || close(link[1]) != 0 || !take(link[0])) {
        perror("floor");
        return 1;
    }
    serve();
    waitpid(child, NULL, 0);
    printf("{\"accesses\": %lu, \"missing\": %lu, \"p50_ns\": %lu, \"p99_ns\": %lu, \"service_p50_ns\": %lu, "
           "\"service_p99_ns\": %lu, \"eviction_p50_ns\": %lu}\n",
           shared->accesses, latency_count(&shared->touches), latency_percentile(&shared->touches, 50),
           latency_percentile(&shared->touches, 99), latency_percentile(&service, 50), latency_percentile(&service, 99),
           latency_percentile(&eviction, 50));
    return 0;
}
