"""Question sets: upload with preview, versions by content hash, comparison of versions.

Public: ``importing.import_question_set``, ``uploads``."""
