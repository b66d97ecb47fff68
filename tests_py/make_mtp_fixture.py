"""Makes tests_data/models/tiny_qwen35_mtp-f16.gguf, a tiny random Qwen 3.5 with a block for multi-token prediction,
tests_data/blocks/mtp-tiny_qwen35.gguf, the block alone as some publishers have it, and
tests_data/ref/tiny_qwen35_mtp.gguf, what the block gives. Run by hand, as make_fixtures.py is:

PYTHONPATH=bench:tests_py python tests_py/make_mtp_fixture.py

Hugging Face transformers drops such blocks, so the reference puts one together from its parts: the decoder layer, the
norms and the embeddings of the model. The reference's tensors, in f32, for a text of N tokens: tokens [N], features [N, d]
(the model's, behind its last norm), and of the block at positions 0 to N - 2: logits [N - 1, vocabulary] and
block_features [N - 1, d].
"""

import numpy as np
import torch
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen

import gguf_file
import make_fixtures

NAME = "tiny_qwen35_mtp"
N_TOKENS = 24


class Block(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.eh_proj = torch.nn.Linear(2 * width, width, bias=False)
        self.enorm, self.hnorm, self.shared_head_norm = (
            qwen.Qwen3_5RMSNorm(width, config.rms_norm_eps) for _ in range(3)
        )
        self.layer = qwen.Qwen3_5DecoderLayer(config, config.layer_types.index("full_attention"))

    def forward(self, model, ids):
        """Returns the model's features, the block's logits and the block's features."""
        features = model.model(ids, use_cache=False).last_hidden_state
        embedded = model.model.embed_tokens(ids[:, 1:])
        x = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(features[:, :-1])], dim=-1))
        n = x.shape[1]
        positions = torch.arange(n)[None]
        causal = torch.full((n, n), float("-inf")).triu(1)[None, None]
        x = self.layer(
            x, position_embeddings=model.model.rotary_emb(x, positions), attention_mask=causal, position_ids=positions
        )
        x = x[0] if isinstance(x, tuple) else x
        own = self.shared_head_norm(x)
        return features[0], model.lm_head(own)[0], own[0]


def block_tensors(block, layer):
    named = {}
    for name, value in block.state_dict().items():
        values = value.float().numpy()
        if name.startswith("layer."):
            ours = make_fixtures.POST_ATTENTION_NAMES[name.removeprefix("layer.")]
        else:
            ours = f"nextn.{name}"
        named[f"blk.{layer}.{ours}"] = values + 1 if "norm" in name else values
    return named


def main():
    torch.manual_seed(7)
    model, metadata, tensors = make_fixtures.qwen35()
    config = model.config
    config._attn_implementation = "eager"
    model = model.float().eval()
    block = Block(config).float().eval()
    n_layers = config.num_hidden_layers
    with torch.no_grad():
        rng = np.random.default_rng(7)
        make_fixtures.fill(model, None, rng)
        for name, value in block.named_parameters():
            noise = torch.randn_like(value) * (0.1 if "norm" in name else 1.2 / value.shape[-1] ** 0.5)
            value.copy_(noise.half().float() if value.ndim > 1 else noise)
        ids = torch.randint(0, 256, (1, N_TOKENS))
        features, logits, own = block(model, ids)
        ref = {}
        for prompt, (n, n_kept) in make_fixtures.FEWER_KEPT.items():
            run, of_model, gap = make_fixtures.greedy_run(model, n)
            kept = np.arange(len(run), dtype=np.int32)[-n_kept:]
            ref |= {f"{prompt}/prompt": run[:n], f"{prompt}/greedy": run[n:], f"{prompt}/pos": kept}
            ref[f"{prompt}/hf_logits"] = of_model[kept]
            print(f"{prompt}: smallest gap {gap:.3f}")
    metadata |= {"qwen35.block_count": n_layers + 1, "qwen35.nextn_predict_layers": 1}
    stored = tensors() | block_tensors(block, n_layers)
    stored = {
        name: value if isinstance(value, tuple) or value.ndim > 1 else np.ascontiguousarray(value, np.float32)
        for name, value in stored.items()
    }
    gguf_file.write(make_fixtures.FOLDER / "models" / f"{NAME}-f16.gguf", metadata, stored)
    alone = {k: v for k, v in stored.items() if k.startswith(("token_embd", "output_norm", f"blk.{n_layers}."))}
    (make_fixtures.FOLDER / "blocks").mkdir(exist_ok=True)
    gguf_file.write(make_fixtures.FOLDER / "blocks" / "mtp-tiny_qwen35.gguf", metadata, alone)
    np.savez_compressed(make_fixtures.FOLDER / "ref" / f"{NAME}.npz", **ref)
    values = {"tokens": ids[0].float(), "features": features, "logits": logits, "block_features": own}
    gguf_file.write(
        make_fixtures.FOLDER / "ref" / f"{NAME}.gguf",
        {"general.architecture": "reference"},
        {k: (tuple(v.shape), gguf_file.F32, v.numpy().astype(np.float32).tobytes()) for k, v in values.items()},
    )


if __name__ == "__main__":
    main()
