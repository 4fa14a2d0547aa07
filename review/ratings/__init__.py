"""One item's way through a reviewer's hands: lease, card, draft, submit, reveal, finalise, rate again.

Above ``evidence``. ``card`` is the only source of what a reviewer sees.

Door: ``leases.next_assignment``, ``card.card``, ``submitting.submit``, ``reveals.reveal`` and ``finalise``,
``submitting.skip`` and ``escalate``.
"""
