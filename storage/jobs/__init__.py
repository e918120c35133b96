"""Jobs: work that takes longer than a request may.

storage/runtime/job_runner.py runs them.
"""
