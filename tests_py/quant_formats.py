"""The weight formats of model files, widened to f32 in numpy: written from the formats' definitions, not from kernels/.
Only the numbers of the grids are read from there; test_format_fixtures.py compares them with another program's.

Values are d * code, or (d * scale) * code - dmin * minimum, each product and the difference rounded to f32; so a file
that holds these values as F32 must give the same logits to the last bit.
"""

import pathlib
import re

import numpy as np

from gguf_file import TYPES

FLOATS = ("f16", "bf16")
BLOCKS_OF_32 = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")
BLOCKS_OF_64 = ("nvfp4",)
OF_GRIDS = ("iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_s", "iq1_m")
BLOCKS_OF_256 = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "tq2_0", "tq1_0", *OF_GRIDS)
FORMATS = FLOATS + BLOCKS_OF_32 + BLOCKS_OF_64 + BLOCKS_OF_256

IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def _half(raw, first):
    """An f16 field as [blocks, 1] of f32."""
    return np.ascontiguousarray(raw[:, first : first + 2]).view("<f2").astype(np.float32)


def _nibbles(raw):
    """Low nibbles, then high nibbles, of the last axis."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def _bits(raw):
    """[blocks, bytes] -> [blocks, 8 * bytes], the lowest bit of the first byte first."""
    return np.unpackbits(raw, axis=-1, bitorder="little")


def _spread(per_sub_block, n):
    """A value a sub-block -> a value an element of n-element sub-blocks."""
    return np.repeat(per_sub_block.astype(np.float32), n, axis=-1)


def _q4_0(raw):
    return _half(raw, 0) * (_nibbles(raw[:, 2:]).astype(np.float32) - 8)


def _q4_1(raw):
    return _half(raw, 0) * _nibbles(raw[:, 4:]).astype(np.float32) + _half(raw, 2)


def _q5_0(raw):
    codes = _nibbles(raw[:, 6:]) + 16 * _bits(raw[:, 2:6])
    return _half(raw, 0) * (codes.astype(np.float32) - 16)


def _q5_1(raw):
    codes = _nibbles(raw[:, 8:]) + 16 * _bits(raw[:, 4:8])
    return _half(raw, 0) * codes.astype(np.float32) + _half(raw, 2)


def _q8_0(raw):
    return _half(raw, 0) * raw[:, 2:].view(np.int8).astype(np.float32)


def _iq4_nl(raw):
    return _half(raw, 0) * IQ4[_nibbles(raw[:, 2:])]


def _mxfp4(raw):
    """An 8-bit exponent of bias 127; floats of one sign, two exponent and one mantissa bit."""
    codes = _nibbles(raw[:, 1:])
    values = np.where(codes & 8, -FP4[codes & 7], FP4[codes & 7])
    # Halved and doubled again, since 2^128 is no f32.
    half = np.ldexp(np.float64(0.5), raw[:, :1].astype(np.int32) - 127)
    return (half * (2 * values.astype(np.float64))).astype(np.float32)


def _two_bits(raw):
    """64 bytes -> 256 codes: a half of 128 has 32 bytes, whose bit pairs, from the lowest, are its quarters."""
    halves = raw.reshape(-1, 2, 1, 32)
    return ((halves >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3).reshape(-1, 256)


def _q2_k(raw):
    scales, d, dmin = raw[:, :16], _half(raw, 80), _half(raw, 82)
    codes = _two_bits(raw[:, 16:80]).astype(np.float32)
    return _spread(d * (scales & 15), 16) * codes - _spread(dmin * (scales >> 4), 16)


def _q3_k(raw):
    # Bit j of mask byte i belongs to element 32 j + i.
    upper = np.swapaxes(_bits(raw[:, :32]).reshape(-1, 32, 8), 1, 2).reshape(-1, 256)
    codes = _two_bits(raw[:, 32:96]).astype(np.float32) + 4 * upper - 4
    packed = raw[:, 96:108]
    low = _nibbles(packed[:, :8])
    high = np.concatenate([(packed[:, 8:] >> shift) & 3 for shift in (0, 2, 4, 6)], axis=1)
    scales = (low + 16 * high).astype(np.float32) - 32
    return _spread(_half(raw, 108) * scales, 16) * codes


def _six_bit_pairs(packed):
    """12 bytes -> 8 scales and 8 minimums."""
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (rest & 15) + 16 * (first >> 6)], axis=1)
    minimums = np.concatenate([second & 63, (rest >> 4) + 16 * (second >> 6)], axis=1)
    return scales, minimums


def _q4_k(raw):
    scales, minimums = _six_bit_pairs(raw[:, 4:16])
    codes = _nibbles(raw[:, 16:].reshape(-1, 4, 32)).reshape(-1, 256).astype(np.float32)
    return _spread(_half(raw, 0) * scales, 32) * codes - _spread(_half(raw, 2) * minimums, 32)


def _q5_k(raw):
    scales, minimums = _six_bit_pairs(raw[:, 4:16])
    # Bit j of byte i belongs to element 32 j + i.
    fifth = np.swapaxes(_bits(raw[:, 16:48]).reshape(-1, 32, 8), 1, 2).reshape(-1, 256)
    codes = (_nibbles(raw[:, 48:].reshape(-1, 4, 32)).reshape(-1, 256) + 16 * fifth).astype(np.float32)
    return _spread(_half(raw, 0) * scales, 32) * codes - _spread(_half(raw, 2) * minimums, 32)


def _q6_k(raw):
    low = _nibbles(raw[:, :128].reshape(-1, 2, 64)).reshape(-1, 256)
    codes = (low + 16 * _two_bits(raw[:, 128:192])).astype(np.float32) - 32
    return _spread(_half(raw, 208) * raw[:, 192:208].view(np.int8), 16) * codes


def _iq4_xs(raw):
    pairs = np.ascontiguousarray(raw[:, 2:4]).view("<u2")
    high = (pairs >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    low = np.stack([raw[:, 4:8] & 15, raw[:, 4:8] >> 4], axis=-1).reshape(-1, 8)
    scales = (low + 16 * high).astype(np.float32) - 32
    return _spread(_half(raw, 0) * scales, 32) * IQ4[_nibbles(raw[:, 8:].reshape(-1, 8, 16)).reshape(-1, 256)]


def _nvfp4(raw):
    """Scales are unsigned floats of 4 bits of exponent and 3 of mantissa, halved here, because FP4 is doubled."""
    exponent, mantissa = (raw[:, :4] >> 3 & 15).astype(np.int32), (raw[:, :4] & 7).astype(np.float64)
    scales = np.where(exponent == 0, np.ldexp(mantissa, -10), np.ldexp(8 + mantissa, exponent - 11))
    scales = np.where(raw[:, :4] == 0x7F, 0, scales).astype(np.float32)
    codes = _nibbles(raw[:, 4:].reshape(-1, 4, 8)).reshape(-1, 64)
    return _spread(scales, 16) * (2 * np.where(codes & 8, -FP4[codes & 7], FP4[codes & 7]))


def _grid(name, bits, values):
    """Points as [points, values], packed in the source as numbers with `bits` per value, lowest first."""
    source = pathlib.Path(__file__).parents[1] / "kernels" / "cpu" / "quant" / "grids.cpp"
    numbers = re.search(rf"\b{name}\[\] = \{{([^}}]*)\}}", source.read_text())[1].replace(",", " ").split()
    packed = np.array(numbers, np.int32)[:, None]
    return np.array(values, np.float32)[packed >> bits * np.arange(8 if bits == 2 else 4) & (1 << bits) - 1]


_IQ2_VALUES, _IQ1_VALUES = (8, 25, 43), (-1, 0, 1)
GRIDS = {
    "iq2_xxs": _grid("kIq2Xxs", 2, _IQ2_VALUES),
    "iq2_xs": _grid("kIq2Xs", 2, _IQ2_VALUES),
    "iq2_s": _grid("kIq2S", 2, _IQ2_VALUES),
    "iq3_xxs": _grid("kIq3Xxs", 3, (4, 12, 20, 28, 36, 44, 52, 62)),
    "iq3_s": _grid("kIq3S", 3, range(1, 16, 2)),
    "iq1": _grid("kIq1", 2, _IQ1_VALUES),
}


def _integers(raw, first, n, kind):
    """n little-endian integers from byte `first` on."""
    return np.ascontiguousarray(raw[:, first : first + n * np.dtype(kind).itemsize]).view(kind).astype(np.int64)


def _signs_of_seven(stored):
    """[..., points] of 7 bits -> [..., points, 8] of 1 and -1; the number of -1 is even."""
    bits = stored[..., None] >> np.arange(7) & 1
    return 1 - 2 * np.concatenate([bits, bits.sum(-1, keepdims=True) % 2], axis=-1).astype(np.float32)


def _signs(raw):
    return 1 - 2 * _bits(raw).astype(np.float32)


def _odd(stored):
    return (2 * stored + 1).astype(np.float32)


def _nibble_scales(raw):
    return _odd(np.stack([raw & 15, raw >> 4], axis=-1).reshape(len(raw), -1))


def _of_grid(d, scales, values):
    values = values.reshape(len(d), 256).astype(np.float32)
    return _spread(d * scales, 256 // scales.shape[1]) * values


def _iq2_xxs(raw):
    words = _integers(raw, 2, 16, "<u4").reshape(-1, 8, 2)
    points = GRIDS["iq2_xxs"][words[..., :1] >> 8 * np.arange(4) & 255]
    signs = _signs_of_seven(words[..., 1:] >> 7 * np.arange(4) & 127)
    return _of_grid(_half(raw, 0) / 8, _odd(words[..., 1] >> 28), points * signs)


def _iq2_xs(raw):
    words = _integers(raw, 2, 32, "<u2")
    points = GRIDS["iq2_xs"][words & 511] * _signs_of_seven(words >> 9)
    return _of_grid(_half(raw, 0) / 8, _nibble_scales(raw[:, 66:]), points)


def _iq2_s(raw):
    high = (raw[:, 66:74, None] >> np.array([0, 2, 4, 6]) & 3).reshape(-1, 32)
    points = GRIDS["iq2_s"][raw[:, 2:34] + 256 * high.astype(np.int64)].reshape(-1, 256) * _signs(raw[:, 34:66])
    return _of_grid(_half(raw, 0) / 8, _nibble_scales(raw[:, 74:]), points)


def _iq3_xxs(raw):
    words = _integers(raw, 66, 8, "<u4")
    points = GRIDS["iq3_xxs"][raw[:, 2:66]].reshape(-1, 8, 4, 8)
    return _of_grid(
        _half(raw, 0) / 4, _odd(words >> 28), points * _signs_of_seven(words[..., None] >> 7 * np.arange(4) & 127)
    )


def _iq3_s(raw):
    points = GRIDS["iq3_s"][raw[:, 2:66] + 256 * _bits(raw[:, 66:74]).astype(np.int64)].reshape(-1, 256)
    return _of_grid(_half(raw, 0), _nibble_scales(raw[:, 106:]), points * _signs(raw[:, 74:106]))


def _iq1_s(raw):
    words = _integers(raw, 34, 8, "<u2")
    high = (words[..., None] >> 3 * np.arange(4) & 7).reshape(-1, 32)
    shift = np.where(words >> 15, -1, 1)[..., None]
    values = 8 * GRIDS["iq1"][raw[:, 2:34] + 256 * high].reshape(-1, 8, 32) + shift
    return _of_grid(_half(raw, 0) / 8, _odd(words >> 12 & 7), values)


def _iq1_m(raw):
    words = _integers(raw, 48, 4, "<u2")
    d = (words >> 12 << 4 * np.arange(4)).sum(1).astype(np.uint16).view(np.float16)[:, None].astype(np.float32)
    nibbles = np.stack([raw[:, 32:48] & 15, raw[:, 32:48] >> 4], axis=-1).reshape(-1, 32).astype(np.int64)
    shift = np.where(nibbles & 8, -1, 1)[..., None]
    values = 8 * GRIDS["iq1"][raw[:, :32] + 256 * (nibbles & 7)] + shift
    return _of_grid(d / 8, _odd((words[..., None] >> 3 * np.arange(4) & 7).reshape(-1, 16)), values)


def _digits(raw, n):
    """The first n digits of base 3 of each byte: all first digits, then all second ones."""
    powers = 3 ** np.arange(n, dtype=np.int64)[:, None]
    return ((raw[:, None, :] * powers & 255) * 3 >> 8).reshape(len(raw), -1)


def _tq1_0(raw):
    digits = np.concatenate([_digits(raw[:, :32], 5), _digits(raw[:, 32:48], 5), _digits(raw[:, 48:52], 4)], axis=1)
    return _half(raw, 52) * (digits - 1).astype(np.float32)


def _tq2_0(raw):
    return _half(raw, 64) * (_two_bits(raw[:, :64]).astype(np.float32) - 1)


_BLOCKS = {name: globals()[f"_{name}"] for name in BLOCKS_OF_32 + BLOCKS_OF_64 + BLOCKS_OF_256}


def dequantize(kind: str, data: bytes, shape) -> np.ndarray:
    if kind == "f32":
        return np.frombuffer(data, "<f4").reshape(shape)
    if kind == "f16":
        return np.frombuffer(data, "<f2").astype(np.float32).reshape(shape)
    if kind == "bf16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    raw = np.frombuffer(data, np.uint8).reshape(-1, TYPES[kind].block_bytes)
    values = _BLOCKS[kind](raw)
    assert values.dtype == np.float32 and values.shape[1] == TYPES[kind].block_elems
    return values.reshape(shape)
