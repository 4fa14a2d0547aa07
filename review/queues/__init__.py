"""Review queues: settings, sampling, creation, distribution, progress, and planning of the next review.

Used by others: ``making.make_queue``, ``draws``, ``access.queue_for_lead`` and ``own_assignment``,
``progress.own_progress``, ``planning.next_review``."""
