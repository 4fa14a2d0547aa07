"""Systems under test: versions, previews of one question, and collection of a run's answers.

Used by others: ``services.save_system`` and ``client_of``, ``trying.preview_question``, ``asking.CollectionSession``.
"""
