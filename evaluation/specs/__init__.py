"""Settings that are declared once: the flags of commands, the fields of forms, of REST bodies and of files follow.

A specification is a frozen pydantic model whose fields are declared with ``setting.setting``, and
``setting.settings_of`` lists them. ``flags``, ``form_fields`` and ``rest_fields`` derive what the entrances ask for.
"""
