/* Carries out a trace of a policy: on standard input a line "b NAME PAGES PARAMETER" begins, then "a PAGE" admits,
 * "t PAGE" touches, "f PAGE" forgets, "v" prints a victim (-1: none).
 */
#include "../../native/replacement/policy.h"

#include <stdio.h>
#include <stdlib.h>

static bool accessed(void *touched, uint32_t page)
{
    bool *bits = touched;
    bool was = bits[page];
    bits[page] = false;
    return was;
}

int main(void)
{
    const struct policy_type *policy = NULL;
    void *memory = NULL;
    bool *touched = NULL;
    char verb, name[32];
    unsigned pages, page;
    for (unsigned parameter; scanf(" %c", &verb) == 1;) {
        if (verb == 'b' && scanf("%31s %u %u", name, &pages, &parameter) == 3) {
            free(memory);
            free(touched);
            policy = policy_named(name);
            if (policy == NULL) {
                return 1;
            }
            memory = calloc(1, policy->size_bytes(pages));
            touched = calloc(pages, sizeof *touched);
            policy->begin(memory, pages, parameter);
        } else if (verb == 'v') {
            uint32_t victim = policy->victim(memory, accessed, touched);
            printf("%d\n", victim == NO_PAGE ? -1 : (int)victim);
        } else if (scanf("%u", &page) != 1) {
            return 1;
        } else if (verb == 'a') {
            policy->admit(memory, page);
        } else if (verb == 't') {
            touched[page] = true;
        } else if (verb == 'f') {
            policy->forget(memory, page);
        }
    }
    free(memory);
    free(touched);
    return 0;
}
