"""Custom criteria: metrics defined in words and scored by a judge. Draft, try, activate."""
