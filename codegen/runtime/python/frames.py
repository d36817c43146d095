"""Writes and reads the parts of binary frames. Standard library only; Python 3.10 and later."""

from __future__ import annotations

from typing import Sequence, Union

Buffer = Union[bytes, bytearray, memoryview]


class WireError(ValueError):
    """A frame, or a value for one, that does not fit its type. The text names the type and the member."""


class FrameWriter:
    """Collects the parts of one frame. Integers are unsigned and big-endian."""

    __slots__ = ("_type", "_parts")

    def __init__(self, type_name: str) -> None:
        self._type = type_name
        self._parts: list[Buffer] = []

    def tag(self, text: bytes) -> None:
        """Constant ASCII text."""
        self._parts.append(text)

    def uint(self, value: int, width: int, member: str) -> None:
        """An integer of so many bytes."""
        if type(value) is not int or not 0 <= value < 1 << (8 * width):
            raise WireError(f"{self._type}.{member}: {value!r} is no integer from 0 to {(1 << (8 * width)) - 1}")
        self._parts.append(value.to_bytes(width, "big"))

    def flag(self, value: bool, member: str) -> None:
        """One byte: 1 for true, 0 for false."""
        if type(value) is not bool:
            raise WireError(f"{self._type}.{member}: {value!r} is neither True nor False")
        self._parts.append(b"\1" if value else b"\0")

    def bytes(self, value: Buffer, member: str) -> None:
        """Bytes as they are."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise WireError(f"{self._type}.{member}: {type(value).__name__} is no bytes")
        self._parts.append(value)

    def finish(self) -> Buffer:
        """The frame. When it has one part, that part itself."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class FrameReader:
    """Takes the parts of one frame. Nothing is copied: bytes are views of the frame."""

    __slots__ = ("_type", "_frame", "_at")

    def __init__(self, type_name: str, frame: Buffer) -> None:
        if not isinstance(frame, (bytes, bytearray, memoryview)):
            raise WireError(f"{type_name}: a frame is bytes, not {type(frame).__name__}")
        self._type = type_name
        self._frame = memoryview(frame)
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return len(self._frame) - self._at

    def tag(self, text: bytes) -> None:
        """Constant ASCII text; anything else is refused."""
        end = self._at + len(text)
        if self._frame[self._at : end] != text:
            raise WireError(f"{self._type}: the frame has no tag {text!r}")
        self._at = end

    def uint(self, width: int, member: str) -> int:
        """An integer of so many bytes."""
        end = self._at + width
        if end > len(self._frame):
            raise WireError(f"{self._type}.{member}: needs {width} bytes, {self.left} are left")
        value = int.from_bytes(self._frame[self._at : end], "big")
        self._at = end
        return value

    def flag(self, member: str) -> bool:
        """One byte that is 1 or 0."""
        value = self.uint(1, member)
        if value > 1:
            raise WireError(f"{self._type}.{member}: {value} is neither 0 nor 1")
        return value == 1

    def rest(self) -> memoryview:
        """All bytes that are left."""
        rest = self._frame[self._at :]
        self._at = len(self._frame)
        return rest

    def end(self) -> None:
        """Ends the frame: nothing may be left."""
        if self._at != len(self._frame):
            raise WireError(f"{self._type}: {self.left} bytes follow the last part")


def frame_readers(type_name: str, frames: Sequence[Buffer], count: int) -> list[FrameReader]:
    """One reader a frame."""
    if len(frames) != count:
        raise WireError(f"{type_name}: expected {count} frames, not {len(frames)}")
    return [FrameReader(type_name, frame) for frame in frames]
