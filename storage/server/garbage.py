"""Frequency with which a process looks for cycles of objects that nothing refers to."""

import gc


def pause() -> None:
    """Collect nothing while modules are imported, which takes a sixth of a start and finds nothing."""
    gc.disable()


def collect_rarely() -> None:
    """Let tens of thousands of objects come before a look, instead of 700.

    Answers and pages are made of objects without cycles: looking at them again and again takes a tenth of a page.
    """
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def keep() -> None:
    """Never look at the objects that exist now, which stay until the end; from now on collect rarely."""
    gc.freeze()
    collect_rarely()
