"""Health of a server: its disk, its database, and what doctor finds.

Operations: storage/operations/health/. The command doctor: storage/runtime/doctor.py.
"""
