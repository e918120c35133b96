"""Traces and metrics for a collector of OpenTelemetry, configured by its standard environment variables only.

Off by default: then only ``variables`` is imported, and requests take no other way than without it.
"""
