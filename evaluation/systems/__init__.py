"""Systems under test: versions, previews of one question, and collection of a run's answers."""
