"""The earnest.toml of the working directory, and whether a person approved it as it is now."""

from __future__ import annotations

import os

from earnest.cli.daemon import instance
from earnest.config import overlay as overlays
from earnest.config.overlay import Overlay
from earnest.store.sqlite import open_store


def found_file(own: str) -> Overlay | None:
    """The working directory's file, if there is one and it is another than the operator's at `own`. Raises E10xx."""
    path = os.path.join(os.getcwd(), overlays.FILE_NAME)
    return overlays.overlay(path, os.environ) if os.path.realpath(path) != os.path.realpath(own) else None


def approved(found: Overlay, config: str) -> bool:
    """Whether the store of this configuration holds a yes to this path with this hash; asks no daemon. Raises E14xx."""
    path = os.path.join(instance(config), "store.db")
    if not os.path.exists(path):
        return False
    store = open_store(path, read_only=True)
    try:
        return store.approved_config(found.path) == found.sha256
    finally:
        store.close()
