"""Side-by-side comparison of two systems' answers: preferences of people and judges, and their agreement.

``services`` creates comparisons and stores people's preferences, ``judging`` runs judges, ``figures`` evaluates the
preferences."""
