"""Tuning of the allocator's retained memory."""

import ctypes
import sys
from typing import Final

# constants of the C library of Linux: malloc.h
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_MEBIBYTE: Final = 1 << 20


def keep_freed() -> None:
    """Keep up to 16 MiB of free memory, and allocate blocks below 4 MiB from it."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # musl has none
        library.mallopt(_TRIM_THRESHOLD, 16 * _MEBIBYTE)
        library.mallopt(_MMAP_THRESHOLD, 4 * _MEBIBYTE)
