"""Writes GGUF files: metadata from Python values, tensors from arrays or from streams of bytes in any format."""

import math
import os
import pathlib
import struct
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Type(NamedTuple):
    number: int
    block_elems: int
    block_bytes: int


TYPES = {
    "f32": Type(0, 1, 4),
    "f16": Type(1, 1, 2),
    "bf16": Type(30, 1, 2),
    "q4_0": Type(2, 32, 18),
    "q4_1": Type(3, 32, 20),
    "q5_0": Type(6, 32, 22),
    "q5_1": Type(7, 32, 24),
    "q8_0": Type(8, 32, 34),
    "iq4_nl": Type(20, 32, 18),
    "mxfp4": Type(39, 32, 17),
    "q2_k": Type(10, 256, 84),
    "q3_k": Type(11, 256, 110),
    "q4_k": Type(12, 256, 144),
    "q5_k": Type(13, 256, 176),
    "q6_k": Type(14, 256, 210),
    "iq4_xs": Type(23, 256, 136),
    "nvfp4": Type(40, 64, 36),
    "iq3_s": Type(21, 256, 110),
    "iq3_xxs": Type(18, 256, 98),
    "iq2_s": Type(22, 256, 82),
    "iq2_xs": Type(17, 256, 74),
    "iq2_xxs": Type(16, 256, 66),
    "tq2_0": Type(35, 256, 66),
    "tq1_0": Type(34, 256, 54),
    "iq1_s": Type(19, 256, 50),
    "iq1_m": Type(29, 256, 56),
}
_BY_NUMBER = {row.number: row for row in TYPES.values()}
F32, F16 = TYPES["f32"].number, TYPES["f16"].number
I64 = 27  # no type of weights: tables of token ids have it
_ALIGNMENT = 32


def n_bytes(shape, number: int) -> int:
    row = _BY_NUMBER[number]
    if shape[-1] % row.block_elems:
        raise ValueError(f"[gguf_file] type {number} needs rows of a multiple of {row.block_elems}, {shape[-1]} there")
    return math.prod(shape) // row.block_elems * row.block_bytes


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


def _as_stored(value):
    """(shape, GGUF type, size, chunks of bytes) of an entry of write's tensors."""
    if not isinstance(value, tuple):
        kind = F16 if value.ndim > 1 else F32
        value = (value.shape, kind, value.astype(np.float16 if kind == F16 else np.float32).tobytes())
    shape, kind, data = value
    if isinstance(data, bytes):
        return shape, kind, len(data), [data]
    return shape, kind, n_bytes(shape, kind), data


def write(path, metadata: dict, tensors: dict, on_progress=None) -> None:
    """tensors: name -> array (stored as F16 if it has more than one dimension, else F32), or (shape, GGUF type, data)
    of any format, the shape outermost first; data is bytes, or an iterable of them that is read once, as the file is
    written. on_progress(bytes written, bytes in all). The file has its name only once it is whole."""
    stored: dict[str, tuple[tuple, int, int, Iterable]] = {name: _as_stored(value) for name, value in tensors.items()}
    infos, end = b"", 0
    for name, (shape, kind, size, _) in stored.items():
        infos += _string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        infos += struct.pack("<IQ", kind, end)
        end += size + -size % _ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items()) + infos
    head += b"\0" * (-len(head) % _ALIGNMENT)
    part = pathlib.Path(f"{path}.part")
    try:
        with open(part, "wb") as file:
            file.write(head)
            for name, (_, _, size, chunks) in stored.items():
                start = file.tell()
                for chunk in chunks:
                    file.write(chunk)
                    if on_progress:
                        on_progress(file.tell(), len(head) + end)
                if file.tell() - start != size:
                    raise ValueError(f"[gguf_file] {name}: {size} bytes wanted, {file.tell() - start} given")
                file.write(b"\0" * (-size % _ALIGNMENT))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
