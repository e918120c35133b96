"""Health of a server: its disk, its database, and what doctor finds.

The command doctor: storage/runtime/doctor.py.
"""
