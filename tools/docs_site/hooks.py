"""Pages of the site that lie outside docs/, and links to files that are no pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
# Texts of the repository that are pages of the site too.
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "contrib/README.md")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LIST_INDENT = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Point links at pages of the site, and turn links to other files of the repository into text."""
    path = page.file.src_uri
    # Where the file of the page is in the repository.
    folder = posixpath.dirname(path if path in OUTSIDE else f"docs/{path}")

    def point(link: re.Match[str]) -> str:
        text, target, anchor = link.groups(default="")
        if ":" in target:
            return link[0]
        in_repository = posixpath.normpath(posixpath.join(folder, target))
        on_site = in_repository if in_repository in OUTSIDE else in_repository.removeprefix("docs/")
        if files.get_file_from_path(on_site) is None:
            return text
        return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(path) or '.')}{anchor})"

    # Python-Markdown nests by four columns, GitHub by the width of the bullet.
    parts = [part if FENCE.match(part) else LIST_INDENT.sub(" " * 4, part) for part in FENCE.split(markdown)]
    return LINK.sub(point, "".join(parts))
