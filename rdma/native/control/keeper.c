#define _GNU_SOURCE
#include "keeper.h"

#include "../pager/target.h"
#include "../store/sealer.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONFIRMATION = 0, MEMFD = 3, OTHER_FILE = 4, ABOVE = 16 };

/* In the child of a process with threads: calls that are safe there only. */
static void become(int confirmation, int memfd, int file, const char *record)
{
    /* Out of the way of the numbers that they get. */
    confirmation = fcntl(confirmation, F_DUPFD, ABOVE);
    memfd = fcntl(memfd, F_DUPFD, ABOVE);
    file = file < 0 ? -1 : fcntl(file, F_DUPFD, ABOVE);
    int nothing = open("/dev/null", O_RDWR);
    bool good = setsid() >= 0 && dup2(confirmation, CONFIRMATION) >= 0 && dup2(nothing, 1) >= 0 &&
                dup2(nothing, 2) >= 0 && dup2(memfd, MEMFD) >= 0 && (file < 0 || dup2(file, OTHER_FILE) >= 0) &&
                close_range(file < 0 ? MEMFD + 1 : OTHER_FILE + 1, ~0U, 0) == 0;
    if (good) {
        execl("/proc/self/exe", "pondstack-data-plane", "keep", record, (char *)NULL);
    }
    _exit(1);
}

/* Fork one; returns when it has its own descriptors only, or has ended: it closes its end of a pipe with all others. */
static pid_t start(int confirmation, int memfd, int file, const char *record)
{
    int begun[2];
    char nothing;
    if (pipe2(begun, O_CLOEXEC) != 0) {
        return -1;
    }
    sigset_t all, before; /* the child's mask from its first instruction on, also when it becomes the keeper */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        become(confirmation, memfd, file, record);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(begun[1]);
    while (pid > 0 && read(begun[0], &nothing, 1) < 0 && errno == EINTR) {
    }
    close(begun[0]);
    errno = error;
    return pid;
}

int keeper_start(struct keeper *keeper, int memfd, int file, const char *record, struct problem *problem)
{
    int ends[2];
    struct target target;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return problem_set(problem, "no pipe to a keeper: %s", strerror(errno));
    }
    pid_t pid = start(ends[0], memfd, file, record);
    int error = errno;
    close(ends[0]);
    if (pid < 0 || target_open(&target, pid, 0, problem) != 0) {
        close(ends[1]);
        return pid < 0 ? problem_set(problem, "no keeper: %s", strerror(error)) : -1;
    }
    *keeper = (struct keeper){.pid = pid, .started = target.started};
    target_close(&target);
    return ends[1];
}

void keeper_confirm(int confirmation)
{
    (void)!write(confirmation, "k", 1);
    close(confirmation);
}

bool keeper_lives(const struct keeper *keeper)
{
    struct target target;
    struct problem problem;
    if (keeper->pid <= 1 || target_open(&target, keeper->pid, keeper->started, &problem) != 0) {
        return false;
    }
    struct pollfd ended = {.fd = target.pidfd, .events = POLLIN}; /* also that of a zombie */
    bool lives = poll(&ended, 1, 0) == 0;
    target_close(&target);
    if (!lives) {
        (void)waitpid(keeper->pid, NULL, WNOHANG); /* where it was a child */
    }
    return lives;
}

int keeper_open(const struct keeper *keeper, const char *name, struct problem *problem)
{
    struct target target;
    char link[256], path[64];
    snprintf(link, sizeof link, "/memfd:%s (", name);
    if (!keeper_lives(keeper) || target_open(&target, keeper->pid, keeper->started, problem) != 0) {
        return problem_set(problem, "its keeper, process %d, has ended, and its pages with it", keeper->pid);
    }
    int number = target_descriptor(&target, link);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", keeper->pid, number);
    int fd = number < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        problem_set(problem, "its keeper, process %d, does not give what it holds: %s", keeper->pid, strerror(errno));
    }
    target_close(&target);
    return fd;
}

int keeper_open_file(const struct keeper *keeper, struct problem *problem)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", keeper->pid, OTHER_FILE);
    int fd = keeper_lives(keeper) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return fd >= 0 ? fd
                   : problem_set(problem, "its keeper, process %d, does not give the memory: %s", keeper->pid,
                                 strerror(errno));
}

void keeper_end(const struct keeper *keeper)
{
    struct target target;
    struct problem problem;
    if (keeper->pid > 1 && target_open(&target, keeper->pid, keeper->started, &problem) == 0) {
        (void)syscall(SYS_pidfd_send_signal, target.pidfd, SIGKILL, NULL, 0);
        (void)waitpid(keeper->pid, NULL, 0); /* where it is a child */
        target_close(&target);
    }
}

/* Nobody is to choose it when memory is short: it has none to give back. Best effort. */
static void ask_to_stay(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "-1000", 5);
        close(fd);
    }
}

/* Whether a record names this process as its keeper. */
static bool is_named(const char *record)
{
    json_int_t pid = 0;
    json_t *object = json_load_file(record, 0, NULL);
    (void)json_unpack(object, "{s:I}", "keeper", &pid);
    json_decref(object);
    return pid == getpid();
}

int keeper_run(const char *record)
{
    char confirmed;
    prctl(PR_SET_NAME, "pondstack-keep");
    ask_to_stay();
    void *key = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, MEMFD, 0);
    if (key == MAP_FAILED) {
        return 1;
    }
    (void)mlock(key, PAGE_BYTES);
    (void)madvise(key, PAGE_BYTES, MADV_DONTDUMP);
    if (read(CONFIRMATION, &confirmed, 1) != 1 && !is_named(record)) {
        return 1;
    }
    close(CONFIRMATION);
    for (;;) {
        pause();
    }
}
