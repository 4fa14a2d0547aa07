"""In which language the offline baseline gives its reasons."""

from __future__ import annotations

from evaluation.judging.calls import JudgeCall


def reasons_in(call: JudgeCall) -> str:
    """The rubric's language, and Korean for a Korean question whatever the rubric is written in: whoever can judge the
    answer can read why it got its level."""
    asked_in_korean = any("가" <= letter <= "힣" for letter in call.question.text)
    return "ko" if asked_in_korean else call.rubric.language
