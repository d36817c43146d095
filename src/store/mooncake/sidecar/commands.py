"""What the sidecar does for each command, and what it answers."""

from __future__ import annotations

import threading
from array import array
from typing import Any, Callable, Optional

from mooncake_kv.vllm_0_33.store import (
    SidecarClose,
    SidecarCodes,
    SidecarExists,
    SidecarGet,
    SidecarHealth,
    SidecarKeys,
    SidecarPing,
    SidecarPut,
    SidecarRegister,
    SidecarRemove,
    SidecarRemoveAll,
    SidecarRemoveByRegex,
    SidecarReplicas,
    SidecarSetup,
    SidecarSetupReply,
    SidecarSize,
    SidecarSizes,
    SidecarSpans,
    SidecarUnregister,
)

from .keys import unpack_keys
from .regions import Regions
from .replicas import describe_replicas, object_sizes
from .upserts import upsert
from .wheel import Wheel, replicate_config

Frames = list  # of bytes-like objects

INVALID_PARAMS = -600

# The answer of Mooncake's multi-buffer read is a 32-bit number.
_LARGEST_MULTI_BUFFER = (1 << 31) - 1


class Commands:
    """The commands over one Mooncake client. Any number of threads may run them."""

    def __init__(self) -> None:
        self._wheel = Wheel()
        self._client: Optional[Any] = None
        self._regions = Regions()
        self._lifecycle = threading.Lock()
        self.closed = False
        self._handlers: dict[bytes, Callable[[Frames], Frames]] = {
            SidecarSetup.TAG: self._setup,
            SidecarClose.TAG: self._close,
            SidecarRegister.TAG: self._register,
            SidecarUnregister.TAG: self._unregister,
            SidecarPut.TAG: self._put,
            SidecarGet.TAG: self._get,
            SidecarExists.TAG: self._exists,
            SidecarSize.TAG: self._size,
            SidecarReplicas.TAG: self._replicas,
            SidecarRemove.TAG: self._remove,
            SidecarRemoveByRegex.TAG: self._remove_by_regex,
            SidecarRemoveAll.TAG: self._remove_all,
            SidecarHealth.TAG: self._health,
            SidecarPing.TAG: self._ping,
        }

    def run(self, frames: Frames) -> Frames:
        """The frames of the reply. What can't be done raises; Mooncake's result codes are replies."""
        tag = bytes(frames[0]) if frames else b""
        handler = self._handlers.get(tag)
        if handler is None:
            raise ValueError(f"there is no command {tag[:40]!r}")
        return handler(frames)

    # Most calls of a client that is not set up end the process: they must not get through.
    @property
    def _store(self) -> Any:
        if self._client is None:
            raise RuntimeError("the Mooncake client is not set up")
        return self._client

    def _setup(self, frames: Frames) -> Frames:
        command = SidecarSetup.from_binary(frames)
        with self._lifecycle:
            if self._client is not None:
                raise RuntimeError("the Mooncake client is set up already")
            client = self._wheel.new_client()
            tenant = _text(command.tenant_id)
            code = client.setup(
                _text(command.local_hostname),
                _text(command.metadata_server),
                command.global_segment_size,
                command.local_buffer_size,
                _text(command.protocol),
                _text(command.rdma_devices),
                _text(command.master_server_address),
                **({} if tenant in ("", "default") else {"tenant_id": tenant}),
            )
            hostname = ""
            if code == 0:
                hostname = client.get_hostname()
                self._client = client
        return SidecarSetupReply(_int32([code]), hostname.encode(), self._wheel.version.encode()).to_binary()

    def _close(self, frames: Frames) -> Frames:
        SidecarClose.from_binary(frames[0])
        with self._lifecycle:
            client, self._client = self._client, None
            code = 0 if client is None else client.close()
            self.closed = True
        return _codes([code])

    def _register(self, frames: Frames) -> Frames:
        command = SidecarRegister.from_binary(frames)
        store = self._store
        region = self._regions.map(command)
        code = store.register_buffer(region.address, region.size)
        if code != 0:
            self._regions.unmap(command.region)
        return _codes([code])

    def _unregister(self, frames: Frames) -> Frames:
        command = SidecarUnregister.from_binary(frames)
        code = self._store.unregister_buffer(self._regions.find(command.region).address)
        self._regions.unmap(command.region)
        return _codes([code])

    def _keys(self, frames: Frames) -> list[bytes]:
        return unpack_keys(SidecarKeys.from_binary(frames), self._regions)

    def _keys_and_spans(self, frames: Frames) -> tuple[list[bytes], SidecarSpans]:
        keys, rest = _take(SidecarKeys, frames)
        return unpack_keys(keys, self._regions), SidecarSpans.from_binary(rest)

    def _put(self, frames: Frames) -> Frames:
        command, rest = _take(SidecarPut, frames)
        keys, spans = self._keys_and_spans(rest)
        addresses, sizes = self._regions.addresses(spans)
        config = replicate_config(self._wheel, command)
        if len(spans.row_ends) > 0:
            if command.overwrite:
                raise ValueError("Mooncake overwrites out of one span a key only")
            rows = _rows(spans, len(keys), len(addresses))
            pointers = [addresses[start:end] for start, end in rows]
            lengths = [sizes[start:end] for start, end in rows]
            codes = self._store.batch_put_from_multi_buffers(keys, pointers, lengths, config)
        else:
            _check_length(keys, addresses)
            if command.overwrite:
                codes = upsert(self._store, keys, addresses, sizes, config)
            else:
                codes = self._store.batch_put_from(keys, addresses, sizes, config)
        return _codes(_complete(codes, len(keys)))

    def _get(self, frames: Frames) -> Frames:
        keys, spans = self._keys_and_spans(frames[1:])
        addresses, sizes = self._regions.addresses(spans)
        store = self._store
        if len(spans.row_ends) > 0:
            rows = _rows(spans, len(keys), len(addresses))
            pointers = [addresses[start:end] for start, end in rows]
            lengths = [sizes[start:end] for start, end in rows]
            found = store.batch_get_into_multi_buffers(keys, pointers, lengths)
        else:
            _check_length(keys, addresses)
            if max(sizes, default=0) > _LARGEST_MULTI_BUFFER:
                found = store.batch_get_into(keys, addresses, sizes)
            else:
                # This call takes no memory that is larger than the object, as a read of several spans.
                found = store.batch_get_into_multi_buffers(
                    keys, [[address] for address in addresses], [[size] for size in sizes]
                )
        return _sizes(_complete(found, len(keys)))

    def _exists(self, frames: Frames) -> Frames:
        keys = self._keys(frames[1:])
        store = self._store
        return _codes([store.is_exist(keys[0])] if len(keys) == 1 else _complete(store.batch_is_exist(keys), len(keys)))

    def _size(self, frames: Frames) -> Frames:
        return _sizes(object_sizes(self._store, self._keys(frames[1:])))

    def _replicas(self, frames: Frames) -> Frames:
        return describe_replicas(self._store, self._keys(frames[1:])).to_binary()

    def _remove(self, frames: Frames) -> Frames:
        command, rest = _take(SidecarRemove, frames)
        keys = self._keys(rest)
        return _codes(_complete(self._store.batch_remove(keys, command.force), len(keys)))

    def _remove_by_regex(self, frames: Frames) -> Frames:
        command = SidecarRemoveByRegex.from_binary(frames)
        return _sizes([self._store.remove_by_regex(bytes(command.pattern), command.force)])

    def _remove_all(self, frames: Frames) -> Frames:
        command = SidecarRemoveAll.from_binary(frames)
        return _sizes([self._store.remove_all(command.force)])

    def _health(self, _frames: Frames) -> Frames:
        return _codes([self._store.health_check()])

    def _ping(self, _frames: Frames) -> Frames:
        return _codes([])


def _take(kind: Any, frames: Frames) -> tuple[Any, Frames]:
    return kind.from_binary(frames[: kind.FRAMES]), frames[kind.FRAMES :]


def _rows(spans: SidecarSpans, keys: int, count: int) -> list[tuple[int, int]]:
    ends = spans.row_ends.cast("I").tolist()
    if len(ends) != keys or ends[-1] != count or any(a > b for a, b in zip(ends, ends[1:])):
        raise ValueError(f"{len(ends)} rows of {count} spans do not fit {keys} keys")
    return list(zip([0, *ends], ends))


def _check_length(keys: list[bytes], addresses: list[int]) -> None:
    if len(keys) != len(addresses):
        raise ValueError(f"{len(addresses)} spans do not fit {len(keys)} keys")


def _complete(codes: Any, count: int) -> Any:
    """Mooncake answers some misuse with an empty list."""
    return codes if len(codes) == count else [INVALID_PARAMS] * count


def _codes(codes: Any) -> Frames:
    return [SidecarCodes(_int32(codes)).to_binary()]


def _sizes(sizes: Any) -> Frames:
    return [SidecarSizes(array("q", sizes).tobytes()).to_binary()]


def _int32(codes: Any) -> bytes:
    return array("i", codes).tobytes()


def _text(value: Any) -> str:
    return str(value, "utf-8")
