"""Question sets: upload with preview, versions by content hash, differences between versions.

Used by others: ``importing.import_question_set``, ``uploads``.
"""
