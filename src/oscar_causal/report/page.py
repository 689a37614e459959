"""One HTML file: the bundle, the styles and the data, under a policy that lets nothing in and nothing out.

The policy names the hashes of the one script and the one style sheet; there is no other code that could run, and no
address from which anything could be fetched. Names of the data live in a JSON block and reach the page as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from oscar_causal.graph.files import write_file


def policy(script: str, style: str) -> str:
    """The Content-Security-Policy of a page with exactly this script and this style sheet."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def bundled(name: str) -> str:
    """A file of the built bundle: report.js, page.css or NOTICES.txt."""
    return files("oscar_causal.report").joinpath("bundle", name).read_text(encoding="utf-8")


def page_html(data: Mapping[str, Any]) -> str:
    """The whole page for a `PageData`; the same bytes for the same data."""
    script, style, notices = bundled("report.js"), bundled("page.css"), bundled("NOTICES.txt").replace("</", "<\\/")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy(script, style), quote=True)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{html.escape(str(data["title"]))}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page draws itself with the script it carries: allow scripts to read it.</noscript>
<script type="application/json" id="data">{embedded(data)}</script>
<script type="text/plain" id="notices">{notices}</script>
<script>{script}</script>
</body>
</html>
"""


def embedded(data: Mapping[str, Any]) -> str:
    r"""JSON that can stand inside a script element: no `<`, and no line ends that old parsers trip over.

    >>> embedded({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def write_page(data: Mapping[str, Any], out: Path | str, *, force: bool = False) -> int:
    """Write the page; it appears whole or not at all. Returns its size in bytes."""
    content = page_html(data).encode("utf-8", errors="replace")
    write_file(out, content, force=force)
    return len(content)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
