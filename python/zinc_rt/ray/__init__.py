"""A fleet of servers behind Ray Serve: `python -m zinc_rt.ray model.gguf --replicas 2`, or `serve.run(app(model))`.

Ray is wanted by what needs it alone: `pip install "zinc_rt[ray]"`. docs/fleets.md says what is passed on and where to.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .deployment import Ingress, Replica, app, build
    from .router import PrefixRouter

_MODULES = {"Ingress": "deployment", "PrefixRouter": "router", "Replica": "deployment", "app": "deployment"}
_MODULES["build"] = "deployment"
__all__ = ["Ingress", "PrefixRouter", "Replica", "app", "build"]


def __getattr__(name: str):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "ray":
            raise
        raise ImportError('[ray] Ray Serve is not installed: pip install "zinc_rt[ray]"') from error
    return getattr(module, name)
