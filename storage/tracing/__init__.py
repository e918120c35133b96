"""Traces and metrics for a collector of OpenTelemetry.

Off by default: then only ``variables`` is imported, and requests take no other way than without it.
"""
