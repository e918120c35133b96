"""Expressions over the properties of an entity: constants, properties and functions, with EDM types.

An expression has no loops and no names but properties, and its results are bounded, so that it ends for every entity.
"""
