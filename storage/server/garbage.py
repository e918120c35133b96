"""How often a process looks for cycles of objects that nothing refers to."""

import gc


def collect_rarely() -> None:
    """Let tens of thousands of objects come before a look, instead of 700.

    Modules, answers and pages are made of objects without cycles: looking at them again and again takes a seventh of
    a start, and a tenth of a page.
    """
    gc.set_threshold(50_000, 20, 20)


def keep() -> None:
    """Never look again at the objects that exist now: they stay until the end."""
    gc.collect()
    gc.freeze()
