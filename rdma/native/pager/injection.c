#define _GNU_SOURCE
#include "injection.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* A thread uses up to 128 bytes below its stack pointer without moving it (System V ABI): stay well away from them. */
enum { BELOW_STACK_BYTES = 1024, NAME_BYTES = 64, SIGNAL_SET_BYTES = 8, ANSWER_MS = 5000 };

struct call {
    pid_t pid;
    uint64_t instruction;
    long number;
    unsigned long first, second, third;
    const char *name; /* copied below the target's stack, its address is the first argument; or NULL */
};

/* Ends of the child: 0, and errors of the steps. */
enum { DONE, NO_SEIZE, NO_STOP, NO_REGISTERS, NO_NAME, NO_STEP };
static const char *const steps[] = {"done", "ptrace", "stopping it", "its registers", "its memory", "stepping it"};

static bool stopped(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, __WALL) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return WIFSTOPPED(status);
}

static bool write_name(const struct call *call, unsigned long at)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof path, "/proc/%d/mem", call->pid);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    size_t size = strlen(call->name) + 1;
    bool good = memory >= 0 && pwrite(memory, call->name, size, (off_t)at) == (ssize_t)size;
    if (memory >= 0) {
        close(memory);
    }
    return good;
}

/* The thread is stopped: have it carry out the call, and put its registers back. */
static int carry_out(const struct call *call, long *result)
{
    struct user_regs_struct saved, used;
    if (ptrace(PTRACE_GETREGS, call->pid, 0, &saved) != 0) {
        return NO_REGISTERS;
    }
    used = saved;
    used.rip = call->instruction;
    used.rax = (unsigned long)call->number;
    used.orig_rax = (unsigned long)-1; /* so that the kernel repeats no interrupted call of the thread's own now */
    used.rdi = call->first;
    used.rsi = call->second;
    used.rdx = call->third;
    if (call->name != NULL) {
        used.rdi = (saved.rsp - BELOW_STACK_BYTES) & ~15UL;
        if (!write_name(call, used.rdi)) {
            return NO_NAME;
        }
    }
    int end = NO_STEP;
    if (ptrace(PTRACE_SETREGS, call->pid, 0, &used) == 0) {
        if (ptrace(PTRACE_SINGLESTEP, call->pid, 0, 0) == 0 && stopped(call->pid) &&
            ptrace(PTRACE_GETREGS, call->pid, 0, &used) == 0) {
            *result = (long)used.rax;
            end = DONE;
        }
        /* With the original orig_rax and rax the kernel repeats the call that the stop interrupted. */
        if (ptrace(PTRACE_SETREGS, call->pid, 0, &saved) != 0) {
            end = NO_REGISTERS;
        }
    }
    return end;
}

/* Seize a thread, and wait until it is about to run its own code. */
static int stop(pid_t pid)
{
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) {
        return NO_SEIZE;
    }
    return ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && stopped(pid) ? DONE : NO_STOP;
}

/* Stop its threads, one after the other, and let each go on. One that was begun meanwhile has no former call. */
static int stop_each(const struct call *call, long *result)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof path, "/proc/%d/task", call->pid);
    DIR *folder = opendir(path);
    int end = folder == NULL ? NO_SEIZE : DONE;
    for (struct dirent *entry; end == DONE && (entry = readdir(folder)) != NULL;) {
        pid_t thread = atoi(entry->d_name);
        errno = 0;
        end = thread > 0 ? stop(thread) : DONE;
        if (end == DONE && thread > 0) {
            ptrace(PTRACE_DETACH, thread, 0, 0);
        } else if (errno == ESRCH || errno == 0) {
            end = DONE; /* it has ended */
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    *result = 0;
    return end;
}

static int trace(const struct call *call, long *result)
{
    uint64_t all = ~(uint64_t)0, mask;
    int end = stop(call->pid);
    if (end != DONE) {
        return end;
    }
    /* No handler of a signal may run in between, as it would be on our instruction. */
    end = NO_STOP;
    if (ptrace(PTRACE_GETSIGMASK, call->pid, SIGNAL_SET_BYTES, &mask) == 0 &&
        ptrace(PTRACE_SETSIGMASK, call->pid, SIGNAL_SET_BYTES, &all) == 0) {
        end = carry_out(call, result);
        ptrace(PTRACE_SETSIGMASK, call->pid, SIGNAL_SET_BYTES, &mask);
    }
    ptrace(PTRACE_DETACH, call->pid, 0, 0);
    return end;
}

struct outcome {
    int step;
    int error;
    long result;
};

/* Have a child do it, and wait for what it says; -1 and the problem, where a step failed. */
static int act(const struct call *call, int (*action)(const struct call *call, long *result), struct outcome *told,
               struct problem *problem)
{
    struct outcome outcome = {.step = NO_STOP, .error = ETIMEDOUT};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return problem_set(problem, "no pipe: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        errno = 0;
        outcome.step = action(call, &outcome.result);
        outcome.error = errno;
        _exit(write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
    }
    close(ends[1]);
    /* The child is never killed, as that would leave the thread with our registers; where the thread does not stop (in
     * an uninterruptible call), nobody waits for it any longer. */
    struct pollfd answer = {.fd = ends[0], .events = POLLIN};
    ssize_t got = child > 0 && poll(&answer, 1, ANSWER_MS) == 1 ? read(ends[0], &outcome, sizeof outcome) : -1;
    close(ends[0]);
    if (child > 0) {
        waitpid(child, NULL, got < 0 ? WNOHANG : 0);
    }
    if (got != sizeof outcome || outcome.step != DONE) {
        return problem_set(problem,
                           "process %d takes no system call from outside (%s: %s)%s", call->pid,
                           steps[outcome.step], strerror(outcome.error), target_denial(outcome.error));
    }
    *told = outcome;
    return 0;
}

static int inject(const struct target *target, struct call *call, const char *what, struct problem *problem)
{
    struct outcome outcome;
    call->pid = target->pid;
    call->instruction = target_syscall_instruction(target);
    if (call->instruction == 0) {
        return problem_set(problem, "process %d has no vDSO with a system call; only x86-64 is supported", target->pid);
    }
    if (act(call, trace, &outcome, problem) != 0) {
        return -1;
    }
    if (outcome.result < 0) {
        return problem_set(problem,
                           "process %d gets no %s: %s; see vm.unprivileged_userfaultfd, and its seccomp filter",
                           target->pid, what, strerror((int)-outcome.result));
    }
    return (int)outcome.result;
}

int inject_userfaultfd(const struct target *target, struct problem *problem)
{
    struct call call = {.number = SYS_userfaultfd, .first = O_CLOEXEC | O_NONBLOCK};
    return inject(target, &call, "userfaultfd", problem);
}

int inject_memfd(const struct target *target, const char *name, struct problem *problem)
{
    struct call call = {.number = SYS_memfd_create, .second = MFD_CLOEXEC | MFD_ALLOW_SEALING, .name = name};
    return inject(target, &call, "memfd", problem);
}

int inject_advice(const struct target *target, const struct memory *memory, int advice, struct problem *problem)
{
    struct call call = {
        .number = SYS_madvise, .first = memory->address, .second = memory->bytes, .third = (unsigned long)advice};
    return inject(target, &call, "advice for its memory", problem);
}

int inject_barrier(const struct target *target, struct problem *problem)
{
    struct call none = {.pid = target->pid};
    struct outcome outcome;
    return act(&none, stop_each, &outcome, problem);
}
