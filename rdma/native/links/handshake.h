/* The private data of librdmacm's messages between borrower and lender, as pondstack_rdma/verbs/handshake.py has it.
 * Pure. */
#ifndef PONDSTACK_LINKS_HANDSHAKE_H
#define PONDSTACK_LINKS_HANDSHAKE_H

#include "link.h"

enum { MARK_BYTES = 4, PROOF_BYTES = 32, REQUEST_BYTES = MARK_BYTES + PROOF_BYTES, WELCOME_BYTES = 18 };

/* What a borrower's request has in it: what only who knows the ticket's secret can show, in place of it. */
int handshake_request(const struct ticket *ticket, unsigned char request[REQUEST_BYTES], struct problem *problem);

/* The TCP port of the key channel, out of the response to an admitted borrower; -1: it is no such response. */
int handshake_port(const unsigned char response[WELCOME_BYTES]);

#endif
