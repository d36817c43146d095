"""A client whose objects live in this process, and which misbehaves when a key says so.

Keys: "sleep N" blocks for N seconds as Mooncake does (other threads go on); "hold N" blocks the whole interpreter;
"die" ends the process; "raise" raises; "noise" writes to standard output and error; "lie HOW" has the sidecar answer
something that can't be true.
"""

import ctypes
import os
import sys
import threading
import time

_objects = {}
_lies = threading.local()


class ReplicateConfig:
    replica_num = 1
    with_soft_pin = False
    with_hard_pin = False


class MooncakeDistributedStore:
    def setup(self, hostname, metadata, segment, local, protocol, devices, master, **_more):
        if os.environ.get("FAKE_SETUP") == "sleep":
            time.sleep(60)
        if "FAKE_LIFE" in os.environ:
            threading.Timer(float(os.environ["FAKE_LIFE"]), os._exit, [4]).start()
        self.hostname = hostname
        return int(os.environ.get("FAKE_SETUP", "0"))

    def get_hostname(self):
        return f"{self.hostname}:1"

    def close(self):
        return 0

    def health_check(self):
        return 0

    def register_buffer(self, address, size):
        return int(os.environ.get("FAKE_REGISTER", "0"))

    def unregister_buffer(self, address):
        return 0

    def is_exist(self, key):
        return self.batch_is_exist([key])[0]

    def batch_is_exist(self, keys):
        for key in keys:
            _behave(key)
        return [int(key in _objects) for key in keys]

    def get_size(self, key):
        _behave(key)
        return len(_objects[key]) if key in _objects else -704

    def batch_put_from(self, keys, addresses, sizes, config):
        for key, address, size in zip(keys, addresses, sizes):
            _behave(key)
            _objects.setdefault(key, ctypes.string_at(address, size))
        return [0] * len(keys)

    def batch_get_into_multi_buffers(self, keys, addresses, sizes):
        results = []
        for key, (address,), (size,) in zip(keys, addresses, sizes):
            _behave(key)
            value = _objects.get(key)
            if value is not None and len(value) == size:
                ctypes.memmove(address, value, size)
                results.append(size)
            else:
                results.append(-704 if value is None else -800)
        return results

    def batch_get_replica_desc(self, keys):
        return {}

    def batch_remove(self, keys, force):
        return [0 if _objects.pop(key, None) is not None else -704 for key in keys]


def _behave(key):
    what, _, argument = key.decode("latin-1").partition(" ")
    if what == "sleep":
        time.sleep(float(argument))
    elif what == "hold":
        # A call through PyDLL keeps the interpreter's lock.
        ctypes.PyDLL(None).usleep(int(float(argument) * 1e6))
    elif what == "die":
        os._exit(3)
    elif what == "lie":
        _lies.next = argument
        _teach_lying()
    elif what == "raise":
        raise RuntimeError("as the key wants it")
    elif what == "noise":
        for descriptor in (1, 2):
            os.write(descriptor, (argument + "\n").encode() * 50_000)
        sys.stdout.flush()


def _teach_lying():
    """From now on the sidecar's next answer in a thread is what that thread's key wanted."""
    from sidecar.channel import Channel

    if hasattr(Channel, "honest_send"):
        return
    Channel.honest_send = Channel.send

    def send(channel, frames):
        lie, _lies.next = getattr(_lies, "next", None), None
        head, *reply = [bytes(frame) for frame in frames]
        if lie == "no frames":
            reply = []
        elif lie == "fewer":
            reply[0] = reply[0][:-4]
        elif lie == "more":
            reply[0] += bytes(4)
        elif lie == "odd bytes":
            reply[0] += bytes(1)
        elif lie == "a code above all":
            reply[0] = (7).to_bytes(4, "little") * (len(reply[0]) // 4)
        elif lie == "a length of 4 GiB":
            channel._socket.sendall(b"\xff\xff\xff\xff" + bytes(1000))
            return
        elif lie == "a frame beyond its message":
            channel._socket.sendall(b"\0\0\0\5\0\0\0\x63x")
            return
        elif lie == "another request":
            head = b"\xff" * 4 + head[4:]
        elif lie == "much more than was asked for":
            reply = [bytes(8 << 20)]
        channel.honest_send([head, *reply])

    Channel.send = send
