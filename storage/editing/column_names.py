"""Names of columns as a header gives them: empty ones, and the same name twice."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence


def name_columns(header: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of columns, of which those without one are named by their position, and these names."""
    taken, unnamed, names = set(header), list[str](), list[str]()
    for number, name in enumerate(header, 1):
        if not name:
            name = free_name(f"column{number}", taken)
            taken.add(name)
            unnamed.append(name)
        names.append(name)
    return tuple(names), tuple(unnamed)


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: itself, or with a number at its end."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def find_name_twice(names: Iterable[str]) -> str | None:
    """Return the first name that two columns have."""
    return next((name for name, number in Counter(names).items() if number > 1), None)
