"""The proof that memory is zero: every byte of it is read, by memcmp(3) of the C library.

A comparison in Python takes half a minute for 1 GiB, a look at 8 bytes of each page a third of the time of all of them.
"""

import ctypes

_CHUNK_BYTES = 256 * 1024
"""Fits into a CPU's cache, so that the zeros are not read from memory again and again."""
_ZEROS = bytes(_CHUNK_BYTES)

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
_libc.memcmp.restype = ctypes.c_int


def first(memory: memoryview) -> int | None:
    """Return the offset of the first byte of a writable buffer that is not zero, None when there is none."""
    size = memory.nbytes
    start = ctypes.addressof((ctypes.c_char * size).from_buffer(memory))
    for offset in range(0, size, _CHUNK_BYTES):
        length = min(_CHUNK_BYTES, size - offset)
        if _libc.memcmp(start + offset, _ZEROS, length):
            return offset + length - len(bytes(memory[offset : offset + length]).lstrip(b"\0"))
    return None
