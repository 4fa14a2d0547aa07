"""Settings that are declared once; flags of commands, fields of forms and of REST bodies, and keys of files follow.

A specification is a frozen pydantic model whose fields are declared with ``setting.setting``.
"""
