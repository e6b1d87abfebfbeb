/* Write-back of this host's CPU caches, for memory that another host reads next: pool devices keep no caches of several
 * hosts coherent (CXL 2.0 memory that is handed over; Zombieland, EuroSys'18, section 5.3 has one cache only).
 *
 * A line must leave the cache, and not only be clean: it would be stale once the other host has written, and this host may
 * get the memory back. So no clwb (x86) or dc cvac (Arm), which may keep it.
 *
 * | CPU | instruction | order |
 * |---|---|---|
 * | x86-64, CPUID.(7,0):EBX bit 23 | clflushopt | with sfence behind, Intel SDM volume 2A: weaker than clflush, several at once |
 * | x86-64, CPUID.1:EDX bit 19 | clflush | in order of stores; mfence behind |
 * | AArch64 | dc civac | dsb sy behind; Linux lets programs use it (SCTLR_EL1.UCI) |
 * | others | none | nothing is known of them: the module says so, and the host hands nothing over |
 *
 * Caches are physically tagged: what any process or the guest has written there leaves, whichever mapping is given here.
 * The interpreter's lock is free meanwhile. Limited API of Python 3.11.
 */
#include "pyobject.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static unsigned line_bytes(void)
{
    unsigned eax, ebx = 0, ecx, edx = 0;
    bool has = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (edx & (1u << 19)) != 0; /* clflush, and its line size */
    return has ? ((ebx >> 8) & 0xffu) * 8 : 0;
}

static bool is_unordered(void)
{
    unsigned eax, ebx = 0, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & (1u << 23)) != 0;
}

static const char *instruction(void)
{
    return line_bytes() == 0 ? "" : is_unordered() ? "clflushopt" : "clflush";
}

__attribute__((target("clflushopt"))) static void evict_unordered(const char *at, const char *end, unsigned line)
{
    for (; at < end; at += line) {
        _mm_clflushopt((void *)(uintptr_t)at);
    }
    _mm_sfence();
}

static void evict_ordered(const char *at, const char *end, unsigned line)
{
    for (; at < end; at += line) {
        _mm_clflush(at);
    }
    _mm_mfence();
}

static void evict(const char *at, const char *end, unsigned line)
{
    /* Stores of this thread come first in either case: fences order clflushopt with them (Intel SDM). */
    _mm_mfence();
    (is_unordered() ? evict_unordered : evict_ordered)(at, end, line);
}

#elif defined(__aarch64__)

static unsigned line_bytes(void)
{
    uint64_t type;
    __asm__("mrs %0, ctr_el0" : "=r"(type));
    return 4u << ((type >> 16) & 0xfu); /* DminLine: log2 of words */
}

static const char *instruction(void)
{
    return "dc civac";
}

static void evict(const char *at, const char *end, unsigned line)
{
    __asm__ volatile("dsb sy" ::: "memory");
    for (; at < end; at += line) {
        __asm__ volatile("dc civac, %0" ::"r"(at) : "memory");
    }
    __asm__ volatile("dsb sy" ::: "memory");
}

#else

static unsigned line_bytes(void)
{
    return 0;
}

static const char *instruction(void)
{
    return "";
}

static void evict(const char *at, const char *end, unsigned line)
{
    (void)at, (void)end, (void)line;
}

#endif

static PyObject *write_back(PyObject *module, PyObject *buffer)
{
    (void)module;
    Py_buffer memory;
    unsigned line = line_bytes();
    if (line == 0) {
        return failed(ENOTSUP);
    }
    if (PyObject_GetBuffer(buffer, &memory, PyBUF_SIMPLE) != 0) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    const char *first = memory.buf, *end = first + memory.len;
    evict(first - (uintptr_t)first % line, end, line);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&memory);
    Py_RETURN_NONE;
}

static PyObject *named(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(instruction());
}

static PyMethodDef methods[] = {
    {"write_back", write_back, METH_O, "write_back(buffer): have its cache lines written back, and leave. Raises OSError."},
    {"instruction", named, METH_NOARGS, "instruction(): which one does it on this CPU; '' for none."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pondstack_rdma._cpu_cache",
    .m_doc = "Write-back of CPU caches.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__cpu_cache(void)
{
    return PyModuleDef_Init(&definition);
}
