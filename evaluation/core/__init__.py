"""Shared values without Django: scales, metric specs, samples, errors, roles and content hashes."""
