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

A counter in the row, which each step must find as it has read it, keeps a step from being committed twice even without
the lock. A notification in the transaction that starts a job wakes the threads that run them; one that was lost is made
up for when a process listens again, and by a look every 15 seconds. With *n* other active sessions a job works
1/(*n* + 1) of the time. Its files are rows too, because they are committed with its steps and every process reads them.

A kind whose work needs transactions of its own (``is_transactional = False``) has one long step, which saves what it
has done in each of them, and can be called again with what was saved last. What a step needs and takes long, such as
the next rows of a file, is read before its transaction begins (``prepare``). A process has two threads for jobs and two
for those that parse files of users (``parses_files``); of each two, one leaves long steps to the other. What waits for
the end of a job, such as a request, runs it in its own thread (``running.complete``) and gets its errors.

Why no library runs them, after a look at procrastinate 3.10 and at Django's Tasks with django-tasks-db 0.13:

- Both have a status of a job as a whole, and run its function again from the start. Progress, exactly-once steps,
  results, pausing and owners would be a table and a runner of ours beside theirs.
- A worker of procrastinate has a pool of connections of its own, so it stores the end of a job in another transaction
  than what the job did.
- A dead worker of procrastinate is one whose heartbeat is late; a process that is merely slow then runs beside its
  successor. With django-tasks-db a killed worker leaves its task running for good. An advisory lock is neither late nor
  wrong.
- procrastinate brings 40 migrations, some in two parts; ours upgrade in one transaction.
"""
