"""Declarations of settings, from which command flags, form fields, REST fields and file keys are derived.

A specification is a frozen pydantic model whose fields are declared with ``setting.setting``."""
