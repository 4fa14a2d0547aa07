"""Uploads: recognising, reading and writing of question, answer and rating files, with line and field of each error.

Pure Python above ``core``. Everything is checked before anything is returned; nothing is half read.

Door: ``reading.read_questions``, ``read_answers`` and ``read_ratings``; ``export`` for tables
and formats.
"""
