"""Options that mean the same for every command.

They may stand before the command as well (`earnest --config X tools`): `main` moves them behind it.
"""

from __future__ import annotations

from typing import Annotated

import typer

Config = Annotated[str, typer.Option("--config", metavar="PATH", help="The configuration; its own daemon answers.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
