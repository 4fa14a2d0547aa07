"""Clients of systems under test, one file per kind: typed settings, one question per call, the reply mapped to an
answer.

A failure is a reply with a reason, never an empty answer. ``OperatorPolicy`` holds what the operator allows. No Django.
"""
