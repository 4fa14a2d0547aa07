"""Calibration of judge prompts: gold sets, prompt versions, automatic search, hold-out tests, approvals.

A hold-out test answers accepted or not accepted and reveals nothing else."""
