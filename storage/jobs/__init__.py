"""Jobs: work that takes longer than a request may.

Operations: storage/operations/jobs/. What runs them: storage/runtime/job_runner.py.
"""
