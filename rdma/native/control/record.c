#define _GNU_SOURCE
#include "record.h"

#include "document.h"
#include "handover.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, MOST_PARAMETER = 1 << 20 };

json_t *settings_to_json(const struct guest_settings *settings)
{
    json_t *object = json_pack("{s:s, s:i, s:I, s:s, s:s, s:s, s:i, s:i, s:i, s:b, s:b}", "guest", settings->guest,
                               "pid", settings->pid, "started", (json_int_t)settings->started, "memory",
                               settings->memory, "mirror", settings->mirror, "policy", settings->policy, "parameter",
                               (int)settings->parameter, "limit_mib", (int)settings->limit_mib, "read_ahead_pages",
                               (int)settings->read_ahead_pages, "sealed", (int)settings->sealed, "detaching",
                               (int)settings->detaching);
    if (settings->chunk_pages > 1) { /* else a release before, which does not know it, can go on with the guest */
        json_object_set_new(object, "chunk_pages", json_integer(settings->chunk_pages));
    }
    if (settings->incoming) {
        json_object_set_new(object, "incoming", origin_to_json(&settings->source));
    }
    if (settings->offered || settings->switched) {
        json_object_set_new(object, settings->switched ? "switched" : "offered", origin_to_json(&settings->source));
        json_object_set_new(object, "keeper", json_integer(settings->keeper.pid));
        json_object_set_new(object, "keeper_started", json_integer((json_int_t)settings->keeper.started));
    }
    return object;
}

static bool copy_text(char *into, size_t room, const char *text)
{
    return (size_t)snprintf(into, room, "%s", text) < room;
}

/* What may be left out: numbers as they came. */
struct choices {
    json_int_t limit, parameter, read_ahead, chunk;
};

static int check_choices(struct guest_settings *settings, const struct choices *chosen, struct problem *problem)
{
    if (chosen->limit < 1 || chosen->limit > MOST_LIMIT_MIB) {
        return problem_set(problem, "limit_mib: 1 to %d, not %lld", MOST_LIMIT_MIB, (long long)chosen->limit);
    }
    if (chosen->parameter < -1 || chosen->parameter > MOST_PARAMETER || chosen->read_ahead < 0 ||
        chosen->read_ahead > MOST_READ_AHEAD) {
        return problem_set(problem, "parameter: up to %d; read_ahead_pages: 0 to %d", MOST_PARAMETER, MOST_READ_AHEAD);
    }
    if (chosen->chunk < 1 || chosen->chunk > BATCH_PAGES || BATCH_PAGES % chosen->chunk != 0) {
        return problem_set(problem, "chunk_pages: a power of two from 1 to %d, not %lld", BATCH_PAGES,
                           (long long)chosen->chunk);
    }
    settings->limit_mib = (uint32_t)chosen->limit;
    settings->parameter = (uint32_t)chosen->parameter;
    if (chosen->parameter < 0) {
        settings->parameter = policy_named(settings->policy)->default_parameter;
    }
    settings->read_ahead_pages = (uint32_t)chosen->read_ahead;
    settings->chunk_pages = (uint32_t)chosen->chunk;
    return 0;
}

static int check(struct guest_settings *settings, const struct choices *chosen, struct problem *problem)
{
    size_t size = strlen(settings->guest);
    if (size == 0 || strspn(settings->guest, "0123456789abcdef-") != size) {
        return problem_set(problem, "guest: %s is no UUID", settings->guest);
    }
    if (settings->memory[0] == '\0' || settings->mirror[0] != '/') {
        return problem_set(problem, "memory: a part of the path of a mapping is needed; mirror: an absolute path");
    }
    if (policy_named(settings->policy) == NULL) {
        return problem_set(problem, "policy: %s is none of %s", settings->policy, policy_names());
    }
    return check_choices(settings, chosen, problem);
}

int settings_from_json(struct guest_settings *settings, json_t *object, struct problem *problem)
{
    const char *guest, *memory, *mirror, *policy = "mixed";
    int sealed = 1, detaching = 0;
    json_t *source = NULL, *offered = NULL, *switched = NULL;
    json_int_t pid, started = 0, keeper = 0, keeper_started = 0;
    struct choices chosen = {.parameter = -1, .read_ahead = 8, .chunk = 1};
    json_error_t error;
    static const char format[] = "{s:s, s:I, s?I, s:s, s:s, s?s, s?I, s:I, s?I, s?I, s?b, s?b, s?I, s?I, s?o, s?o, s?o}";
    if (json_unpack_ex(object, &error, JSON_STRICT, format, "guest", &guest, "pid", &pid, "started", &started, "memory",
                       &memory, "mirror", &mirror, "policy", &policy, "parameter", &chosen.parameter, "limit_mib",
                       &chosen.limit, "read_ahead_pages", &chosen.read_ahead, "chunk_pages", &chosen.chunk, "sealed",
                       &sealed, "detaching", &detaching, "keeper", &keeper, "keeper_started", &keeper_started,
                       "incoming", &source, "offered", &offered, "switched", &switched) != 0) {
        return problem_set(problem, "%s", error.text);
    }
    *settings = (struct guest_settings){.started = (uint64_t)started, .sealed = sealed, .detaching = detaching};
    if (pid < 0 || pid > INT_MAX) {
        return problem_set(problem, "pid: %lld is none of a process", (long long)pid);
    }
    settings->pid = (int)pid;
    if (!copy_text(settings->guest, sizeof settings->guest, guest) ||
        !copy_text(settings->memory, sizeof settings->memory, memory) ||
        !copy_text(settings->mirror, sizeof settings->mirror, mirror) ||
        !copy_text(settings->policy, sizeof settings->policy, policy)) {
        return problem_set(problem, "a name is too long");
    }
    settings->incoming = source != NULL;
    settings->offered = offered != NULL;
    settings->switched = switched != NULL;
    settings->keeper = (struct keeper){.pid = (int)keeper, .started = (uint64_t)keeper_started};
    source = source != NULL ? source : offered != NULL ? offered : switched;
    if (source != NULL && origin_from_json(&settings->source, &settings->key, source, problem) != 0) {
        return -1;
    }
    return check(settings, &chosen, problem);
}

static void path_of(char path[PATH_BYTES], const char *folder, const char *guest, const char *ending)
{
    snprintf(path, PATH_BYTES, "%s/guests/%s%s", folder, guest, ending);
}

int record_write(const char *folder, const struct guest_settings *settings, struct problem *problem)
{
    char path[PATH_BYTES];
    path_of(path, folder, settings->guest, ".json");
    return document_write(path, settings_to_json(settings), problem);
}

int record_read(const char *path, struct guest_settings *settings, struct problem *problem)
{
    json_error_t error;
    json_t *object = json_load_file(path, 0, &error);
    if (object == NULL) {
        return problem_set(problem, "the record %s cannot be read: %s", path, error.text);
    }
    int result = settings_from_json(settings, object, problem);
    json_decref(object);
    return result;
}

void record_remove(const char *folder, const char *guest)
{
    char path[PATH_BYTES];
    path_of(path, folder, guest, ".json");
    unlink(path);
}
