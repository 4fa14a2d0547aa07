"""Decisions of leads: overrides, adjudication of disputed answers, rulings on flags."""
