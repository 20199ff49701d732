"""`testbed control`."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.commands.options import RunPath, console, errors
from testbed.console.control import ACTIONS, order


def control(
    folder: RunPath,
    action: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.", metavar="ACTION")],
    words: Annotated[
        list[str] | None,
        typer.Argument(help="KEY=VALUE of set, the factor of speed, numbers to heal.", metavar="[WORD...]"),
    ] = None,
    cell: Annotated[str | None, typer.Option(help="Whom: cells, by name or glob.")] = None,
    server: Annotated[str | None, typer.Option(help="Whom: servers.")] = None,
    leaf: Annotated[str | None, typer.Option(help="Whom: leaves.")] = None,
    root: Annotated[str | None, typer.Option(help="Whom: roots.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Links: of these senders.")] = None,
    to: Annotated[str | None, typer.Option(help="Links: to these receivers.")] = None,
    path: Annotated[str | None, typer.Option(help="Links: on this path alone.")] = None,
    lasts: Annotated[str | None, typer.Option("--for", help="Heal after this long.")] = None,
) -> None:
    """Change a live run while it goes on; it answers within a second, and what it did is in its records."""
    target = {
        "cell": cell,
        "server": server,
        "leaf": leaf,
        "root": root,
        "from": source,
        "to": to,
        "path": path,
    }
    done, said = order(folder, action, words or (), target, lasts)
    for line in said:
        (console if done else errors).print(line, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(0 if done else 1)
