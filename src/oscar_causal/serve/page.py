"""The live page: a few files of the package, under a policy that lets nothing in from elsewhere."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from oscar_causal.report.page import bundled

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>OSCAR: what if?</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<link rel="stylesheet" href="live.css">
<script src="live.js" defer></script>
</head>
<body>
<main id="live"><noscript>This page needs JavaScript. The service answers without it: /openapi.json.</noscript></main>
</body>
</html>
"""
router = APIRouter(include_in_schema=False)
KINDS = {"live.js": "text/javascript", "live.css": "text/css", "page.css": "text/css"}


@router.get("/")
async def show_page() -> HTMLResponse:
    """The page; it holds no data."""
    return HTMLResponse(HTML, headers={"content-security-policy": POLICY})


@router.get("/live.js")
@router.get("/live.css")
@router.get("/page.css")
async def show_part(request: Request) -> Response:
    """The page's program and looks, from the bundle of the package."""
    name = request.url.path.rpartition("/")[2]
    return Response(_part(name), media_type=KINDS[name])


@cache
def _part(name: str) -> str:
    try:
        return bundled(name)
    except FileNotFoundError as error:
        raise HTTPException(404, f"{name}: the page was not built into this package") from error
