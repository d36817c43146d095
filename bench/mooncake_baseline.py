"""The same calls as bench/mooncake.ts, made by Mooncake's own Python client. Driven by lines: NAME ROUNDS."""

import ctypes
import json
import mmap
import os
import sys
import time

os.environ["MC_TCP_MAX_QUEUED_TRANSFERS_PER_PEER"] = "65535"
lines = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

from mooncake.store import MooncakeDistributedStore  # noqa: E402

MIB = 1 << 20
store = MooncakeDistributedStore()
assert store.setup("127.0.0.1", "P2PHANDSHAKE", 0, 16 * MIB, "tcp", "", sys.argv[1]) == 0
memory = mmap.mmap(-1, 192 * MIB)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
ctypes.memset(base, 1, len(memory))
assert store.register_buffer(base, len(memory)) == 0

present = [f"bench-model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@{i:064x}" for i in range(10_000)]
large = [f"py-large-{i}" for i in range(64)]
scattered = [f"py-scattered-{i}" for i in range(256)]
# The 64 segments of an object lie one object apart, as the layers of a block do.
pointers = [[base + (j * 256 + i) * 4096 for j in range(64)] for i in range(256)]
lengths = [[4096] * 64] * 256
large_addresses = [base + i * MIB for i in range(64)]


def once(call):
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def put(keys, call):
    store.batch_remove(keys, True)
    seconds, codes = once(call)
    assert codes == [0] * len(keys), codes[:4]
    return seconds


def get(call, size, count):
    seconds, codes = once(call)
    assert codes == [size] * count, codes[:4]
    return seconds


MEASURES = {
    "exists 1": lambda: once(lambda: store.is_exist(present[0]))[0],
    "exists 10000, as texts": lambda: once(lambda: store.batch_is_exist(present))[0],
    "exists 10000": lambda: once(lambda: store.batch_is_exist(present))[0],
    "put 64 x 1 MiB": lambda: put(large, lambda: store.batch_put_from(large, large_addresses, [MIB] * 64)),
    "get 64 x 1 MiB": lambda: get(lambda: store.batch_get_into(large, large_addresses, [MIB] * 64), MIB, 64),
    "put 256 x 64 x 4 KiB": lambda: put(
        scattered, lambda: store.batch_put_from_multi_buffers(scattered, pointers, lengths)
    ),
    "get 256 x 64 x 4 KiB": lambda: get(
        lambda: store.batch_get_into_multi_buffers(scattered, pointers, lengths), 64 * 4096, 256
    ),
}

for line in sys.stdin:
    name, rounds = json.loads(line)
    lines.write(json.dumps([MEASURES[name]() for _ in range(rounds)]) + "\n")
    lines.flush()
os._exit(0)
