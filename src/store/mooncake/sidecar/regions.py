"""Memory of the other process, mapped into this one."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from operator import add
from typing import Optional

from mooncake_kv.vllm_0_33.store import SidecarRegister, SidecarSpans


class Region:
    """One mapping. Its address means something in this process only."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._map: Optional[mmap.mmap] = mmap.mmap(descriptor, size, mmap.MAP_SHARED)
        self._first: Optional[ctypes.c_char] = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._first)
        self.size = size

    def bytes(self, offset: int, size: int) -> memoryview:
        """A view of a part. It must be gone before the memory is unmapped."""
        return memoryview(self._map)[offset : offset + size]

    def close(self) -> None:
        """Unmaps the memory."""
        self._first = None
        if self._map is not None:
            self._map.close()
            self._map = None


class Regions:
    """The regions by the numbers that commands call them by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._regions: dict[int, Region] = {}

    def map(self, command: SidecarRegister) -> Region:
        """Maps what a command describes, after making sure that the descriptor still is what was meant."""
        descriptor = _open(command)
        try:
            found = os.fstat(descriptor)
            if found.st_ino != command.inode or found.st_size < command.size:
                raise ValueError(
                    f"descriptor {command.descriptor} is inode {found.st_ino} of {found.st_size} bytes, "
                    f"not inode {command.inode} of {command.size} bytes"
                )
            region = Region(descriptor, command.size)
        finally:
            os.close(descriptor)
        with self._lock:
            if command.region in self._regions:
                region.close()
                raise ValueError(f"region {command.region} exists already")
            self._regions[command.region] = region
        return region

    def find(self, number: int) -> Region:
        """The region of a number."""
        region = self._regions.get(number)
        if region is None:
            raise ValueError(f"there is no region {number}")
        return region

    def bytes(self, number: int, offset: int, size: int) -> memoryview:
        """A part of a region."""
        region = self.find(number)
        if offset + size > region.size:
            raise ValueError(f"{size} bytes at {offset} lie outside region {number} of {region.size} bytes")
        return region.bytes(offset, size)

    def unmap(self, number: int) -> None:
        """Forgets a region. No call uses it any more: the other process sees to that."""
        with self._lock:
            self._regions.pop(number).close()

    def addresses(self, spans: SidecarSpans) -> tuple[list[int], list[int]]:
        """The addresses and sizes of spans, each of which lies inside its region."""
        numbers = spans.regions.cast("I").tolist()
        offsets = spans.offsets.cast("Q").tolist()
        sizes = spans.sizes.cast("Q").tolist()
        if len(offsets) != len(sizes) or len(numbers) not in (1, len(sizes)):
            raise ValueError(f"{len(numbers)} regions, {len(offsets)} offsets and {len(sizes)} sizes do not fit together")
        if not sizes:
            return [], []
        if len(numbers) == 1:
            region = self.find(numbers[0])
            if max(map(add, offsets, sizes)) > region.size:
                raise ValueError(f"a span lies outside region {numbers[0]} of {region.size} bytes")
            base = region.address
            return [base + offset for offset in offsets], sizes
        addresses = []
        for number, offset, size in zip(numbers, offsets, sizes):
            region = self.find(number)
            if offset + size > region.size:
                raise ValueError(f"a span lies outside region {number} of {region.size} bytes")
            addresses.append(region.address + offset)
        return addresses, sizes


def _open(command: SidecarRegister) -> int:
    if command.owner == 0:
        # Inherited: this descriptor was made for us, and its mapping outlives it.
        return command.descriptor
    return os.open(f"/proc/{command.owner}/fd/{command.descriptor}", os.O_RDWR | os.O_CLOEXEC)
