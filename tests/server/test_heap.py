"""Memory that answers have freed serves the next ones."""

import subprocess
import sys

import pytest

COUNT = """
import resource
from storage.server import heap

{setting}
pieces = [b"x" * 600] * 1000

def answer():
    return b"".join(pieces).replace(b"y", b"").replace(b"x", b"z")

for _ in range(20):
    answer()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    answer()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(setting):
    code = COUNT.format(setting=setting)
    return int(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only the C library of Linux is told")
def test_copies_of_an_answer_take_no_new_memory():
    assert faults("heap.keep_freed()") < 50 < faults("")
