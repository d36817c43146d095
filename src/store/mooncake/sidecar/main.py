"""Mooncake's Python client as a process of its own, driven by mooncake-kv.

    main.py MESSAGES BELL THREADS TYPES

MESSAGES and BELL are the descriptors of the sockets that lead to the other process, THREADS how many commands may run
at a time, TYPES the folder of the generated types. The process ends as soon as the other end is gone, even in the
middle of a call. Its standard output and error carry nothing but Mooncake's log.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback


_PR_SET_PDEATHSIG = 1

# Bytes of a reason for a refusal; the other process takes twice as much.
_LONGEST_REFUSAL = 32 << 10


def end_with_starter() -> None:
    """Has the system end this process with the thread that started it, even while this process is stopped."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(messages: int, bell: int, threads: int) -> None:
    """Answers commands until the other end is gone. Does not return."""
    from sidecar.channel import Channel
    from sidecar.commands import Commands
    from mooncake_kv.vllm_0_33.store import SidecarCommand, SidecarFailure, SidecarReply

    channel = Channel(messages, bell)
    commands = Commands()

    def work() -> None:
        try:
            while answer_message():
                pass
        except BaseException:  # a message that is none: nothing behind it can be trusted
            traceback.print_exc()
            os._exit(1)

    def answer_message() -> bool:
        channel.take_turn()
        frames = channel.receive()
        if frames is None:
            return False
        command = SidecarCommand.from_binary(frames[0])
        if command.alone:
            channel.keep_turn()
        else:
            channel.end_turn()
        failed = False
        try:
            reply = commands.run(frames[1:])
        except BaseException as error:  # whatever it is, the call gets its answer
            text = str(error) or type(error).__name__
            reply = [SidecarFailure(text.encode("utf-8", "replace")[:_LONGEST_REFUSAL]).to_binary()]
            failed = True
        channel.send([SidecarReply(command.request_id, failed).to_binary(), *reply])
        if commands.closed:
            os._exit(0)
        return True

    # More threads than commands at a time, so that memory can be mapped and a sign of life given meanwhile.
    for _ in range(threads + 2):
        threading.Thread(target=work, daemon=True).start()
    channel.listen()
    # No clean-up: closing a Mooncake client takes seconds, and can block.
    os._exit(0)


if __name__ == "__main__":
    end_with_starter()
    # Ctrl-C is for the process that started us; it decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(1, sys.argv[4])
    serve(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
