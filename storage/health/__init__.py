"""Health of a server: disk space, database, and the findings of doctor.

The command doctor: storage/runtime/doctor.py.
"""
