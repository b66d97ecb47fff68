"""Makes tests_data/blocks/eagle3-*.gguf, random draft blocks of EAGLE-3 for the model tiny_smollm3, and
tests_data/ref/eagle3-*.gguf, what they give. Run by hand, as make_fixtures.py is:

PYTHONPATH=bench:tests_py python tests_py/make_eagle3_fixture.py

`shared` has no embeddings, so that it reads the model's, and guesses 96 of the tokens. `whole` has all, and all norms
that a file may ask for. The reference's tensors, in f32, for a text of N tokens: tokens [N], features [N, 3 d]
(the inputs of three of the model's layers, of `whole` also the last one's output), logits [N - 1, rows] and block_features [N - 1, d] of the block at positions
0 to N - 2. chain_tokens [2] come after the text, and chain_logits [2, rows] are the block's with its own features.
"""

import numpy as np
import torch

import gguf_file
import make_fixtures

MODEL = "tiny_smollm3-f16"
N_TOKENS, N_CHAIN = 9, 2
HEADS, KV_HEADS, HEAD_DIM, FFN, EPS, THETA = 2, 1, 16, 16, 1e-5, 10000.0


def norm(x, w):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS) * w


def rotated(x, first):
    """Heads [n, heads, HEAD_DIM] whose two halves are the pairs' elements, from position `first` on."""
    half = HEAD_DIM // 2
    angles = torch.arange(first, first + len(x))[:, None].double() * THETA ** (-torch.arange(half).double() / half)
    cos, sin = angles.cos().float()[:, None], angles.sin().float()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Block:
    """The weights under the names of the file; q and k as Hugging Face has them."""

    def __init__(self, dim, of_model, n_vocab, n_rows, has_norms):
        def matrix(n_out, n_in):
            return (torch.randn(n_out, n_in) * 1.2 / n_in**0.5).half().float()

        shapes = {
            "fc": (dim, of_model),
            "token_embd": (n_vocab, dim),
            "output": (n_rows, dim),
            "blk.0.attn_q": (HEADS * HEAD_DIM, 2 * dim),
            "blk.0.attn_k": (KV_HEADS * HEAD_DIM, 2 * dim),
            "blk.0.attn_v": (KV_HEADS * HEAD_DIM, 2 * dim),
            "blk.0.attn_output": (dim, HEADS * HEAD_DIM),
            "blk.0.ffn_gate": (FFN, dim),
            "blk.0.ffn_up": (FFN, dim),
            "blk.0.ffn_down": (dim, FFN),
        }
        self.w = {name: matrix(*shape) for name, shape in shapes.items()}
        for name in ("output_norm", "blk.0.attn_norm", "blk.0.attn_norm_2", "blk.0.ffn_norm"):
            self.w[name] = 1 + 0.1 * torch.randn(dim)
        if has_norms:
            self.w["enc.output_norm"] = 1 + 0.1 * torch.randn(of_model)
        self.has_norms = has_norms
        self.k = self.v = torch.zeros(0, KV_HEADS, HEAD_DIM)

    def projected(self, features):
        if self.has_norms:
            features = norm(features, self.w["enc.output_norm"])
        return features @ self.w["fc"].T

    def step(self, tokens, g):
        """Adds cells with tokens and features [n, dim]. Returns their logits and the features that they give."""
        w, n, begin = self.w, len(tokens), len(self.k)
        normed = norm(g, w["blk.0.attn_norm_2"])
        x = torch.cat([norm(w["token_embd"][tokens], w["blk.0.attn_norm"]), normed], dim=-1)
        q, k, v = ((x @ w[f"blk.0.attn_{name}"].T).reshape(n, -1, HEAD_DIM) for name in "qkv")
        self.k, self.v = torch.cat([self.k, rotated(k, begin)]), torch.cat([self.v, v])
        of_head = [h * KV_HEADS // HEADS for h in range(HEADS)]
        scores = torch.einsum("qhd,khd->hqk", rotated(q, begin), self.k[:, of_head]) / HEAD_DIM**0.5
        later = torch.arange(begin + n)[None, :] > torch.arange(begin, begin + n)[:, None]
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        mixed = torch.einsum("hqk,khd->qhd", weights, self.v[:, of_head]).reshape(n, -1)
        h = (normed if self.has_norms else g) + mixed @ w["blk.0.attn_output"].T
        y = norm(h, w["blk.0.ffn_norm"])
        h = (
            h
            + (torch.nn.functional.silu(y @ w["blk.0.ffn_gate"].T) * (y @ w["blk.0.ffn_up"].T)) @ w["blk.0.ffn_down"].T
        )
        last = norm(h, w["output_norm"])
        return last @ w["output"].T, last if self.has_norms else h

    def tensors(self):
        stored = {}
        for name, value in self.w.items():
            values = value.numpy().astype(np.float32)
            if name.endswith(("attn_q", "attn_k")):
                values = make_fixtures.permuted(values, HEADS if name.endswith("q") else KV_HEADS)
            stored[f"{name}.weight"] = values
        return stored


def make(name, model, tokenizer, dim, n_rows, has_norms, layers_key, layers):
    config = model.config
    block = Block(dim, len(layers) * config.hidden_size, config.vocab_size, n_rows or config.vocab_size, has_norms)
    shares_embeddings = dim == config.hidden_size
    if shares_embeddings:
        block.w["token_embd"] = model.model.embed_tokens.weight.float()
    ids = torch.randint(0, 256, (N_TOKENS,))
    hidden = []
    hooks = [layer.register_forward_pre_hook(lambda _, args: hidden.append(args[0][0])) for layer in model.model.layers]
    hooks.append(model.model.norm.register_forward_pre_hook(lambda _, args: hidden.append(args[0][0])))
    model(ids[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    features = torch.cat([hidden[layer] for layer in layers], dim=-1)
    logits, own = block.step(ids[1:], block.projected(features[:-1]))
    chain_tokens, chain_logits, last = torch.randint(0, 256, (N_CHAIN,)), [], own[-1:]
    for token in chain_tokens:
        row, last = block.step(token[None], last)
        chain_logits.append(row[0])

    stored = block.tensors()
    if shares_embeddings:
        del stored["token_embd.weight"]
    if n_rows:
        tokens = np.sort(np.random.default_rng(n_rows).permutation(config.vocab_size)[:n_rows]).astype(np.int64)
        stored["d2t"] = ((n_rows,), gguf_file.I64, tokens.tobytes())
    keys = {
        "block_count": 1,
        "context_length": 1024,
        "embedding_length": dim,
        "feed_forward_length": FFN,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.key_length": HEAD_DIM,
        "attention.value_length": HEAD_DIM,
        "attention.layer_norm_rms_epsilon": EPS,
        "rope.freq_base": THETA,
        "rope.dimension_count": HEAD_DIM,
        layers_key: layers,
        "target_hidden_size": config.hidden_size,
        "norm_before_fc": has_norms,
        "norm_before_residual": has_norms,
        "norm_output": has_norms,
    }
    metadata = {
        "general.architecture": "eagle3",
        "general.name": f"eagle3 fixture, {name}",
        **{f"eagle3.{key}": value for key, value in keys.items()},
        **tokenizer,
    }
    gguf_file.write(make_fixtures.FOLDER / "blocks" / f"eagle3-{name}.gguf", metadata, stored)
    values = {
        "tokens": ids.float(),
        "features": features,
        "logits": logits,
        "block_features": own,
        "chain_tokens": chain_tokens.float(),
        "chain_logits": torch.stack(chain_logits),
    }
    gguf_file.write(
        make_fixtures.FOLDER / "ref" / f"eagle3-{name}.gguf",
        {"general.architecture": "reference"},
        {k: (tuple(v.shape), gguf_file.F32, v.numpy().astype(np.float32).tobytes()) for k, v in values.items()},
    )


def main():
    model, metadata, *_ = make_fixtures.random_model(MODEL)
    tokenizer = {key: value for key, value in metadata.items() if key.startswith("tokenizer.")}
    torch.manual_seed(11)
    with torch.no_grad():
        make("shared", model, tokenizer, model.config.hidden_size, 96, False, "extract_layers", [0, 2, 3])
        make("whole", model, tokenizer, 16, 0, True, "target_layers", [1, 3, 4])


if __name__ == "__main__":
    main()
