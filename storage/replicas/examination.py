"""Findings of ``doctor`` about replicas."""

from collections.abc import Iterator, Mapping
from typing import Final

from storage.health.findings import Finding, Severity, fine
from storage.replicas import replicas
from storage.replicas.replicas import ReplicaProblem, ReplicaState

_PROBLEMS: Final[Mapping[ReplicaProblem, str]] = {
    ReplicaProblem.NO_ANSWER: "It does not answer within half a second.",
    ReplicaProblem.ACCEPTS_WRITES: "It accepts writes, so it is a primary. It is used once it follows the other.",
    ReplicaProblem.OTHER_DATABASE: "It is a replica of another database. Correct TABLERO_REPLICAS.",
    ReplicaProblem.NOT_RECEIVING: "It receives nothing from the primary. See primary_conninfo and its log.",
    ReplicaProblem.OTHER_TIMELINE: "It follows a former primary. Use pg_rewind or copy the present one.",
}


def examine() -> Iterator[Finding]:
    statuses = replicas.states()
    if not statuses:
        yield fine("There are no replicas: the primary answers all reads.")
    for replica in statuses:
        is_used = replica.state is ReplicaState.IN_USE
        lag = "" if replica.lag_seconds is None else f", {replica.lag_seconds:.1f} seconds behind"
        why = "" if replica.problem is None else f" {_PROBLEMS[replica.problem]}"
        # also for others than one that cannot be reached
        state = "left out" if replica.state is ReplicaState.UNREACHABLE else replica.state
        severity = Severity.OK if is_used and not why else Severity.WARNING
        yield Finding(severity, f"{replica.name} is {state}{lag}.{why}")
