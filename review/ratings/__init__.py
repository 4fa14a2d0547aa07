"""The reviewer's screen: lease, card, draft, submit, reveal, rating again; imported ratings.

``card`` alone decides what a reviewer sees. Used by others: ``leases.next_assignment``, ``card.build_card``,
``submitting.submit``, ``reveals.reveal`` and ``finalise``."""
