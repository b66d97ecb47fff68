"""Writes a GGUF file of a model that recites: each token of a script has one successor, so that what the model will
say is known, while all of the engine (template, tokens, steps, sampling, parsing) runs as with any other model."""

import re

import numpy as np

import gguf_file
from tiny_model import _byte_alphabet

DIM, CONTEXT = 256, 16384

# Qwen's way of writing tools, calls and results; the prompt ends with the token that begins the script {choose}.
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n"
    "{%- if messages[0].role == 'system' %}{{ messages[0].content ~ '\n\n' }}{% endif %}"
    "# Tools <tools>{% for t in tools %}\n{{ t | tojson }}{% endfor %}\n</tools>\n"
    'Call: <tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call><|im_end|>\n'
    "{%- elif messages[0].role == 'system' %}<|im_start|>system\n{{ messages[0].content }}<|im_end|>\n{% endif %}"
    "{%- for m in messages %}"
    "{%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{%- elif m.role == 'assistant' %}<|im_start|>assistant\n"
    "{%- if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
    "{%- for c in m.tool_calls or [] %}"
    '\n<tool_call>\n{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>'
    "{%- endfor %}<|im_end|>\n"
    "{%- elif m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n"
    "{%- endif %}{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n<|script:{{ CHOOSE }}|>{% endif %}"
)
# The number of tools' results so far.
BY_RESULTS = "messages | selectattr('role', 'equalto', 'tool') | list | length"


def _pieces(script: str, used: set[str]) -> list[str]:
    """The script in pieces of at least three characters, none of which is in `used`."""
    pieces, at = [], 0
    while at < len(script):
        n = 3
        while at + n < len(script) and (script[at : at + n] in used or len(script) - at - n < 3):
            n += 1
        piece = script[at : at + n]
        while piece in used:  # the end of the script: it takes in what is before it
            used.discard(pieces[-1])
            piece = pieces.pop() + piece
        used.add(piece)
        pieces.append(piece)
        at += n
    return pieces


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def write(
    path, scripts: dict, choose: str = BY_RESULTS, template: str = TEMPLATE, context: int = CONTEXT, marks: tuple = ()
) -> None:
    """scripts: texts by name, which the Jinja expression `choose` picks by the conversation. marks: texts that are
    control tokens; each may stand in one script, once."""
    tokens = _byte_alphabet()
    types = [1] * len(tokens)
    for special in ("<|im_start|>", "<|im_end|>", "<|bos|>", *marks):
        tokens.append(special)
        types.append(3)
    end = tokens.index("<|im_end|>")
    # Markers stay text: a marker that is a token counts only as that token, and each token here has one successor.
    follows, used = {}, {"<tool_call>", "</tool_call>", "<think>", "</think>"}
    for name, script in scripts.items():
        tokens.append(f"<|script:{name}|>")
        types.append(4)  # user-defined: its name comes from the conversation, in which no control token is matched
        last = len(tokens) - 1
        cut = f"({'|'.join(map(re.escape, marks))})" if marks else "$^"
        for part in filter(None, re.split(cut, script)):
            for piece in [part] if part in marks else _pieces(part, used):
                if part not in marks:
                    tokens.append(piece)
                    types.append(4)
                at = tokens.index(piece)
                follows[last] = last = at
        follows[last] = end
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((len(tokens), DIM)).astype(np.float32)
    embedding /= np.sqrt((embedding**2).mean(axis=1, keepdims=True))
    output = np.zeros_like(embedding)
    for token, successor in follows.items():
        output[successor] += embedding[token] * 0.25
    metadata = {
        "general.architecture": "llama",
        "general.name": "scripted",
        "llama.block_count": 1,
        "llama.context_length": context,
        "llama.embedding_length": DIM,
        "llama.feed_forward_length": 32,
        "llama.attention.head_count": 1,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.attention.key_length": 64,
        "llama.attention.value_length": 64,
        "llama.rope.dimension_count": 64,
        "llama.rope.freq_base": 10000.0,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": ["t h"],
        "tokenizer.ggml.bos_token_id": tokens.index("<|bos|>"),
        "tokenizer.ggml.eos_token_id": end,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": template.replace("CHOOSE", choose),
    }
    shapes = {
        "attn_norm": (DIM,),
        "attn_q": (64, DIM),
        "attn_k": (64, DIM),
        "attn_v": (64, DIM),
        "attn_output": (DIM, 64),
        "ffn_norm": (DIM,),
        "ffn_gate": (32, DIM),
        "ffn_up": (32, DIM),
        "ffn_down": (DIM, 32),
    }
    tensors = {
        "token_embd.weight": embedding,
        "output_norm.weight": np.ones(DIM, np.float32),
        "output.weight": output,
    }
    # The layer adds nothing to what it gets.
    for name, shape in shapes.items():
        tensors[f"blk.0.{name}.weight"] = np.ones(shape, np.float32) if len(shape) == 1 else np.zeros(shape, np.float32)
    gguf_file.write(
        path, metadata, {name: (values.shape, gguf_file.F32, values.tobytes()) for name, values in tensors.items()}
    )
