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
    "timeout_seconds": (_("Timeout (seconds)"), _("From sending the question to the last byte.")),
    "method": (_("Method"), ""),
    "address": (_("Address"), _("https://host/path. Slots such as {question} may follow the host.")),
    "headers": (_("Headers"), _('JSON, such as {"Authorization": "Bearer ${SYSTEM_KEY}"}. Use variables for secrets.')),
    "body": (_("Body"), _("JSON with slots: {question}, {k}, {id}, {category}, {persona}, {history}, {sample}.")),
    "stream": (_("Streaming"), _("The reply is an event stream (text/event-stream).")),
    "delta": (_("Stream piece"), _("JMESPath in an event: the next piece of the answer.")),
    "end": (_("Last stream event"), _("Such as [DONE]. A stream that ends without it counts as broken.")),
    "most_bytes": (_("Maximum reply size (bytes)"), ""),
    "memory_megabytes": (_("Memory (MB)"), ""),
    "command": (_("Program"), _("A name from CONCORD_SYSTEM_COMMANDS.")),
    "function": (_("Function"), _("A name from CONCORD_SYSTEM_CALLABLES.")),
    "corpus": (_("Corpus"), _("A corpus of the project with its version, such as handbook@2.")),
    "retriever": (_("Retrieval method"), _("words (BM25), vectors, or both (reciprocal rank fusion).")),
    "embeddings": (_("Embeddings"), _("For vectors: the embedding endpoint, or local. Run index_corpus first.")),
    "base_url": (_("Base URL"), _("https://host/v1. Questions go to its chat/completions.")),
    "model": (_("Model"), ""),
    "key_variable": (_("Key variable"), _("An environment variable whose name begins with SYSTEM_.")),
    "system_prompt": (_("System prompt"), ""),
    "parameters": (_("Parameters"), _("JSON: additional request fields, such as temperature.")),
    "answer": (
        _("Answer"),
        _("JMESPath in the reply, as for all fields below. Leave empty if the reply doesn't have it."),
    ),
    "contexts": (_("Passages"), _("A list of texts or objects, in order.")),
    "context_text": (_("Passage text"), ""),
    "context_id": (_("Passage ID"), ""),
    "context_score": (_("Passage score"), ""),
    "context_source": (_("Passage source"), ""),
    "retrieved_ids": (_("Passage IDs"), _("If the reply lists them separately.")),
    "confidence": (_("Confidence"), ""),
    "latency_seconds": (_("Response time (seconds)"), _("Measured if left empty.")),
    "tokens_in": (_("Prompt tokens"), ""),
    "tokens_out": (_("Answer tokens"), ""),
    "error": (_("Error"), _("Text that explains why there is no answer.")),
    "metadata": (_("Additional metadata"), _("An object.")),
}


def setting_label(name: str) -> Promise | str:
    return FIELDS[name][0]


def setting_help(name: str) -> Promise | str:
    return FIELDS[name][1]


PROBLEMS = {
    "slot_unknown": _("Unknown slot %(slot)s. Available: %(known)s."),
    "address_invalid": _("Write https://host/path in ASCII, without a user name. Slots may follow the host."),
    "header_refused": _("The header %(name)s can't be set."),
    "header_value": _("The value of %(name)s isn't valid in a header."),
    "variable_refused": _("%(name)s: only environment variables whose name begins with SYSTEM_ may be sent."),
    "endpoint_missing": _("Set both base URL and model, or leave both empty to quote only."),
    "string_pattern_mismatch": _("Write NAME@VERSION, such as handbook@2."),
    "string_too_short": _("At least %(min_length)s characters."),
    "secret_written": _("%(name)s: write an environment variable such as ${SYSTEM_NAME} instead of the secret."),
    "parameter_refused": _("%(name)s is set elsewhere."),
    "no_question": _("The question is not sent: put {question} in the body or the address."),
    "expression_invalid": _("Not a valid JMESPath expression: %(detail)s"),
    "not_storable": _("A text contains a character that can't be stored, or a number isn't valid."),
    "missing": _("This setting is required."),
    "extra_forbidden": _("The connector has no such setting."),
    "greater_than_equal": _("At least %(ge)s."),
    "less_than_equal": _("At most %(le)s."),
    "literal_error": _("Must be one of %(expected)s."),
    "string_too_long": _("At most %(max_length)s characters."),
}


def explain_setting_problem(problem: SettingProblem) -> str:
    """Translated message of an invalid setting; the parser's message if it has none."""
    sentence = PROBLEMS.get(problem.code)
    params = {
        key: translate_parser_message(str(value)) if key == "detail" else value for key, value in problem.params.items()
    }
    return translate_parser_message(problem.message) if sentence is None else str(sentence) % params
