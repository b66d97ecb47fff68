"""Writes small GGUF files for tests: metadata from Python values, tensors from arrays."""

import struct

import numpy as np

F32, F16 = 0, 1


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value) -> bytes:
    """A metadata value: its type number and its bytes."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_string, value))
    if isinstance(value[0], bool):
        return struct.pack("<IIQ", 9, 7, len(value)) + struct.pack(f"<{len(value)}?", *value)
    if isinstance(value[0], float):
        return struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)
    return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def write(path, metadata: dict, tensors: dict) -> None:
    """tensors: name -> array (stored as F16 if it has more than one dimension, else F32), or (shape, GGUF type, bytes)
    of data in any format, the shape outermost first."""
    infos, data = b"", b""
    for name, value in tensors.items():
        if isinstance(value, tuple):
            shape, kind, raw = value
        elif value.ndim > 1:
            shape, kind, raw = value.shape, F16, value.astype(np.float16).tobytes()
        else:
            shape, kind, raw = value.shape, F32, value.astype(np.float32).tobytes()
        infos += _string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        infos += struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items()) + infos
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
