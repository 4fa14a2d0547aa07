"""Systems under test: how each kind is asked, one file a connector, all alike. Pure Python above ``network``; what an
operator allows (origins, variables, commands, functions) is handed in as ``Surroundings``.

A connector has typed settings, asks one question, maps the reply to an answer, and describes what it sent. A failure is
a reply with its reason, never an empty answer.

Door: ``catalogue`` (every connector by name), ``protocol`` (calls, replies, failures).
"""
