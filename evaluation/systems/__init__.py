"""Systems under test in the database: versions, trying one question, collecting the answers of a run.

Used by others: ``services.save_system`` and ``client_of``, ``trying.try_question``, ``asking.AskSession``.
"""
