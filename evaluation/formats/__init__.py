"""Readers and writers for question, answer and rating files, in native formats and those of other tools.

Each file is checked as a whole: every problem names its line and field, and nothing is returned if there is one. No
Django."""
