"""Mooncake's Python package, whichever variant is installed."""

from __future__ import annotations

import os
from typing import Any, Optional

from mooncake_kv.vllm_0_33.store import SidecarPut


class Wheel:
    """The package, imported at once; what went wrong is kept for the first who needs it."""

    def __init__(self) -> None:
        self._module: Optional[Any] = None
        self._problem = ""
        try:
            from mooncake import store
        except ImportError as error:
            self._problem = f"Mooncake's Python package can't be imported: {error}"
        else:
            self._module = store

    @property
    def module(self) -> Any:
        """`mooncake.store`."""
        if self._module is None:
            raise RuntimeError(self._problem)
        return self._module

    def new_client(self) -> Any:
        """A client that is not set up."""
        return self.module.MooncakeDistributedStore()

    @property
    def version(self) -> str:
        """Name and version of the installed package; empty when it does not say."""
        folder = os.path.dirname(os.path.dirname(self.module.__file__))
        for name in os.listdir(folder):
            if name.startswith("mooncake_transfer_engine") and name.endswith(".dist-info"):
                package, _, version = name[: -len(".dist-info")].partition("-")
                return f"{package.replace('_', '-')} {version}"
        return ""


def replicate_config(wheel: Wheel, command: SidecarPut) -> Any:
    """How a put wants its objects kept."""
    config = wheel.module.ReplicateConfig()
    config.replica_num = command.replica_num
    config.with_hard_pin = command.hard_pin
    if command.soft_pin:
        if hasattr(config, "soft_pin_action"):
            config.soft_pin_action = wheel.module.SoftPinAction.ENABLE
        else:
            config.with_soft_pin = True
    if command.soft_pin_ttl_ms:
        config.soft_pin_ttl_ms = command.soft_pin_ttl_ms
    if len(command.segment_ends):
        config.preferred_segments = _texts(command.segment_ends, command.segments)
    if len(command.group_ends):
        config.group_ids = _texts(command.group_ends, command.groups)
    return config


def _texts(ends: memoryview, joined: memoryview) -> list[str]:
    limits = ends.cast("I").tolist()
    text = bytes(joined)
    return [text[start:end].decode() for start, end in zip([0, *limits], limits)]
