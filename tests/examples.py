"""Random examples of tests: the same in every run, or, to look for faults, many others.

TEST_EXAMPLES=20 python3 manage.py test tests/domain

draws twenty times as many, others in each run. Hypothesis prints one that fails, and tries it first in the next run.
"""

import os
from typing import Final

from hypothesis import HealthCheck, settings

_USUAL: Final = 100
_TIMES: Final = int(os.environ.get("TEST_EXAMPLES", "0"))


def register() -> None:
    """Register the profiles of Hypothesis: "suite", and "fast" with a tenth of its examples."""
    settings.register_profile(
        "suite",
        max_examples=_USUAL * max(_TIMES, 1),
        # a failure is then the change's own
        derandomize=not _TIMES,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.register_profile("fast", settings.get_profile("suite"), max_examples=10)


def of_usual(number: int) -> int:
    """Return how many examples a test draws that usually draws ``number``, where others draw 100."""
    drawn = settings.default.max_examples
    return number * drawn // _USUAL if drawn >= _USUAL else min(number, drawn)
