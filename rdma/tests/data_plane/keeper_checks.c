/* Keepers hold what they are to hold, and nothing else, from when they are started: whoever finds one takes its file by
 * the number alone. */
#define _GNU_SOURCE
#include "../../native/control/keeper.h"
#include "checks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEEPERS = 20, PATH_BYTES = 256, MOST_DESCRIPTORS = 64 };

static void check_descriptor(int pid, int number, const char *wanted)
{
    char path[PATH_BYTES], link[PATH_BYTES] = {0};
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    CHECK(readlink(path, link, sizeof link - 1) > 0);
    CHECK(strncmp(link, wanted, strlen(wanted)) == 0);
}

/* Of what this process has besides, a keeper has nothing. */
static void check_no_descriptor(int pid, const char *unwanted)
{
    char path[PATH_BYTES], link[PATH_BYTES];
    for (int number = 0; number < MOST_DESCRIPTORS; number++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
        memset(link, 0, sizeof link);
        CHECK(readlink(path, link, sizeof link - 1) < 0 || strncmp(link, unwanted, strlen(unwanted)) != 0);
    }
}

static void check_keeper(int memfd, int file, struct problem *problem)
{
    struct keeper keeper;
    int confirmation = keeper_start(&keeper, memfd, file, "/nowhere", problem);
    CHECK(confirmation >= 0);
    check_descriptor(keeper.pid, 3, "/memfd:kept ");
    check_descriptor(keeper.pid, 4, "/memfd:memory ");
    check_no_descriptor(keeper.pid, "/memfd:ours ");
    int found = keeper_open_file(&keeper, problem);
    CHECK(found >= 0);
    close(found);
    close(confirmation); /* no record names it: it ends */
    CHECK(waitpid(keeper.pid, NULL, 0) == keeper.pid);
    CHECK(!keeper_lives(&keeper));
}

int main(int count, char **arguments)
{
    struct problem problem = {0};
    if (count == 3 && strcmp(arguments[1], "keep") == 0) {
        return keeper_run(arguments[2]);
    }
    /* The numbers that a keeper's files get are taken here. */
    int first = memfd_create("ours", MFD_CLOEXEC), second = memfd_create("ours", MFD_CLOEXEC);
    int memfd = memfd_create("kept", MFD_CLOEXEC), file = memfd_create("memory", MFD_CLOEXEC);
    CHECK(first == 3 && second == 4 && ftruncate(memfd, 4096) == 0);
    for (int each = 0; each < KEEPERS; each++) {
        check_keeper(memfd, file, &problem);
    }
    puts("keepers hold");
    return 0;
}
