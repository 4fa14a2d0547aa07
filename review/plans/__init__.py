"""What to review next: designs and what interval each would give, goals, staff. Above ``reports``.

Door: ``ahead.next_review``, ``ahead.planned_review``, ``design.designs``.
"""
