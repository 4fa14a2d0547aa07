"""What is known of an answer: judge values, ratings, decisions, the effective value, exposure of reviewers.

Used by others: ``effective.Effective``, ``answers.run_answers`` and ``expose``, ``rating_input.Given``,
``experts.agreement_ratings``, ``carried.carried_ratings``.
"""
