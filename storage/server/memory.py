"""Memory available to this process."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_GROUPS: Final = Path("/proc/self/cgroup")


def available(root: Path = _ROOT, groups: Path = _GROUPS) -> int:
    """Return the bytes of memory of the machine or the tightest control group."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root, groups)])


def _limits(root: Path, groups: Path) -> Iterator[int]:
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # the group and its parents; in a container the path may be the one on its host, which is not seen here
        group = Path(path.lstrip("/"))
        for each in (group, *group.parents):
            try:
                limit = (folder / each / name).read_text().strip()
            except OSError:
                continue
            if limit.isdecimal():
                yield int(limit)
