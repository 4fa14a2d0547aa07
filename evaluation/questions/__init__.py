"""Question sets: preview and import of files, versions by content hash, differences between versions.

Above ``accounts`` and ``files``.

Door: ``uploads.preview_file`` and ``confirm_upload``, ``importing.import_question_set``, ``importing.composed``.
"""
