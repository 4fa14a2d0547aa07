"""Shared values without Django: scales, metric specs, samples, errors, roles and content hashes.

Public: ``errors.DomainError``, ``canonical.content_hash``, ``scales.Scale``, ``metric_specs.MetricSpec``,
``samples.Result`` and ``QuestionSpec``, ``roles.Action``."""
