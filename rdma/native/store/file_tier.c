#define _GNU_SOURCE
#include "file_tier.h"

#include "sealer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int fd_of(const struct tier *tier)
{
    return ((const struct file_tier *)tier)->fd;
}

static int file_read(struct tier *tier, uint64_t slot, uint32_t count, void *into)
{
    size_t done = 0, bytes = (size_t)count * PAGE_BYTES;
    while (done < bytes) {
        ssize_t got = pread(fd_of(tier), (char *)into + done, bytes - done, (off_t)(slot * PAGE_BYTES + done));
        if (got == 0) {
            return EIO; /* the file was made shorter */
        }
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int file_write(struct tier *tier, uint64_t slot, uint32_t count, const void *from)
{
    size_t done = 0, bytes = (size_t)count * PAGE_BYTES;
    while (done < bytes) {
        ssize_t put = pwrite(fd_of(tier), (const char *)from + done, bytes - done, (off_t)(slot * PAGE_BYTES + done));
        if (put < 0 && errno != EINTR) {
            return errno;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int file_discard(struct tier *tier, uint64_t slot, uint32_t count)
{
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(fd_of(tier), mode, (off_t)(slot * PAGE_BYTES), (off_t)count * PAGE_BYTES) == 0 ? 0 : errno;
}

/* In a network file system they are the server's then, for all of its clients; on disk they need not be. */
static int file_publish(struct tier *tier, uint64_t slot, uint32_t count)
{
    unsigned int flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    return sync_file_range(fd_of(tier), (off_t)(slot * PAGE_BYTES), (off_t)count * PAGE_BYTES, flags) == 0 ? 0 : errno;
}

static int file_copy(struct tier *tier, struct tier *from, uint64_t slot, uint32_t count)
{
    off_t read_at = (off_t)(slot * PAGE_BYTES), write_at = read_at, ends = read_at + (off_t)count * PAGE_BYTES;
    while (write_at < ends) {
        ssize_t put = copy_file_range(fd_of(from), &read_at, fd_of(tier), &write_at, (size_t)(ends - write_at), 0);
        if (put == 0) {
            return EIO; /* the file was made shorter */
        }
        if (put < 0 && errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

static void file_close(struct tier *tier)
{
    struct file_tier *file = (struct file_tier *)tier;
    if (file->fd >= 0) {
        close(file->fd);
        file->fd = -1;
    }
}

static const struct tier_type file_type = {
    .name = "file", .read = file_read, .write = file_write, .discard = file_discard,
    .publish = file_publish, .copy = file_copy, .close = file_close};

/* Open the file of a fresh mirror. One that is there already is taken only if a killed process can have left it: else
 * it is somebody's. */
static int open_fresh(const char *path, uint64_t slots)
{
    struct stat found;
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) {
        return fd;
    }
    fd = open(path, flags);
    if (fd >= 0 &&
        (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || (found.st_mode & 0777) != 0600 ||
         found.st_uid != geteuid() || (found.st_size != 0 && (uint64_t)found.st_size != slots * PAGE_BYTES))) {
        close(fd);
        fd = -1;
        errno = EEXIST;
    }
    return fd;
}

/* Have an open file be this process's alone. */
static int own(struct file_tier *made, int fd, const char *path, struct problem *problem)
{
    *made = (struct file_tier){.tier = {&file_type}, .fd = fd};
    if (made->fd < 0) {
        return problem_set(problem, "the mirror %s cannot be opened: %s", path, strerror(errno));
    }
    if (flock(made->fd, LOCK_EX | LOCK_NB) != 0) {
        file_close(&made->tier);
        return problem_set(problem, "another process uses the mirror %s", path);
    }
    return 0;
}

int file_tier_open(struct file_tier *made, const char *path, uint64_t slots, bool fresh, struct problem *problem)
{
    int fd = fresh ? open_fresh(path, slots) : open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (own(made, fd, path, problem) != 0) {
        return -1;
    }
    int error = posix_fallocate(made->fd, 0, (off_t)(slots * PAGE_BYTES));
    if (error != 0) {
        file_close(&made->tier);
        return problem_set(problem, "no mirror of %" PRIu64 " bytes in %s: %s; make room there, or put it elsewhere",
                           slots * PAGE_BYTES, path, strerror(error));
    }
    return 0;
}

int file_tier_reopen(struct file_tier *made, const char *path, uint64_t slots, struct problem *problem)
{
    struct stat found;
    if (own(made, open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), path, problem) != 0) {
        return -1;
    }
    if (fstat(made->fd, &found) != 0 || (uint64_t)found.st_size < slots * PAGE_BYTES) {
        file_close(&made->tier);
        return problem_set(problem, "the mirror %s was made shorter: its pages are gone", path);
    }
    return 0;
}

int file_tier_open_former(struct file_tier *made, const char *path, uint64_t slots, struct problem *problem)
{
    struct stat found;
    *made = (struct file_tier){.tier = {&file_type}, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (made->fd < 0) {
        made->tier.type = NULL;
        return problem_set(problem, "the source's mirror %s cannot be opened here: %s", path, strerror(errno));
    }
    if (fstat(made->fd, &found) != 0 || !S_ISREG(found.st_mode) || (uint64_t)found.st_size < slots * PAGE_BYTES) {
        file_close(&made->tier);
        made->tier.type = NULL;
        return problem_set(problem, "%s is no mirror of %" PRIu64 " bytes", path, slots * PAGE_BYTES);
    }
    return 0;
}

int file_tier_resize(struct file_tier *file, uint64_t slots, struct problem *problem)
{
    struct stat found;
    uint64_t bytes = slots * PAGE_BYTES, now;
    if (fstat(file->fd, &found) != 0) {
        return problem_set(problem, "the mirror cannot be seen: %s", strerror(errno));
    }
    now = (uint64_t)found.st_size;
    int error = bytes > now ? posix_fallocate(file->fd, (off_t)now, (off_t)(bytes - now)) : 0;
    if (bytes < now && ftruncate(file->fd, (off_t)bytes) != 0) {
        error = errno;
    }
    return error == 0 ? 0 : problem_set(problem, "no mirror of %" PRIu64 " bytes: %s", bytes, strerror(error));
}
