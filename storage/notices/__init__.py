"""Notices: conditions that users should know of, detected in the background.

Each subject declares its kinds in ``subject.py``, with a function that finds the current cases. One process
of all servers evaluates them once a minute (evaluation.py): a case opens a notice, which is resolved once the
case is no longer found. Users are notified when a notice opens and when there is news about it: by the
console (readers.py), by webhooks (webhooks.py) and by e-mail (delivery.py).
"""
