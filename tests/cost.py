"""The cost of a call in processor time, which other running programs do not lengthen."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def costs_less_than(seconds: float) -> Iterator[None]:
    """Check the processor time of the block in this thread.

    The limit is many times the usual cost, for slow and busy machines: quadratic work takes minutes.
    """
    began = time.thread_time()
    yield
    spent = time.thread_time() - began
    assert spent < seconds, f"it took {spent:.2f} s of the processor"
