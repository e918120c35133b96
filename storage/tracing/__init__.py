"""Traces and metrics for a collector of OpenTelemetry.

Code: storage/runtime/telemetry/, storage/protocol/tracing.py.
"""
