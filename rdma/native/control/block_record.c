#define _GNU_SOURCE
#include "block_record.h"

#include "document.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

json_t *block_settings_to_json(const struct block_settings *settings)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:b, s:i, s:I}", "block", settings->block, "mirror",
                     settings->mirror, "socket", settings->socket, "user", (json_int_t)settings->user, "mib",
                     (json_int_t)settings->mib, "most_mib", (json_int_t)settings->most_mib, "sealed",
                     (int)settings->sealed, "ending", (int)settings->ending, "keeper", settings->keeper.pid,
                     "keeper_started", (json_int_t)settings->keeper.started);
}

static bool copy_text(char *into, size_t room, const char *text)
{
    return (size_t)snprintf(into, room, "%s", text) < room;
}

static int check(struct block_settings *settings, json_int_t mib, json_int_t most_mib, json_int_t user, json_int_t pid,
                 struct problem *problem)
{
    size_t size = strlen(settings->block);
    if (size == 0 || strspn(settings->block, "0123456789abcdef-") != size) {
        return problem_set(problem, "block: %s is no UUID", settings->block);
    }
    if (settings->mirror[0] != '/' || settings->socket[0] != '/' ||
        strlen(settings->socket) >= sizeof((struct sockaddr_un *)0)->sun_path) {
        return problem_set(problem, "mirror, socket: absolute paths are needed, of a socket up to 107 bytes");
    }
    most_mib = most_mib < 0 ? mib : most_mib;
    if (mib < 1 || most_mib < mib || most_mib > MOST_BLOCK_MIB) {
        return problem_set(problem, "mib: 1 to most_mib; most_mib: up to %d", MOST_BLOCK_MIB);
    }
    if (user < 0 || user >= UINT_MAX || pid < 0 || pid > INT_MAX) {
        return problem_set(problem, "user: the number of a user is needed, not %lld", (long long)user);
    }
    settings->mib = (uint32_t)mib;
    settings->most_mib = (uint32_t)most_mib;
    settings->user = (uid_t)user;
    settings->keeper.pid = (int)pid;
    return 0;
}

int block_settings_from_json(struct block_settings *settings, json_t *object, struct problem *problem)
{
    const char *block, *mirror, *path;
    int sealed = 1, ending = 0;
    json_int_t mib, most_mib = -1, user, pid = 0, started = 0;
    json_error_t error;
    if (json_unpack_ex(object, &error, JSON_STRICT, "{s:s, s:s, s:s, s:I, s:I, s?I, s?b, s?b, s?I, s?I}", "block",
                       &block, "mirror", &mirror, "socket", &path, "user", &user, "mib", &mib, "most_mib", &most_mib,
                       "sealed", &sealed, "ending", &ending, "keeper", &pid, "keeper_started", &started) != 0) {
        return problem_set(problem, "%s", error.text);
    }
    *settings = (struct block_settings){.sealed = sealed, .ending = ending, .keeper = {.started = (uint64_t)started}};
    if (!copy_text(settings->block, sizeof settings->block, block) ||
        !copy_text(settings->mirror, sizeof settings->mirror, mirror) ||
        !copy_text(settings->socket, sizeof settings->socket, path)) {
        return problem_set(problem, "a name is too long");
    }
    return check(settings, mib, most_mib, user, pid, problem);
}

void block_record_path(char path[RECORD_PATH_BYTES], const char *folder, const char *block)
{
    snprintf(path, RECORD_PATH_BYTES, "%s/blocks/%s.json", folder, block);
}

int block_record_write(const char *folder, const struct block_settings *settings, struct problem *problem)
{
    char path[RECORD_PATH_BYTES];
    block_record_path(path, folder, settings->block);
    return document_write(path, block_settings_to_json(settings), problem);
}

int block_record_read(const char *path, struct block_settings *settings, struct problem *problem)
{
    json_error_t error;
    json_t *object = json_load_file(path, 0, &error);
    if (object == NULL) {
        return problem_set(problem, "the record %s cannot be read: %s", path, error.text);
    }
    int result = block_settings_from_json(settings, object, problem);
    json_decref(object);
    return result;
}

void block_record_remove(const char *folder, const char *block)
{
    char path[RECORD_PATH_BYTES];
    block_record_path(path, folder, block);
    unlink(path);
}
