"""`oscar serve`: the HTTP service and the live page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from oscar_causal.errors import MissingExtra
from oscar_causal.verbs.output import Json, print_folder_notes, print_json, print_lines, print_plan


def run(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    dataset: Annotated[Path | None, typer.Option(help="Dataset folder whose sequences can be picked.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; another than loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="OSCAR_TOKEN", help="Token that clients must send (Authorization: Bearer).")
    ] = None,
    queue: Annotated[int, typer.Option(help="Explanations that may wait.")] = 128,
    deadline: Annotated[float, typer.Option(help="Seconds after which a request is given up.")] = 60.0,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the fastest there is by default.")] = None,
    memory: Annotated[
        float | None, typer.Option(help="Most memory in GiB; by default a share of what is free.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain, predict and ask what if over HTTP and in the browser."""
    try:
        from oscar_causal.serve.app import build_app
        from oscar_causal.serve.server import address, listen, make_server
    except ImportError as error:
        raise MissingExtra("oscar serve needs fastapi and uvicorn: pip install 'oscar-causal[serve]'") from error
    from oscar_causal.serve.guards import Access
    from oscar_causal.serve.limits import Limits
    from oscar_causal.serve.service import open_service
    from oscar_causal.verbs.discover import fastest_device

    access = Access(host, token)
    plans: list[Any] = []
    limits = Limits(queue=queue, deadline=deadline)
    service = open_service(
        model, dataset, limits, device=device or fastest_device(), memory=memory, on_plan=plans.append
    )
    listening = listen(host, port)
    print_plan(plans[0])
    print_folder_notes()
    _announce(address(host, listening), json, token is not None, plans[0].to_json())
    make_server(build_app(service, access)).run(sockets=[listening])


def _announce(url: str, json: bool, token: bool, memory: dict[str, Any]) -> None:
    if json:
        print_json({"url": url, "token": token, "memory": memory})
    else:
        print_lines([f"{url}  (the live page; {url}openapi.json describes the service; Ctrl-C ends it)"])
    sys.stdout.flush()
