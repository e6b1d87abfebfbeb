/* pondstack-data-plane: the process of a host that serves guests' page faults. See doc/source/admin/data-plane.md. */
#define _GNU_SOURCE
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static const char USAGE[] =
    "usage: pondstack-data-plane serve FOLDER [USER MIRRORS]   serve guests until SIGTERM\n"
    "       pondstack-data-plane ask FOLDER REQUEST            send a request, a JSON object, and print the answer\n"
    "FOLDER holds the control socket and a record of each guest. Guests wait while nobody serves them.\n"
    "USER may send requests as well as root does: for processes with their guest's -uuid, with mirrors in MIRRORS.\n";

static int make_folder(const char *folder, const char *inner, struct problem *problem)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", folder, inner);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return problem_set(problem, "the folder %s cannot be made: %s", path, strerror(errno));
    }
    return 0;
}

static int lock(const char *folder, struct problem *problem)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return problem_set(problem, "%s cannot be locked: %s; see whether another data plane uses the folder", path,
                           strerror(errno));
    }
    return 0; /* held until this process ends */
}

/* Who serves the faults of others must not wait for the disk for its own when the host is short of memory. Under a limit
 * of locked memory it may: there what it needs beyond would not be had at all. */
static bool may_lock(void)
{
    struct rlimit limit;
    bool unlimited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
    return unlimited || (geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_IPC_LOCK, 0, 0, 0) == 1);
}

/* Find the user of a client, and let it into the folder; its content stays this user's. */
static int admit(const char *folder, const char *name, const char *mirrors, struct client *client,
                 struct problem *problem)
{
    const struct passwd *user = getpwnam(name);
    if (user == NULL || mirrors[0] != '/') {
        return problem_set(problem, "%s is no user of this host, or %s no absolute path", name, mirrors);
    }
    *client = (struct client){.mirrors = mirrors, .user = user->pw_uid};
    return chmod(folder, 0711) == 0 ? 0 : problem_set(problem, "the mode of %s: %s", folder, strerror(errno));
}

static int serve(const char *folder, const char *user, const char *mirrors, struct problem *problem)
{
    static struct guests guests;
    struct client client = {NULL, 0};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGXFSZ, SIG_IGN);  /* a limit of file sizes is an error of a write, no death */
    prctl(PR_SET_DUMPABLE, 0); /* guests' pages and keys are in no core dump */
    if (may_lock()) { /* best effort. No memory of guests is mapped here, so none is locked. */
        (void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    }
    int stop = signalfd(-1, &ends, SFD_CLOEXEC);
    if (stop < 0 || make_folder(folder, "", problem) != 0 || make_folder(folder, "/guests", problem) != 0 ||
        make_folder(folder, "/blocks", problem) != 0 || lock(folder, problem) != 0 ||
        (user != NULL && admit(folder, user, mirrors, &client, problem) != 0)) {
        return -1;
    }
    guests_begin(&guests, folder, &client); /* before anybody is answered: guests wait */
    int listener = server_listen(folder, &client, problem);
    if (listener >= 0) {
        server_run(&guests, listener, stop);
        close(listener);
    }
    guests_end(&guests);
    close(stop);
    return listener >= 0 ? 0 : -1;
}

int main(int count, char **arguments)
{
    struct problem problem = {""};
    int result;
    if ((count == 3 || count == 5) && strcmp(arguments[1], "serve") == 0) {
        result = serve(arguments[2], count == 5 ? arguments[3] : NULL, count == 5 ? arguments[4] : NULL, &problem);
    } else if (count == 4 && strcmp(arguments[1], "ask") == 0) {
        result = server_ask(arguments[2], arguments[3], &problem);
    } else if (count == 3 && strcmp(arguments[1], "keep") == 0) {
        return keeper_run(arguments[2]);
    } else {
        bool help = count == 2 && strcmp(arguments[1], "--help") == 0;
        fputs(USAGE, help ? stdout : stderr);
        return help ? 0 : 2;
    }
    if (result != 0) {
        fprintf(stderr, "pondstack-data-plane: %s\n", problem.text);
    }
    return result == 0 ? 0 : 1;
}
