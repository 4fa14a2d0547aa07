"""Values without Django that everything else speaks in: scales, samples, metric descriptions, refusals, roles.

Imports nothing of Concord, and no Django.

Door: ``errors.Refused`` (a refusal with a code and its parameters), ``canonical.content_hash``, ``registry.Scale``,
``samples.Result`` and ``QuestionSpec``, ``registry.MetricSpec``, ``roles.Action``.
"""
