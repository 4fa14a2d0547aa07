"""Clients of systems under test, one file a kind: typed settings, one question asked, the reply mapped to an answer.

A failure is a reply with a reason, never an empty answer. ``Surroundings`` holds what the operator allows. No Django.
Used by others: ``catalogue`` (connectors by name), ``protocol`` (calls, replies, failures).
"""
