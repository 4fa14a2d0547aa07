"""Messages for codes of refusals, reasons, file problems and warnings, in English and Korean.

Public: ``sentences.explain_refusal``, ``explain_reason`` and ``explain``; ``markdown.render`` (safe HTML of an answer);
``numbers`` (number formatting)."""
