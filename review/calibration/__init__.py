"""Calibration of judge prompts: gold sets, prompt versions, automatic search, hold-out tests, approvals.

A hold-out test answers accepted or not accepted and reveals nothing else. Used by others: ``looking.run_holdout_test``
and ``request_holdout_test``, ``accepting.forecast_holdout_test``, ``freezing.freeze``, ``licences.run_approvals``."""
