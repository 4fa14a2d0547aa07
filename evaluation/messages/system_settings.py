"""Labels and help texts of connector settings, and messages of invalid ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evaluation.messages.explanations import translate_parser_message


class SettingProblem(Protocol):
    """Invalid setting; see ``evaluation.connectors.catalogue``."""

    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def params(self) -> Any: ...


CONNECTOR_TITLES = {
    "http": _("HTTP service"),
    "command": _("Command line"),
    "chat": _("Chat model (OpenAI-compatible)"),
    "callable": _("Python function"),
    "corpus": _("Corpus of this site (reference system)"),
}

#: Setting -> label and help text.
FIELDS: Mapping[str, tuple[Promise | str, Promise | str]] = {
    "timeout_seconds": (_("Deadline (seconds)"), _("From asking to the last byte.")),
    "method": (_("Method"), ""),
    "address": (_("Address"), _("https://host/path. Slots such as {question} may stand behind the host.")),
    "headers": (_("Headers"), _('JSON, such as {"Authorization": "Bearer ${SYSTEM_KEY}"}; secrets by their variable.')),
    "body": (_("Body"), _("JSON with slots: {question}, {k}, {id}, {category}, {persona}, {history}, {sample}.")),
    "stream": (_("Streamed"), _("The reply is a stream of events (text/event-stream).")),
    "delta": (_("Piece of a stream"), _("JMESPath in an event: the next piece of the answer.")),
    "end": (_("Last event of a stream"), _("Such as [DONE]. A stream that ends without it counts as broken.")),
    "most_bytes": (_("Longest reply (bytes)"), ""),
    "memory_megabytes": (_("Memory (MB)"), ""),
    "command": (_("Program"), _("A name from CONCORD_SYSTEM_COMMANDS.")),
    "function": (_("Function"), _("A name from CONCORD_SYSTEM_CALLABLES.")),
    "corpus": (_("Corpus"), _("A corpus of the project with its version, such as handbook@2.")),
    "retriever": (_("Found by"), _("words (BM25), vectors, or both by reciprocal ranks.")),
    "embeddings": (_("Embeddings"), _("For vectors: the endpoint that embeds, or local. Run index_corpus before.")),
    "base_url": (_("Base URL"), _("https://host/v1; questions go to its chat/completions.")),
    "model": (_("Model"), ""),
    "key_variable": (_("Variable of the key"), _("An environment variable whose name begins with SYSTEM_.")),
    "system_prompt": (_("System prompt"), ""),
    "parameters": (_("Parameters"), _("JSON: further members of the request, such as the temperature.")),
    "answer": (_("Answer"), _("JMESPath in the reply; so are all below. Empty where the reply does not have it.")),
    "contexts": (_("Passages"), _("A list of texts or objects, in their order.")),
    "context_text": (_("Text of a passage"), ""),
    "context_id": (_("Id of a passage"), ""),
    "context_score": (_("Score of a passage"), ""),
    "context_source": (_("Source of a passage"), ""),
    "retrieved_ids": (_("Ids of the passages"), _("Where the reply lists them apart.")),
    "confidence": (_("Confidence"), ""),
    "latency_seconds": (_("Seconds it took"), _("Measured where it is empty.")),
    "tokens_in": (_("Tokens of the prompt"), ""),
    "tokens_out": (_("Tokens of the answer"), ""),
    "error": (_("Error"), _("A text that says why there is no answer.")),
    "metadata": (_("What else to keep"), _("An object.")),
}


def setting_label(name: str) -> Promise | str:
    return FIELDS[name][0]


def setting_help(name: str) -> Promise | str:
    return FIELDS[name][1]


PROBLEMS = {
    "slot_unknown": _("The slot %(slot)s stands for nothing. There are %(known)s."),
    "address_invalid": _("Write https://host/path, in ASCII and without a user. Slots may stand behind the host."),
    "header_refused": _("The header %(name)s cannot be set."),
    "header_value": _("The value of %(name)s is one that no header can hold."),
    "variable_refused": _("%(name)s: only environment variables whose name begins with SYSTEM_ may be sent."),
    "endpoint_missing": _("Base URL and model belong together. Set both, or leave both empty to quote."),
    "string_pattern_mismatch": _("Write NAME@VERSION, such as handbook@2."),
    "string_too_short": _("At least %(min_length)s characters."),
    "secret_written": _("%(name)s: name an environment variable, as ${SYSTEM_NAME}, in place of the secret itself."),
    "parameter_refused": _("%(name)s is set elsewhere."),
    "no_question": _("The question is sent nowhere: put {question} into the body or the address."),
    "expression_invalid": _("That is no JMESPath expression: %(detail)s"),
    "not_storable": _("A text holds a character that cannot be stored, or a number is none."),
    "missing": _("This setting is needed."),
    "extra_forbidden": _("The connector has no such setting."),
    "greater_than_equal": _("At least %(ge)s."),
    "less_than_equal": _("At most %(le)s."),
    "literal_error": _("One of %(expected)s."),
    "string_too_long": _("At most %(max_length)s characters."),
}


def explain_setting_problem(problem: SettingProblem) -> str:
    """Translated message of an invalid setting; the parser's message if it has none."""
    sentence = PROBLEMS.get(problem.code)
    params = {
        key: translate_parser_message(str(value)) if key == "detail" else value for key, value in problem.params.items()
    }
    return translate_parser_message(problem.message) if sentence is None else str(sentence) % params
