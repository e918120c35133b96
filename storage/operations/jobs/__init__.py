"""Jobs: the one mechanism for work that takes longer than a request may.

A *kind* of job is a class with two methods, ``begin`` and ``step``, over plain dataclasses; see kinds.py. A job is a
row in the database: its arguments, where it stands, and its progress. It runs inside the server processes:

- A process that runs a job holds an advisory lock of PostgreSQL in the session that also commits its steps. When the
  process dies, PostgreSQL ends the session, and with it the lock and a step that was not committed; another process
  notices that within a second and goes on where the last step ended.
- A step is one transaction: what it writes, where the job stands, and its progress are committed together. So the
  effect of each step is exactly once, at any moment of a kill.
- Between two steps, the job is paused or cancelled if a user wishes it, others take their turn, and the process rests
  for as long as leaves the database to requests.

Jobs are not a library's: see docs/architecture.md, "Jobs".
"""
