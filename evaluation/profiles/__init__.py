"""Profiles: weights, thresholds and arithmetic of the overall score, shipped as YAML.

Only ``admin`` and ``api`` use Django."""
