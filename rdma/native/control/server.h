/* The control socket: requests and answers, one JSON object on a line, of this user, of root, and of a
 * client's user. */
#ifndef PONDSTACK_CONTROL_SERVER_H
#define PONDSTACK_CONTROL_SERVER_H

#include "guests.h"

#include <signal.h>

/* Serve requests on a listening socket until `stop_fd`, a signalfd, has something. */
void server_run(struct guests *guests, int listener, int stop_fd);

/* Listen on FOLDER/control.sock. */
int server_listen(const char *folder, const struct client *client, struct problem *problem);

/* Send one request to FOLDER/control.sock, and print the answer; 0 when that is a result. */
int server_ask(const char *folder, const char *request, struct problem *problem);

#endif
