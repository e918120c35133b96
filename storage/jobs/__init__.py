"""Jobs: work that takes longer than a request may.

What runs them: storage/runtime/job_runner.py.
"""
