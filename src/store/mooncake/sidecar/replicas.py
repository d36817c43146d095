"""Sizes and places of objects, out of Mooncake's replica descriptors."""

from __future__ import annotations

from array import array
from typing import Any

from mooncake_kv.vllm_0_33.store import SidecarReplicaList

# Up to this many keys are asked for one by one: that is faster, and the answer has the exact code.
_FEW = 4


def object_sizes(store: Any, keys: list[bytes]) -> list[int]:
    """The size of each object, or Mooncake's code."""
    if len(keys) <= _FEW:
        return [store.get_size(key) for key in keys]
    sizes = []
    for key, replicas in zip(keys, _descriptors(store, keys)):
        complete = [replica for replica in replicas if _status(replica) == "COMPLETE"]
        # What can't be read has a code of its own, which only the call for one key tells.
        sizes.append(_place(complete[0])[1] if complete else store.get_size(key))
    return sizes


def describe_replicas(store: Any, keys: list[bytes]) -> SidecarReplicaList:
    """Every copy of every object."""
    codes = array("i")
    statuses: list[str] = []
    kinds: list[str] = []
    sizes = array("q")
    addresses = array("Q")
    ends = array("I")
    places = b""
    for key, replicas in zip(keys, _descriptors(store, keys)):
        if not replicas:
            # An object without a replica that can be read: the call for one key tells why.
            codes.append(min(store.get_size(key), 0))
            continue
        codes.append(len(replicas))
        for replica in replicas:
            kind, size, address, place = _place(replica)
            statuses.append(_status(replica))
            kinds.append(kind)
            sizes.append(size)
            addresses.append(address)
            places += place.encode("utf-8", "replace")
            ends.append(len(places))
    return SidecarReplicaList(
        codes.tobytes(),
        _lines(statuses),
        _lines(kinds),
        sizes.tobytes(),
        addresses.tobytes(),
        ends.tobytes(),
        places,
    )


def _descriptors(store: Any, keys: list[bytes]) -> list[list[Any]]:
    try:
        texts = [key.decode() for key in keys]
        found = store.batch_get_replica_desc(texts)
    except UnicodeDecodeError:
        # The answer to a batch is a dict by text, which not every key is.
        return [store.get_replica_desc(key) for key in keys]
    return [found.get(text, []) for text in texts]


def _status(replica: Any) -> str:
    return replica.status.name


def _place(replica: Any) -> tuple[str, int, int, str]:
    """What holds a replica, its size, its address (or 0), and where that is."""
    if replica.is_memory_replica():
        buffer = replica.get_memory_descriptor().buffer_descriptor
        return "memory", buffer.size, buffer.buffer_address, buffer.transport_endpoint
    if replica.is_disk_replica():
        disk = replica.get_disk_descriptor()
        return "disk", disk.object_size, 0, disk.file_path
    return "local-disk", 0, 0, ""


def _lines(texts: list[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
