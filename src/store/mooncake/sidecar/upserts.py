"""Overwriting objects without losing the old value when the new one does not fit."""

from __future__ import annotations

import os
from typing import Any

from .replicas import object_sizes

NO_AVAILABLE_HANDLE = -200


def upsert(store: Any, keys: list[bytes], addresses: list[int], sizes: list[int], config: Any) -> list[int]:
    """Mooncake's code for each key.

    Mooncake drops an object before it looks for space of another size. So space is reserved first, under a key of its
    own, and given back right before the upsert: what can't be reserved is refused, and its old value stays. An object
    of the same size is overwritten in place and needs no space; only where none is left it is asked for its size, for
    that takes a lease.
    """
    codes = _reserve(store, keys, addresses, sizes, config)
    full = [index for index, code in enumerate(codes) if code == NO_AVAILABLE_HANDLE]
    for index, held in zip(full, object_sizes(store, [keys[index] for index in full])):
        if held == sizes[index]:
            codes[index] = 0
    wanted = [index for index, code in enumerate(codes) if code == 0]
    if wanted:
        done = store.batch_upsert_from(
            [keys[index] for index in wanted],
            [addresses[index] for index in wanted],
            [sizes[index] for index in wanted],
            config,
        )
        for index, code in zip(wanted, done):
            codes[index] = code
    return codes


def _reserve(store: Any, keys: list[bytes], addresses: list[int], sizes: list[int], config: Any) -> list[int]:
    """Whether there is space for each of the objects, and for all of them together."""
    suffix = b"\0reserved " + os.urandom(8).hex().encode()
    names = [key + suffix for key in keys]
    if hasattr(store, "batch_put_session_start"):
        codes = list(store.batch_put_session_start(names, sizes, config))
        release = store.batch_put_session_revoke
    else:
        codes = list(store.batch_put_from(names, addresses, sizes, config))

        def release(reserved: list[bytes]) -> Any:
            return store.batch_remove(reserved, True)

    reserved = [name for name, code in zip(names, codes) if code == 0]
    if reserved:
        release(reserved)
    return codes
