"""Reading and writing files of questions, answers and ratings, in our formats and those of other tools.

A file is checked as a whole: every problem names its line and field, and nothing is returned while there is one. No
Django. Used by others: ``reading.read_questions``, ``read_answers`` and ``read_ratings``; ``export``.
"""
