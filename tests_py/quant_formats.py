"""The weight formats of model files, widened to f32 in numpy: written from the formats' definitions, not from kernels/.

Values are d * code, or (d * scale) * code - dmin * minimum, each product and the difference rounded to f32; so a file
that holds these values as F32 must give the same logits to the last bit.
"""

import numpy as np

from gguf_file import TYPES

FLOATS = ("f16", "bf16")
BLOCKS_OF_32 = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")
BLOCKS_OF_256 = ("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs")
FORMATS = FLOATS + BLOCKS_OF_32 + BLOCKS_OF_256

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


_BLOCKS = {name: globals()[f"_{name}"] for name in BLOCKS_OF_32 + BLOCKS_OF_256}


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
