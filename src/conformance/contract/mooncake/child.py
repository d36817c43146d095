"""Processes of a cluster. Each ends with the program that started it, whatever becomes of that.

    child.py master BINARY FLAGS...     becomes the master
    child.py owner MASTER BYTES HOST    gives memory to the cluster; prints "ready HOST:PORT" or "failed CODE"
    child.py client MASTER              Mooncake's own Python client, driven by JSON lines over stdin and stdout
"""

import ctypes
import json
import mmap
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def connect(master, segment_bytes=0, host="127.0.0.1"):
    from mooncake.store import MooncakeDistributedStore

    store = MooncakeDistributedStore()
    code = store.setup(host, "P2PHANDSHAKE", segment_bytes, 16 << 20, "tcp", "", master)
    return store, code


def run_owner(master, segment_bytes, host):
    store, code = connect(master, segment_bytes, host)
    print(f"ready {store.get_hostname()}" if code == 0 else f"failed {code}", flush=True)
    # Until the program closes its end, or kills us.
    sys.stdin.read()
    os._exit(0)


def run_client(master):
    # What Mooncake logs must not get between the lines.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    store, code = connect(master)
    memory = mmap.mmap(-1, 64 << 20)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    store.register_buffer(base, len(memory))

    def answer(value):
        lines.write(json.dumps(value) + "\n")
        lines.flush()

    answer(code)
    for line in sys.stdin:
        call, *rest = json.loads(line)
        if call == "write":
            offset, data = rest
            memory[offset : offset + len(data) // 2] = bytes.fromhex(data)
            answer(0)
        elif call == "read":
            offset, size = rest
            answer(memory[offset : offset + size].hex())
        else:
            answer(getattr(store, call)(*[base_addresses(call, i, value, base) for i, value in enumerate(rest)]))
    os._exit(0)


def base_addresses(call, position, value, base):
    """The second argument of calls on memory holds offsets, nested as Mooncake wants its addresses."""
    if position != 1 or not call.endswith(("_from", "_into", "_buffers", "_ranges")):
        return value
    return [[base + x for x in item] if isinstance(item, list) else base + item for item in value]


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    what, *arguments = sys.argv[1:]
    if what == "master":
        os.execv(arguments[0], arguments)
    elif what == "owner":
        run_owner(arguments[0], int(arguments[1]), arguments[2])
    else:
        run_client(arguments[0])
