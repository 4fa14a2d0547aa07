"""Calls over the network, whoever is called: judges, embeddings, systems under test. Pure Python above ``core``,
and the only package that opens connections.

Door: ``transport`` (one origin, checked addresses, deadlines, a cap on the body), ``llm`` (OpenAI's format above it),
``origins`` (where calls may go), ``outcomes`` (how a call ended), ``retrying`` (what follows a failure), ``pool`` and
``pacing`` (many calls at once).
"""
