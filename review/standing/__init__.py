"""Standing score: the corrected score of each release of a system over a question set, with the ratings of identical
answers of earlier releases; whether the system was tuned to them, and whether experts still rate them alike
(:func:`review.standing.selectors.standing_history`)."""
