"""The plugin of a run with a fault: a failing example is not made smaller."""

import os
from typing import Final

import hypothesis
import pytest

DATABASE: Final = os.environ.get("TEST_DATABASE", "test_tablero")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    kept = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    profile = hypothesis.settings.get_profile("suite")
    hypothesis.settings.register_profile("unshrunk", profile, phases=kept)
    hypothesis.settings.load_profile("unshrunk")
