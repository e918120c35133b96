"""Amount of freed memory that a process keeps instead of giving it back to the system."""

import ctypes
import sys
from typing import Final

# constants of the C library of Linux: malloc.h
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_MEBIBYTE: Final = 1 << 20


def keep_freed() -> None:
    """Keep up to 16 MiB that are free, and take blocks below 4 MiB from them.

    A page of a thousand entities is copied a few times. With the C library's own limits, the memory of the copies goes
    back to the system after each answer and comes again in the next, page by page: in a virtual machine that takes
    half a millisecond, as long as the rest of writing the answer.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # musl has none
        library.mallopt(_TRIM_THRESHOLD, 16 * _MEBIBYTE)
        library.mallopt(_MMAP_THRESHOLD, 4 * _MEBIBYTE)
