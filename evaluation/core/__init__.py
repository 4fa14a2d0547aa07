"""Values without Django that all packages share: scales, metric specs, samples, errors, roles, content hashes.

Used by others: ``errors.Refused``, ``canonical.content_hash``, ``scales.Scale``, ``metric_specs.MetricSpec``,
``samples.Result`` and ``QuestionSpec``, ``roles.Action``.
"""
