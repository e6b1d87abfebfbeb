#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int address_of(const char *text, int port, struct sockaddr_storage *address)
{
    struct addrinfo *found, hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    if (port < 0 || port > UINT16_MAX || getaddrinfo(text, service, &hints, &found) != 0) {
        return EINVAL;
    }
    *address = (struct sockaddr_storage){0};
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

int address_split(const char *text, char host[HOST_BYTES], int *port)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (colon == NULL || colon - text >= HOST_BYTES || colon[1] < '0' || colon[1] > '9') {
        return EINVAL;
    }
    long number = strtol(colon + 1, &end, 10);
    if (*end != '\0' || number < 1 || number > UINT16_MAX) {
        return EINVAL;
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    *port = (int)number;
    return 0;
}
