"""The keys of a command as Mooncake takes them: a list of bytes."""

from __future__ import annotations

import struct

from mooncake_kv.vllm_0_33.store import SidecarKeys

from .regions import Regions

# Keys that are taken apart at once; the compiled format is kept by the struct module.
_ROW = 1000


def unpack_keys(keys: SidecarKeys, regions: Regions) -> list[bytes]:
    """Takes the joined keys apart, the fast way when all have one length."""
    count, length = keys.key_count, keys.key_length
    data = regions.bytes(keys.region, keys.offset, keys.size) if keys.size else keys.keys
    if length == 0:
        return _unpack_by_ends(count, keys.key_ends, bytes(data))
    if count * length != len(data):
        raise ValueError(f"{count} keys of {length} bytes are not {len(data)} bytes")
    whole = count - count % _ROW
    unpacked: list[bytes] = []
    if whole:
        for row in struct.iter_unpack(f"{length}s" * _ROW, data[: whole * length]):
            unpacked.extend(row)
    if whole < count:
        unpacked.extend(struct.unpack(f"{length}s" * (count - whole), data[whole * length :]))
    return unpacked


def _unpack_by_ends(count: int, key_ends: memoryview, data: bytes) -> list[bytes]:
    ends = key_ends.cast("I").tolist()
    if len(ends) != count or (count > 0 and ends[-1] != len(data)):
        raise ValueError(f"{len(ends)} ends of {count} keys do not fit {len(data)} bytes")
    start = 0
    unpacked = []
    for end in ends:
        if end < start:
            raise ValueError("the ends of the keys fall")
        unpacked.append(data[start:end])
        start = end
    return unpacked
