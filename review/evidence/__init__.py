"""Evidence on an answer: judge values, ratings, decisions, the effective value, and exposure of reviewers.

Used by others: ``effective.EffectiveValue``, ``answers.run_answers`` and ``record_exposure``,
``rating_input.RatingInput``, ``experts.agreement_ratings``, ``carried.carried_ratings``."""
