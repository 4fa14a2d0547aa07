"""Judges as leads see them: list, agreement, card and prompts."""
