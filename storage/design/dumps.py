"""JSON of designs, for the management API and the command."""

from typing import Any

from storage.design.advice import QueryUse
from storage.design.design import AccountDesign, Design
from storage.design.findings import Finding


def dump_design(design: Design) -> dict[str, Any]:
    shape, partitions, traffic = design.shape, design.shape.partitions, design.traffic
    in_kinds = sum(kind.entities for kind in shape.kinds)
    return {
        "table": design.table.name,
        "examined_at": shape.at,
        "examined": shape.examined,
        "findings": [dump_finding(it) for it in design.findings],
        "partitions": {
            "number": partitions.number,
            "entities": partitions.entities,
            "bytes": partitions.size,
            "of_one_entity": partitions.single,
            "examined": partitions.examined,
            "is_exact": partitions.is_exact,
            "largest": [
                {"partition_key": it.key, "entities": it.entities, "bytes": it.size}
                for it in partitions.largest
            ],
            "classes": [it._asdict() for it in partitions.classes],
        },
        "traffic": {
            "requests": traffic.requests,
            "partition_key": traffic.partition if traffic.share else None,
            "share": traffic.share,
            "peak": traffic.peak,
        },
        "writes_a_day": design.writes_a_day,
        "kinds": [
            {
                "share": kind.entities / in_kinds,
                "filter": kind.filter,
                "example": kind.example._asdict(),
                "properties": [{"name": name, "share": share} for name, share in kind.properties],
            }
            for kind in shape.kinds
        ],
        "queries": [_dump_query(it) for it in design.queries],
    }


def dump_finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": str(finding.kind),
        "weight": finding.weight,
        "text": finding.text,
        "facts": dict(finding.facts),
        "entities": finding.entities,
        "examples": list(finding.examples),
        "edit": None if finding.edit is None else dict(finding.edit),
    }


def _dump_query(use: QueryUse) -> dict[str, Any]:
    return {
        "shape": use.count.shape,
        "access_path": use.path,
        "requests": use.count.requests,
        "entities": use.count.entities,
        "clients": [{"agent": agent, "requests": requests} for agent, requests in use.count.clients],
        "read": use.read,
        "read_for_one": use.read_for_one,
        "has_index": use.indexed,
        "pattern": use.advice.pattern if use.advice else None,
        "edit": use.edit,
    }


def dump_account(described: AccountDesign) -> dict[str, Any]:
    return {
        "tables": [
            {"table": it.table.name, "problems": [dump_finding(problem) for problem in it.problems]}
            for it in described.tables
        ],
        "others": described.others,
    }
