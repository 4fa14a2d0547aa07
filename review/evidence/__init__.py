"""What is known of an answer: the judge's values, experts' ratings, decisions, the effective value, who has seen what.

Above ``review.models``.

Door: ``effective.Effective``, ``answers.run_answers``, ``rating_input.Given``, ``effective.Said``,
``answers.expose``, ``experts.agreement_ratings``, ``carried.carried_ratings``.
"""
