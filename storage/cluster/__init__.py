"""Distributed tables: a table over the nodes of a Citus cluster.

``FORM`` in ``subject`` is the form of their relations, by which the engine knows what they can do.
"""
