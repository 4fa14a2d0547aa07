"""Messages for codes of refusals, reasons, file problems and warnings, in English and Korean."""
