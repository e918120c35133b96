"""Random numbers that the same seed and the same requests of a client always give."""

from hashlib import blake2b
from math import exp, log
from statistics import NormalDist
from typing import Final

_P99: Final = NormalDist().inv_cdf(0.99)  # standard deviations
_TAIL: Final = 0.999  # quantile of the longest delay


def name_client(agent: str) -> str:
    """Return the first name in a User-Agent, without its version, which is the same on every machine."""
    return agent.partition(" ")[0].partition("/")[0]


def draw(seed: int, rule: int, agent: str, number: int, purpose: str = "") -> float:
    """Return a number from 0 to below 1 for the request with a number among those that a rule is about."""
    text = f"{seed}\0{rule}\0{agent}\0{number}\0{purpose}"
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest()) / 2**48


def lognormal(p50: float, p99: float, drawn: float) -> float:
    """Return a log-normal value with this median and 99th percentile."""
    if p50 <= 0 or p99 <= p50:
        return p50
    deviations = NormalDist().inv_cdf(min(max(drawn, 1e-6), _TAIL))
    return p50 * exp(log(p99 / p50) / _P99 * deviations)
