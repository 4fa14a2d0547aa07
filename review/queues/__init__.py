"""Queues: drawing the sample, making, steering, sharing among people, progress, reminders, access of leads.

Above ``decisions`` and ``results``.

Door: ``making.make_queue``, ``draws``, ``access.queue_for_lead`` and ``own_assignment``, ``progress.own_progress``,
``directing``.
"""
