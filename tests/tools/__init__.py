"""Programs that measure, check or publish the product, each with one smoke test.

CONTRIBUTING.md has their commands.
"""
