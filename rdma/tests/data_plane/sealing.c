/* Seals and opens what its input says: records of a letter, page, version, 16 bytes of tag, and a page; answers a byte
 * (1: done), a tag and a page for each. Run as `sealing KEY_IN_HEX GUEST`.
 */
#include "../../native/store/sealer.h"
#include "checks.h"

#include <string.h>

struct record {
    uint8_t verb;
    uint64_t page, version;
    uint8_t tag[TAG_BYTES], content[PAGE_BYTES];
} __attribute__((packed));

struct answer {
    uint8_t done, tag[TAG_BYTES], content[PAGE_BYTES];
} __attribute__((packed));

int main(int count, char **arguments)
{
    struct sealer sealer;
    struct problem problem;
    uint8_t key[KEY_BYTES];
    static struct record record;
    static struct answer answer;
    CHECK(count == 3 && strlen(arguments[1]) == 2 * KEY_BYTES);
    for (int at = 0; at < KEY_BYTES; at++) {
        unsigned byte;
        CHECK(sscanf(arguments[1] + 2 * at, "%2x", &byte) == 1);
        key[at] = (uint8_t)byte;
    }
    CHECK(sealer_begin(&sealer, key, arguments[2], &problem) == 0);
    while (fread(&record, sizeof record, 1, stdin) == 1) {
        if (record.verb == 's') {
            answer.done = sealer_seal(&sealer, record.page, record.version, record.content, answer.content, answer.tag);
        } else { /* in place, as the store does it */
            memcpy(answer.content, record.content, PAGE_BYTES);
            answer.done = sealer_open(&sealer, record.page, record.version, answer.content, answer.content, record.tag);
        }
        CHECK(fwrite(&answer, sizeof answer, 1, stdout) == 1);
    }
    sealer_end(&sealer);
    sealer_end(&sealer);
    return 0;
}
