/* A guest's init: fills memory of its CPU-less node 1 with a pattern, verifies it for ever, takes more when told.
 *
 * Prints "pool node: ..." at the start, "pass N wrong W words V" after each look at all of it. Input "g": one more
 * piece, printed as "grown", also verified from then on; "p": rest, printed as "resting", until something else comes.
 * Linked statically: there is no library in the guest. */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

enum { BIND = 2, NODE = 1, FIRST_MIB = 64, MORE_MIB = 16 };

#define MIB ((size_t)1 << 20)

static void show(const char *name)
{
    char path[128], text[256] = "";
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/%s", NODE, name);
    int file = open(path, O_RDONLY);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    printf("pool node: %s=[%s]\n", name, text);
    if (file >= 0)
        close(file);
}

static void fill(uint64_t *words, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        words[i] = i * 0x9E3779B97F4A7C15u + 1;
}

int main(void)
{
    unsigned long mask = 1ul << NODE;
    size_t bytes = (FIRST_MIB + MORE_MIB) * MIB, used = FIRST_MIB * MIB / 8;
    struct termios terminal;
    struct pollfd input = {.fd = 0, .events = POLLIN};

    setvbuf(stdout, 0, _IOLBF, 0);
    mkdir("/sys", 0755);
    mount("sys", "/sys", "sysfs", 0, 0);
    if (!tcgetattr(0, &terminal)) {
        terminal.c_lflag &= ~(unsigned)(ICANON | ECHO);
        tcsetattr(0, TCSANOW, &terminal);
    }
    show("cpulist");
    show("distance");
    uint64_t *words = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED || syscall(SYS_mbind, words, bytes, BIND, &mask, 64ul, 0u)) {
        perror("node 1");
        return 1;
    }
    fill(words, 0, used);
    for (unsigned long pass = 1;; pass++) {
        size_t wrong = 0;
        for (size_t i = 0; i < used; i++)
            wrong += words[i] != i * 0x9E3779B97F4A7C15u + 1;
        printf("pass %lu wrong %zu words %zu\n", pass, wrong, used);
        char key = 0;
        if (poll(&input, 1, 0) != 1 || read(0, &key, 1) != 1)
            continue;
        if (key == 'p') {
            printf("resting\n");
            poll(&input, 1, -1);
        } else if (key == 'g' && used < bytes / 8) {
            fill(words, used, bytes / 8);
            used = bytes / 8;
            printf("grown\n");
        }
    }
}
