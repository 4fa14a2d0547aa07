"""Every command printed in the docs exists and accepts its arguments."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT_COMMANDS = [
    name for name, app in get_commands().items() if app.partition(".")[0] in {"contrib", "evaluation", "review"}
]
FULL_COMMAND = re.compile(
    r"^ *(?:[A-Z_]+=\S+ )*(?:\S*python3? )?(?:\S*manage\.py|\S*bin/concord) ([a-z_]+)([^`\n]*)$", re.MULTILINE
)
#: In a sentence what has to stand before or behind may be left out.
INLINE_COMMAND = re.compile(rf"`(?:(?:\S*python3? )?(?:manage\.py|concord) )?({'|'.join(PROJECT_COMMANDS)})( [^`]*)?`")


def parse_problem(name: str, arguments: str) -> str:
    """Explain why the command rejects its arguments; empty if it accepts them, or if the page leaves something open by
    ``…`` or a shell variable."""
    if name not in get_commands():
        return "there is no such command"
    words = shlex.split(re.split(r" [|>] ", arguments)[0], comments=True)
    if any(set(word) & set("…·[]{}|$") for word in words):
        return ""
    command = load_command_class(get_commands()[name], name)
    try:
        command.create_parser("manage.py", name).parse_args(words)
    except CommandError as error:
        return str(error)
    return ""


def check_commands(page: Path) -> tuple[int, list[str]]:
    """Return the number of commands on the page and the problems found."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    full_commands, inline_commands = FULL_COMMAND.findall(text), INLINE_COMMAND.findall(text)
    checked = [(name, arguments, parse_problem(name, arguments)) for name, arguments in full_commands]
    for name, arguments in inline_commands:
        problem = parse_problem(name, arguments)
        open_ended = "required" in problem or ("argument" in problem and re.search(r" [A-Z]{2,}\b", arguments))
        checked.append((name, arguments, "" if open_ended else problem))
    return len(checked), [f"{name}{arguments}: {problem}" for name, arguments, problem in checked if problem]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_printed_command_parses(page: Path) -> None:
    assert check_commands(page)[1] == []


def test_commands_are_found_on_pages() -> None:
    counts = {page.stem: check_commands(page)[0] for page in PAGES}
    assert counts["operations"] > 30
    assert counts["judges"] > 5
