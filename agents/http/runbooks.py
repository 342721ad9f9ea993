"""The runbooks of the package as pages: whoever is called at night has them where the finding is.

In: the files of docs/runbooks, which are in the package as `underhost.runbooks`. Out: HTML by name, made when somebody
asks for it. Other pages of the docs are not in the package: links to them are their words.
"""

import re
from html import escape
from importlib.resources import files

_ELSEWHERE = re.compile(r"\[([^]]+)\]\(\.\./[^)]*\)")
_RUNBOOK = re.compile(r"\]\((\w+)\.md\)")
_PAGE = """<!doctype html>
<html lang="en" data-theme="auto">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{title} · Underhost</title>
  <link rel="icon" href="/static/logo.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/static/style.css">
  <script src="/static/bar/theme.js"></script>
</head>
<body class="text">
  <main>
{body}
  </main>
</body>
</html>
"""


def runbooks() -> dict[str, str]:
    """The Markdown of every runbook, by the name of its alert."""
    found = files("underhost.runbooks").iterdir()
    return {file.name.removesuffix(".md"): file.read_text("utf-8") for file in found if file.name.endswith(".md")}


def page(name: str, text: str) -> bytes:
    """A runbook as a page."""
    return _PAGE.format(title=escape(name), body=_html(text)).encode()


def _html(text: str) -> str:
    # A megabyte, and most workers are never asked for a runbook.
    from markdown_it import MarkdownIt

    here = _RUNBOOK.sub(r"](\1)", _ELSEWHERE.sub(r"\1", text))
    return str(MarkdownIt("commonmark", {"html": False}).render(here))
