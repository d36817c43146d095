"""Decodes frames and encodes them again. A line in: [MODULE, TYPE, [FRAME AS HEX...]]; a line out: the same frames, or
the text of the refusal."""

import dataclasses
import json
import sys
from importlib import import_module

sys.path.insert(0, sys.argv[1])
frames_module = import_module("mooncake_kv.frames")


def plain(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if type(value) is int else value


for line in sys.stdin:
    module, name, wire = json.loads(line)
    kind = getattr(import_module(f"mooncake_kv.{module}"), name)
    frames = [bytes.fromhex(frame) for frame in wire]
    try:
        value = kind.from_binary(frames[0] if kind.FRAMES == 1 and len(frames) == 1 else frames)
        again = value.to_binary()
        again = [again] if kind.FRAMES == 1 else again
        answer = {"frames": [bytes(frame).hex() for frame in again], "value": plain(value)}
    except frames_module.WireError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)
