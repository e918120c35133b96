"""Tests against a real Citus, whose coordinator ``TEST_CITUS`` names: see docs/cluster.md.

With the same variable, the `server` of tests/wire and tests/clients is one whose tables are distributed.
"""
