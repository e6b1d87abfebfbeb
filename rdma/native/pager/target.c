#define _GNU_SOURCE
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 64, LINE_BYTES = 8192, LINK_BYTES = 256 };

/* Return when a process began, by the 22nd field of its stat; 0 when it is gone. */
static uint64_t start_of(pid_t pid)
{
    char path[PATH_BYTES], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    char *at = strrchr(text, ')'); /* a name may have blanks and brackets */
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

int target_open(struct target *target, pid_t pid, uint64_t started, struct problem *problem)
{
    *target = (struct target){.pid = pid, .pidfd = -1};
    if (pid <= 1) {
        return problem_set(problem, "%d is no process of a guest", pid);
    }
    target->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (target->pidfd < 0) {
        return problem_set(problem, "process %d cannot be opened: %s", pid, strerror(errno));
    }
    target->started = start_of(pid);
    if (target->started == 0 || (started != 0 && started != target->started)) {
        target_close(target);
        return problem_set(problem, "process %d has ended", pid);
    }
    return 0;
}

bool target_lives(pid_t pid, uint64_t started)
{
    return start_of(pid) == started;
}

bool target_is_guest(pid_t pid, const char *guest)
{
    static const char option[] = "-uuid";
    char path[PATH_BYTES], word[LINE_BYTES];
    size_t size = 0;
    bool named = false, found = false;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    for (int got; file != NULL && !found && (got = getc(file)) != EOF;) {
        word[size] = (char)got;
        if (got != '\0') {
            size += size < sizeof word - 2;
            continue;
        }
        found = named && strcmp(word, guest) == 0;
        named = strcmp(word, option) == 0;
        size = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

void target_close(struct target *target)
{
    if (target->pidfd >= 0) {
        close(target->pidfd);
        target->pidfd = -1;
    }
}

const char *target_denial(int error)
{
    return error != EPERM && error != EACCES ? ""
                                             : "; CAP_SYS_PTRACE or CAP_CHECKPOINT_RESTORE is missing, it has a "
                                               "debugger, or kernel.yama.ptrace_scope, AppArmor or SELinux denies it: "
                                               "see journalctl -k";
}

/* One line of /proc/PID/maps. */
struct mapping {
    uint64_t start, end, offset, inode;
    char permissions[8];
    const char *path;
};

static bool parse_mapping(char *line, struct mapping *mapping)
{
    int path_at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %n", &mapping->start, &mapping->end,
               mapping->permissions, &mapping->offset, &mapping->inode, &path_at) < 5) {
        return false;
    }
    mapping->path = line + path_at;
    return true;
}

static FILE *open_file(const struct target *target, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/%s", target->pid, name);
    return fopen(path, "re");
}

static int open_memory(const struct target *target, struct memory *memory, uint64_t first_end, struct problem *problem)
{
    char path[PATH_BYTES * 2];
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, target->pid, memory->address, first_end);
    memory->fd = open(path, O_RDWR | O_CLOEXEC);
    if (memory->fd < 0) {
        return problem_set(problem, "the memory of process %d cannot be opened: %s%s", target->pid,
                           strerror(errno), target_denial(errno));
    }
    return 0;
}

int target_memory(const struct target *target, const char *name, struct memory *memory, struct problem *problem)
{
    *memory = (struct memory){.fd = -1};
    FILE *file = open_file(target, "maps");
    if (file == NULL) {
        return problem_set(problem, "the mappings of process %d cannot be read: %s%s", target->pid, strerror(errno),
                           target_denial(errno));
    }
    char line[LINE_BYTES];
    struct mapping mapping;
    uint64_t first_end = 0;
    bool several = false;
    while (fgets(line, sizeof line, file) != NULL) {
        if (!parse_mapping(line, &mapping) || strstr(mapping.path, name) == NULL || mapping.permissions[3] != 's' ||
            mapping.permissions[1] != 'w') {
            continue;
        }
        if (memory->bytes == 0) {
            *memory = (struct memory){mapping.start, mapping.end - mapping.start, mapping.offset, mapping.inode, -1};
            first_end = mapping.end;
        } else if (mapping.inode == memory->inode && mapping.start == memory->address + memory->bytes &&
                   mapping.offset == memory->offset + memory->bytes) {
            memory->bytes += mapping.end - mapping.start;
        } else {
            several = true;
        }
    }
    fclose(file);
    if (memory->bytes == 0 || several) {
        return problem_set(problem, "process %d has %s shared writable mapping with %s in its path; see /proc/%d/maps",
                           target->pid, several ? "more than one" : "no", name, target->pid);
    }
    return open_memory(target, memory, first_end, problem);
}

int target_check_pages(const struct target *target, const struct memory *memory, struct problem *problem)
{
    FILE *file = open_file(target, "smaps");
    if (file == NULL) {
        return problem_set(problem, "the mappings of process %d cannot be read: %s%s", target->pid, strerror(errno),
                           target_denial(errno));
    }
    char line[LINE_BYTES];
    struct mapping mapping;
    bool inside = false;
    uint64_t kib = 0, huge_kib = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (parse_mapping(line, &mapping)) {
            inside = mapping.start >= memory->address && mapping.end <= memory->address + memory->bytes;
        } else if (inside && (sscanf(line, "ShmemPmdMapped: %" SCNu64, &kib) == 1 ||
                              sscanf(line, "FilePmdMapped: %" SCNu64, &kib) == 1 ||
                              sscanf(line, "Shared_Hugetlb: %" SCNu64, &kib) == 1)) {
            huge_kib += kib;
        }
    }
    fclose(file);
    if (huge_kib > 0) {
        return problem_set(problem,
                           "%" PRIu64
                           " KiB of the memory of process %d are huge pages; attach it before it uses them, or "
                           "start it without them (prctl PR_SET_THP_DISABLE; no hugetlbfs)",
                           huge_kib, target->pid);
    }
    return 0;
}

bool target_has(const struct target *target, int number, const char *link)
{
    char path[PATH_BYTES], found[LINK_BYTES];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", target->pid, number);
    ssize_t got = readlink(path, found, sizeof found - 1);
    if (got < 0) {
        return false;
    }
    found[got] = '\0';
    return strncmp(found, link, strlen(link)) == 0;
}

int target_descriptor(const struct target *target, const char *link)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/fd", target->pid);
    DIR *folder = opendir(path);
    int number = -1;
    for (struct dirent *entry; folder != NULL && number < 0 && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.' && target_has(target, atoi(entry->d_name), link)) {
            number = atoi(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return number;
}

int target_duplicate(const struct target *target, int number, struct problem *problem)
{
    int fd = (int)syscall(SYS_pidfd_getfd, target->pidfd, number, 0);
    if (fd < 0) {
        return problem_set(problem,
                           "descriptor %d of process %d cannot be had: %s%s", number, target->pid,
                           strerror(errno), target_denial(errno));
    }
    return fd;
}

uint64_t target_syscall_instruction(const struct target *target)
{
    static const char instruction[] = {0x0f, 0x05};
    static char code[4 * 4096]; /* only the thread of the control socket attaches */
    char line[LINE_BYTES], path[PATH_BYTES];
    struct mapping mapping = {0};
    bool found = false;
    FILE *file = open_file(target, "maps");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = parse_mapping(line, &mapping) && strcmp(mapping.path, "[vdso]") == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    snprintf(path, sizeof path, "/proc/%d/mem", target->pid);
    int memory = found ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (memory < 0) {
        return 0;
    }
    ssize_t got = pread(memory, code, sizeof code, (off_t)mapping.start);
    close(memory);
    const char *at = got > 0 ? memmem(code, (size_t)got, instruction, sizeof instruction) : NULL;
    return at == NULL ? 0 : mapping.start + (uint64_t)(at - code);
}
