"""Question sets: preview and import of files, versions by content hash, differences between versions.

Above ``accounts`` and ``files``.

Door: ``importing.preview_file``, ``confirm_upload`` and ``import_question_set``.
"""
