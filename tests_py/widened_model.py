"""A GGUF file with the matrices of another file as floats: F32, with its very values, or of 16 bits."""

import math
import struct

import numpy as np

import gguf_file
from quant_formats import dequantize

_NAMES = {row.number: name for name, row in gguf_file.TYPES.items()}
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of a value, by type of metadata
_STRING, _LIST = 8, 9
_ALIGNMENT = 32


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def string(self):
        n = self.take("Q")
        self.at += n
        return bytes(self.data[self.at - n : self.at])

    def skip_value(self, kind):
        if kind == _STRING:
            self.string()
        elif kind == _LIST:
            of, n = self.take("IQ")
            if of in (_STRING, _LIST):
                for _ in range(n):
                    self.skip_value(of)
            else:
                self.at += n * _SIZES[of]
        else:
            self.at += _SIZES[kind]


def _bf16(values):
    """Rounded to the nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


_STORED = {"f32": lambda values: values, "f16": lambda values: values.astype(np.float16), "bf16": _bf16}


def write(source, path, matrices="f32"):
    """Of files with the default alignment. Vectors become F32."""

    def stored(shape):
        return matrices if len(shape) > 1 else "f32"

    def size(shape):
        return math.prod(shape) * gguf_file.TYPES[stored(shape)].block_bytes

    reader = _Reader(memoryview(source.read_bytes()))
    magic, version, n_tensors, n_values = reader.take("4sIQQ")
    assert magic == b"GGUF"
    for _ in range(n_values):
        key = reader.string()
        assert key != b"general.alignment"
        reader.skip_value(reader.take("I"))
    head_end = reader.at
    infos = []
    for _ in range(n_tensors):
        name, rank = reader.string(), reader.take("I")
        shape = [reader.take("Q") for _ in range(rank)]
        infos.append((name, shape, *reader.take("IQ")))
    begin = -(-reader.at // _ALIGNMENT) * _ALIGNMENT
    head, offset = bytearray(reader.data[:head_end]), 0
    for name, shape, _, _ in infos:
        head += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", gguf_file.TYPES[stored(shape)].number, offset)
        offset += -(-size(shape) // _ALIGNMENT) * _ALIGNMENT
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % _ALIGNMENT))
        for _, shape, kind, at in infos:
            outer = shape[::-1]
            raw = bytes(reader.data[begin + at : begin + at + gguf_file.n_bytes(outer, kind)])
            values = np.ascontiguousarray(dequantize(_NAMES[kind], raw, outer), np.float32)
            data = _STORED[stored(shape)](values).tobytes()
            file.write(data + b"\0" * (-len(data) % _ALIGNMENT))
