"""Calibration of judge prompts: gold sets, prompt versions, automatic search, hold-out tests, approvals.

A hold-out test answers accepted or not accepted and reveals nothing else. Used by others: ``looking.accept`` and
``ask_for_look``, ``accepting.foresee``, ``freezing.freeze``, ``licences.licences_of``.
"""
