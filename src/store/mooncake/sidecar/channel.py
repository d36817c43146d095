"""Messages over the sockets that lead to the other process.

A message is its length in bytes (32-bit, big-endian) and its frames; a frame is its length, the same way, and its
bytes. What a frame holds is the business of the generated types.
"""

from __future__ import annotations

import select
import socket
import threading
from typing import Iterable, Optional

_LENGTH = 4
_CHUNK = 1 << 16


class Channel:
    """One end of the sockets. Any thread may receive and any may send; each message goes to one receiver.

    Receiving is a turn that one thread has at a time. Handing the turn over for every message would wake a second
    thread for each, which costs more than most commands. So the thread that has the turn may keep it while it runs a
    command that came alone; the other process rings the bell when it sends another one meanwhile, and the turn goes
    to a thread that waits for it: the one that began to wait last, for its caches are warm.
    """

    def __init__(self, messages: int, bell: int) -> None:
        self._socket = socket.socket(fileno=messages)
        self._socket.setblocking(True)
        self._bell = socket.socket(fileno=bell)
        self._writing = threading.Lock()
        # Bytes of the next message that came along with the one before. Belongs to the turn.
        self._ahead = b""
        self._mine = threading.local()
        # The rest is guarded by this lock. A thread waits by acquiring a lock of its own for the second time.
        self._state = threading.Lock()
        self._waiting: list[threading.Lock] = []
        self._turn_is_free = True
        # The thread that keeps the turn while it does something else, and a bell that rang while nobody did.
        self._keeper: Optional[int] = None
        self._rung = False

    def take_turn(self) -> None:
        """Waits for the turn, unless it is free, or this thread has kept it and the bell has not rung."""
        with self._state:
            if self._keeper == threading.get_ident():
                self._keeper = None
                return
            if self._turn_is_free:
                self._turn_is_free = False
                return
            place = self._place()
            self._waiting.append(place)
        place.acquire()

    def keep_turn(self) -> None:
        """Keeps the turn for later, until the bell rings."""
        with self._state:
            if self._rung:
                self._rung = False
                self._hand_over()
            else:
                self._keeper = threading.get_ident()

    def end_turn(self) -> None:
        """Gives the turn to whoever waits for it."""
        with self._state:
            self._hand_over()

    def receive(self) -> Optional[list[memoryview]]:
        """The frames of the next message; None when the other end is gone. Needs the turn."""
        message = self._next_message()
        return None if message is None else _split(message)

    def send(self, frames: Iterable[bytes]) -> None:
        """Sends one message."""
        parts: list[bytes] = []
        size = 0
        for frame in frames:
            parts += (len(frame).to_bytes(_LENGTH, "big"), frame)
            size += _LENGTH + len(frame)
        message = b"".join((size.to_bytes(_LENGTH, "big"), *parts))
        with self._writing:
            self._socket.sendall(message)

    def listen(self) -> None:
        """Answers the bell. Returns when the other end is gone, whatever is still to be read."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        poll.register(self._bell, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._socket.fileno() or not self._bell.recv(_CHUNK):
                    return
                self._ring()

    def _ring(self) -> None:
        with self._state:
            if self._keeper is None:
                self._rung = True
            else:
                self._keeper = None
                self._hand_over()

    def _hand_over(self) -> None:
        if self._waiting:
            self._waiting.pop().release()
        else:
            self._turn_is_free = True

    def _place(self) -> threading.Lock:
        """What this thread waits with: a lock that it holds."""
        place = getattr(self._mine, "place", None)
        if place is None:
            place = self._mine.place = threading.Lock()
            place.acquire()
        return place

    def _next_message(self) -> Optional[memoryview]:
        ahead = self._ahead
        while len(ahead) < _LENGTH:
            chunk = self._socket.recv(_CHUNK)
            if not chunk:
                return None
            ahead += chunk
        end = _LENGTH + int.from_bytes(ahead[:_LENGTH], "big")
        if len(ahead) >= end:
            self._ahead = ahead[end:]
            return memoryview(ahead)[_LENGTH:end]
        message = bytearray(end)
        message[: len(ahead)] = ahead
        view = memoryview(message)
        filled = len(ahead)
        while filled < end:
            count = self._socket.recv_into(view[filled:])
            if count == 0:
                return None
            filled += count
        self._ahead = b""
        return view[_LENGTH:]


def _split(message: memoryview) -> list[memoryview]:
    frames = []
    at = 0
    while at < len(message):
        start = at + _LENGTH
        at = start + int.from_bytes(message[at:start], "big")
        if at > len(message):
            raise ValueError("a frame is longer than its message")
        frames.append(message[start:at])
    return frames
