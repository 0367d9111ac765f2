"""Options that say where many fits are done."""

from typing import Annotated

import typer

Engine = Annotated[
    str,
    typer.Option(help="Where fits are done: `local`, this process, or `ray`, many processes."),
]
Address = Annotated[
    str | None,
    typer.Option(help="With --engine ray: of a cluster; without it a Ray is started here."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="With --engine ray: processes; one for each core by default."),
]
