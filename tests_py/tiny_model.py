"""Writes a GGUF file of random weights that runs in milliseconds: two llama layers, a byte-level vocabulary."""

import numpy as np

import gguf_file

VOCAB, DIM, FFN, HEADS, KV_HEADS, HEAD_DIM, LAYERS, CONTEXT = 448, 64, 96, 4, 2, 16, 2, 512


def _byte_alphabet() -> list[str]:
    """The printable stand-ins of the 256 bytes in byte-level BPE vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(b) if b in printable else chr(next(spare)) for b in range(256)]


def vocabulary(signs=()):
    """signs: special tokens besides."""
    alphabet = _byte_alphabet()
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), (alphabet[32], "the")]
    tokens = alphabet + [a + b for a, b in merges]
    types = [1] * len(tokens)
    specials = ["<|start|>", "<|end|>", *signs]
    tokens += specials
    types += [3] * len(specials)
    while len(tokens) < VOCAB:
        tokens.append(f"<unused{len(tokens)}>")
        types.append(1)
    return tokens, types, [f"{a} {b}" for a, b in merges]


def tokenizer_metadata(signs=()) -> dict:
    tokens, types, merges = vocabulary(signs)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": tokens.index("<|start|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|end|>"),
        "tokenizer.ggml.add_bos_token": False,
    }


CHAT_TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant: {% endif %}"
)


def write(
    path,
    seed: int = 0,
    change=None,
    template: str | None = CHAT_TEMPLATE,
    context: int = CONTEXT,
    pooling: int = 0,
    signs=(),
    keys=None,
    more=None,
) -> None:
    """change(name, values) -> values: what the file holds instead, as f32; without it matrices are f16.

    keys: further metadata, or other values; None leaves a key out. more: further tensors."""
    rng = np.random.default_rng(seed)
    metadata = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "llama.block_count": LAYERS,
        "llama.context_length": context,
        "llama.embedding_length": DIM,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.attention.key_length": HEAD_DIM,
        "llama.attention.value_length": HEAD_DIM,
        "llama.rope.dimension_count": HEAD_DIM,
        "llama.rope.freq_base": 10000.0,
        "llama.vocab_size": VOCAB,
        **tokenizer_metadata(signs),
    }
    if pooling:
        metadata["llama.pooling_type"] = pooling
    if template is not None:
        metadata["tokenizer.chat_template"] = template
    metadata = {key: value for key, value in {**metadata, **(keys or {})}.items() if value is not None}
    shapes = {"token_embd.weight": (VOCAB, DIM), "output_norm.weight": (DIM,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (DIM,),
            f"blk.{layer}.attn_q.weight": (HEADS * HEAD_DIM, DIM),
            f"blk.{layer}.attn_k.weight": (KV_HEADS * HEAD_DIM, DIM),
            f"blk.{layer}.attn_v.weight": (KV_HEADS * HEAD_DIM, DIM),
            f"blk.{layer}.attn_output.weight": (DIM, HEADS * HEAD_DIM),
            f"blk.{layer}.ffn_norm.weight": (DIM,),
            f"blk.{layer}.ffn_gate.weight": (FFN, DIM),
            f"blk.{layer}.ffn_up.weight": (FFN, DIM),
            f"blk.{layer}.ffn_down.weight": (DIM, FFN),
        }
    tensors = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape).astype(np.float32) * (0.25 if len(shape) == 2 else 0.1)
        tensors[name] = values + 1 if len(shape) == 1 else values
        if change is not None:
            changed = np.float32(change(name, tensors[name].astype(np.float16).astype(np.float32)))
            tensors[name] = (changed.shape, gguf_file.F32, changed.tobytes())
    gguf_file.write(path, metadata, {**tensors, **(more or {})})
