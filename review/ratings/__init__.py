"""The reviewer's workbench: lease, card, draft, submit, reveal, rating again; imported ratings.

``card`` is the only source of what a reviewer sees. Used by others: ``leases.next_assignment``, ``card.card``,
``submitting.submit``, ``reveals.reveal`` and ``finalise``.
"""
