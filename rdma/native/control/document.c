#define _GNU_SOURCE
#include "document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static bool write_all(int fd, const char *text)
{
    size_t size = strlen(text);
    return write(fd, text, size) == (ssize_t)size && fsync(fd) == 0;
}

int document_write(const char *path, json_t *object, struct problem *problem)
{
    char made[PATH_BYTES];
    snprintf(made, sizeof made, "%s.new", path);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_INDENT(1));
    json_decref(object);
    int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = text != NULL && fd >= 0 && write_all(fd, text) && rename(made, path) == 0;
    int error = errno;
    free(text);
    if (fd >= 0) {
        close(fd);
    }
    return good ? 0 : problem_set(problem, "the record %s cannot be written: %s", path, strerror(error));
}
