/* Checks of rdma/native/links over verbs, with the fake device and librdmacm of ../fake_verbs.c and ../fake_rdmacm.c.
 *
 * A lender in threads of this process admits borrowers as pondstack_rdma/verbs/lender.py does; keys open what the fake
 * device knows: GOOD a region of 16 pages, the other ones how it behaves.
 */
#define _GNU_SOURCE
#include "../../native/links/cm_attrs.h"
#include "../../native/links/link.h"
#include "../../native/links/question.h"
#include "../../native/links/rc_conn.h"
#include "../../native/links/wire.h"
#include "../../native/store/sealer.h"
#include "checks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { ADDRESS = 0x10000, SLOTS = 16, GOOD = 7, LATE = 8, SILENT = 9, FORGED = 10, KEPT = 6, QPN = 5 };
enum { LONG_MS = 20000, SHORT_MS = 50 };
static const char SECRET[] = "000102030405060708090a0b0c0d0e0f";
/* hmac.digest(bytes(range(16)), b"pondstack borrower host1", "sha256"), by Python */
static const char REQUEST[] = "pnd1"
                              "\x7e\x2a\xcf\xb0\xd6\x5f\x03\x9a\x50\xab\xe4\x79\x60\x9b\xd6\xc4"
                              "\x74\x40\x21\x95\x98\x76\xf2\x4b\x81\x2a\xc4\xae\x6b\x98\x30\x95";

enum answer { ADMITS, REFUSES, TALKS_NONSENSE, SAYS_NOTHING, ADMITS_AND_REFUSES_TICKET, KEEPS_PAIR };

static struct lender {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    int key_listener, key_port;
    enum answer answer;
    atomic_bool ends;
    _Atomic int refused_requests, keys_shown;
    struct rdma_cm_id *ids[64];
    unsigned count;
} lender;

static struct problem problem;

static void answer_request(struct rdma_cm_id *id, const void *data)
{
    unsigned char welcome[18] = {'p', 'n', 'd', '1', (unsigned char)(lender.key_port >> 8), (unsigned char)lender.key_port};
    static const char refusal[] = "wrong-borrower\0this lender knows no such borrower";
    lender.ids[lender.count++] = id;
    if (memcmp(data, REQUEST, sizeof REQUEST - 1) != 0 || lender.answer == REFUSES) {
        lender.refused_requests++;
        CHECK(rdma_reject(id, refusal, sizeof refusal - 1) == 0);
    } else if (lender.answer == TALKS_NONSENSE) {
        CHECK(send_reply(id, QPN, 1, "nonsense", 8) == 0);
    } else if (lender.answer != SAYS_NOTHING) {
        CHECK(send_reply(id, lender.answer == KEEPS_PAIR ? KEPT : QPN, 1, welcome, sizeof welcome) == 0);
    }
}

/* Answer connection requests until the end. */
static void *admit(void *unused)
{
    struct pollfd fd = {.fd = lender.channel->fd, .events = POLLIN};
    while (!lender.ends) {
        if (poll(&fd, 1, 20) == 1) {
            struct rdma_cm_event *event;
            if (rdma_get_cm_event(lender.channel, &event) != 0) {
                CHECK(errno == EAGAIN); /* it was that of a connection which is destroyed meanwhile */
                continue;
            }
            if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
                answer_request(event->id, event->param.conn.private_data);
            }
            rdma_ack_cm_event(event);
        }
    }
    return unused;
}

static void send_text(int fd, const char *text)
{
    unsigned char lengths[LENGTHS_BYTES];
    lengths_pack(lengths, (uint32_t)strlen(text), 0);
    CHECK(wire_send(fd, lengths, sizeof lengths, wire_deadline(LONG_MS)) == 0);
    CHECK(wire_send(fd, text, strlen(text), wire_deadline(LONG_MS)) == 0);
}

/* The answer to one question; false: the borrower has hung up. */
static bool answer_key(int fd)
{
    unsigned char lengths[LENGTHS_BYTES];
    char text[4096];
    uint32_t header, body;
    json_int_t number = -1;
    if (wire_receive(fd, lengths, sizeof lengths, wire_deadline(LONG_MS)) != 0) {
        return false;
    }
    lengths_unpack(lengths, &header, &body);
    CHECK(header < sizeof text && body == 0);
    CHECK(wire_receive(fd, text, header, wire_deadline(LONG_MS)) == 0);
    json_t *question = json_loadb(text, header, 0, NULL);
    json_t *ticket = json_object_get(question, "ticket");
    if (ticket != NULL) {
        CHECK(json_integer_value(json_object_get(question, "pair")) == QPN || lender.answer == KEEPS_PAIR);
        bool refuses = lender.answer == ADMITS_AND_REFUSES_TICKET;
        send_text(fd, refuses ? "{\"error\": {\"code\": \"wrong-borrower\", \"text\": \"this is not yours\"}}" : "{}");
    } else {
        CHECK(json_unpack(question, "{s:{s:I}}", "key", "number", &number) == 0);
        lender.keys_shown++;
        snprintf(text, sizeof text, "{\"address\": %d, \"rkey\": %d}", ADDRESS, (int)number);
        send_text(fd, number == 0 ? "{\"address\": \"here\"}" : text);
    }
    json_decref(question);
    return true;
}

/* Answer one key channel after the other. */
static void *answer_keys(void *unused)
{
    struct pollfd fd = {.fd = lender.key_listener, .events = POLLIN};
    while (!lender.ends) {
        int link = poll(&fd, 1, 20) == 1 ? accept(lender.key_listener, NULL, NULL) : -1;
        while (link >= 0 && answer_key(link)) {
        }
        if (link >= 0) {
            close(link);
        }
    }
    return unused;
}

static void begin_lender(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    lender.key_listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(lender.key_listener, (struct sockaddr *)&address, size) == 0 && listen(lender.key_listener, 8) == 0);
    CHECK(getsockname(lender.key_listener, (struct sockaddr *)&address, &size) == 0);
    lender.key_port = ntohs(address.sin_port);
    lender.channel = rdma_create_event_channel();
    CHECK(fcntl(lender.channel->fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK(rdma_create_id(lender.channel, &lender.listener, NULL, RDMA_PS_TCP) == 0);
    address.sin_port = 0;
    CHECK(rdma_bind_addr(lender.listener, (struct sockaddr *)&address) == 0 && rdma_listen(lender.listener, 8) == 0);
}

static struct link *connect_to(const char *host, int port, const char *secret, uint32_t deadline_ms)
{
    char address[64];
    snprintf(address, sizeof address, "%s:%d", host, port);
    json_t *ticket = json_pack("{s:s, s:s, s:s, s:s}", "driver", "verbs", "address", address, "borrower", "host1",
                               "secret", secret);
    problem.text[0] = '\0';
    struct link *link = link_connect("lender1", ticket, deadline_ms, &problem);
    json_decref(ticket); /* nothing of it is used later */
    return link;
}

static struct link *connect_here(uint32_t deadline_ms)
{
    struct link *link = connect_to("127.0.0.1", ntohs(rdma_get_src_port(lender.listener)), SECRET, deadline_ms);
    CHECK(link != NULL);
    return link;
}

static struct tier *open_key(struct link *link, uint64_t number, uint64_t slots)
{
    struct key key = {.json = json_pack("{s:I}", "number", (json_int_t)number), .number = number, .slots = slots};
    struct tier *tier = link_open(link, &key, &problem);
    json_decref(key.json);
    return tier;
}

static void end(struct link *link, struct tier *tier)
{
    tier->type->close(tier);
    free(tier);
    link_end(link);
}

static uint8_t pages[SLOTS * PAGE_BYTES], found[SLOTS * PAGE_BYTES];

/* Content by slot, through each of the four calls; a chain is carried out in order. */
static void check_accesses(void)
{
    static const uint32_t backwards[] = {9, 7, 3, 1, 0}, twice[] = {4, 4};
    struct link *link = connect_here(LONG_MS);
    struct tier *tier = open_key(link, GOOD, SLOTS);
    CHECK(tier->type->write(tier, 0, SLOTS, pages) == 0 && tier->type->read(tier, 0, SLOTS, found) == 0);
    CHECK(memcmp(pages, found, sizeof pages) == 0);
    CHECK(tier->type->read(tier, 5, 2, found) == 0 && memcmp(pages + 5 * PAGE_BYTES, found, 2 * PAGE_BYTES) == 0);
    CHECK(tier_scatter(tier, backwards, 5, pages) == 0 && tier_gather(tier, backwards, 5, found) == 0);
    CHECK(memcmp(pages, found, 5 * PAGE_BYTES) == 0);
    CHECK(tier->type->read(tier, 9, 1, found) == 0 && memcmp(pages, found, PAGE_BYTES) == 0);
    CHECK(tier_scatter(tier, twice, 2, pages) == 0 && tier->type->read(tier, 4, 1, found) == 0);
    CHECK(memcmp(pages + PAGE_BYTES, found, PAGE_BYTES) == 0); /* the later one */
    CHECK(tier->type->read(tier, SLOTS - 1, 2, found) == EINVAL && tier->type->write(tier, SLOTS, 1, pages) == EINVAL);
    CHECK(tier_gather(tier, backwards, TIER_MOST_SLOTS + 1, found) == EINVAL);
    CHECK(tier->type->discard(tier, 0, SLOTS) == 0 && tier->type->read(tier, 3, 1, found) == 0);
    end(link, tier);
}

/* What the device says of each key; afterwards no tier of that link is asked any more. */
static void check_failures(void)
{
    static const struct {
        uint64_t key;
        int error;
    } cases[] = {{LATE, 0}, {SILENT, ETIMEDOUT}, {FORGED, EACCES}};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        struct link *link = connect_here(cases[at].key == SILENT ? SHORT_MS : LONG_MS);
        struct tier *tier = open_key(link, cases[at].key, SLOTS), *good = open_key(link, GOOD, SLOTS);
        uint64_t begun = wire_now_ns();
        CHECK(tier->type->write(tier, 0, 1, pages) == cases[at].error);
        CHECK(cases[at].error != ETIMEDOUT || wire_now_ns() - begun >= SHORT_MS * 1000000ul);
        CHECK(good->type->read(good, 0, 1, found) == (cases[at].error == 0 ? 0 : ECONNRESET));
        free(good);
        end(link, tier);
    }
}

/* Whoever is not there, or is no lender of ours; nothing is left behind. */
static void check_connections(void)
{
    static const struct {
        const char *host, *text;
    } nowhere[] = {{"127.0.0.2", "no RDMA device"}, {"127.0.0.3", "cannot be reached"}, {"127.0.0.5", "no RDMA device"},
                   {"127.0.0.4", "does not answer"}, {"somewhere", "no address"}};
    static const struct {
        enum answer answer;
        const char *text;
    } odd[] = {{REFUSES, "refuses: this lender knows no such borrower"},
               {TALKS_NONSENSE, "another version"},
               {SAYS_NOTHING, "does not answer"},
               {ADMITS_AND_REFUSES_TICKET, "refuses: this is not yours"}};
    int port = ntohs(rdma_get_src_port(lender.listener));
    for (size_t at = 0; at < sizeof nowhere / sizeof *nowhere; at++) {
        CHECK(connect_to(nowhere[at].host, port, SECRET, SHORT_MS) == NULL);
        CHECK(strstr(problem.text, nowhere[at].text) != NULL);
    }
    for (size_t at = 0; at < sizeof odd / sizeof *odd; at++) {
        lender.answer = odd[at].answer;
        CHECK(connect_to("127.0.0.1", port, SECRET, SHORT_MS) == NULL && strstr(problem.text, odd[at].text) != NULL);
    }
    lender.answer = ADMITS;
    int refused = lender.refused_requests;
    CHECK(connect_to("127.0.0.1", port, "ff", LONG_MS) == NULL && lender.refused_requests == refused + 1);
    CHECK(connect_to("127.0.0.1", port, "no hex", LONG_MS) == NULL && strstr(problem.text, "ticket") != NULL);
    CHECK(connect_to("127.0.0.1", 1, SECRET, LONG_MS) == NULL && strstr(problem.text, "nobody listens") != NULL);
}

static void check_keys(void)
{
    struct link *link = connect_here(LONG_MS);
    CHECK(open_key(link, 0, SLOTS) == NULL && strstr(problem.text, "no region") != NULL);
    struct tier *tier = open_key(link, GOOD, SLOTS);
    CHECK(tier != NULL);
    end(link, tier);
}

/* A key that says where its region is: nothing is asked of the lender. Whoever shares the link has what is left of it. */
static void check_locations(void)
{
    struct link *link = connect_here(LONG_MS);
    int shown = lender.keys_shown;
    struct key key = {.json = json_object(), .number = 1, .slots = SLOTS};
    key.location = json_pack("{s:I, s:i}", "address", (json_int_t)ADDRESS, "rkey", GOOD);
    struct tier *tier = link_open(link, &key, &problem), *other = link_open(link_share(link), &key, &problem);
    CHECK(tier != NULL && other != NULL && lender.keys_shown == shown);
    CHECK(tier->type->write(tier, 0, SLOTS, pages) == 0 && other->type->read(other, 0, SLOTS, found) == 0);
    CHECK(memcmp(pages, found, sizeof pages) == 0);
    end(link, tier);
    CHECK(link_lives(link) && other->type->read(other, 0, 1, found) == 0);
    json_object_set_new(key.location, "rkey", json_integer(FORGED));
    struct tier *forged = link_open(link, &key, &problem);
    CHECK(forged != NULL && forged->type->read(forged, 0, 1, found) == EACCES && !link_lives(link) && link->lost);
    json_object_del(key.location, "address");
    CHECK(link_open(link, &key, &problem) == NULL && strstr(problem.text, "no region") != NULL);
    free(forged);
    json_decref(key.location);
    json_decref(key.json);
    end(link, other);
}

/* The lender's end is heard of while an access waits: sooner than its deadline. */
static void check_end_of_lender(void)
{
    struct link *link = connect_here(LONG_MS);
    struct tier *tier = open_key(link, SILENT, SLOTS);
    rdma_destroy_id(lender.ids[--lender.count]);
    CHECK(tier->type->read(tier, 0, 1, found) == ECONNRESET);
    end(link, tier);
    link = connect_here(LONG_MS); /* also while there is none */
    CHECK(link_lives(link));
    rdma_destroy_id(lender.ids[--lender.count]);
    while (link_lives(link)) {
    }
    link_end(link);
}

/* Exponents of 4.096 us: as acknowledge_exponent of verbs/cm_attrs.py has them. */
static void check_timeouts(void)
{
    CHECK(rc_conn_timeout(10) == 8 && rc_conn_timeout(1000) == 15 && rc_conn_timeout(15000) == 18);
    CHECK(rc_conn_timeout(60000) == 20 && rc_conn_timeout(4000000) == 21);
}

int main(void)
{
    pthread_t threads[2];
    for (size_t at = 0; at < sizeof pages; at++) {
        pages[at] = (uint8_t)(at * 7 + at / PAGE_BYTES + 1);
    }
    begin_lender();
    CHECK(pthread_create(&threads[0], NULL, admit, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, answer_keys, NULL) == 0);
    check_accesses();
    check_failures();
    check_connections();
    check_keys();
    check_locations();
    check_end_of_lender();
    check_timeouts();
    lender.ends = true;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    while (lender.count > 0) {
        rdma_destroy_id(lender.ids[--lender.count]);
    }
    rdma_destroy_id(lender.listener);
    rdma_destroy_event_channel(lender.channel);
    close(lender.key_listener);
    puts("links over verbs hold");
    return 0;
}
