"""What to review next: designs and what interval each would give, goals, staff. Above ``reports``.

Door: ``ahead.next_review``, ``several.designs``, ``wording.planned_review``.
"""
