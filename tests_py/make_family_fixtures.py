"""Makes tests_py/data/families: tiny random models with the logits that Hugging Face transformers gives for them.

For what the project runs and no other fixture covers. Run by hand, with torch and transformers installed; the tests need
neither: PYTHONPATH=bench python tests_py/make_family_fixtures.py [NAME ...]
"""

import pathlib
import sys

import numpy as np
import torch
import transformers

import gguf_file
import tiny_model

FOLDER = pathlib.Path(__file__).resolve().parent / "data" / "families"
N_PROMPT, N_GREEDY = 40, 12
SHAPE = dict(
    vocab_size=tiny_model.VOCAB,
    hidden_size=48,
    intermediate_size=64,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)


def permuted(weight, n_heads):
    """Rows of q or k as files of the llama kind have them: the two halves of a head interleaved."""
    rows, width = weight.shape
    return weight.reshape(n_heads, 2, rows // n_heads // 2, width).swapaxes(1, 2).reshape(rows, width)


def keys(arch, config, **more):
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    metadata = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(config.rope_parameters["rope_theta"]),
        "rope.dimension_count": int(head_dim * config.rope_parameters.get("partial_rotary_factor", 1)),
        **more,
    }
    return {
        "general.architecture": arch,
        "general.name": f"{arch} fixture",
        **{f"{arch}.{key}": value for key, value in metadata.items()},
        **tiny_model.tokenizer_metadata(),
    }


def decoder_tensors(model, permute=False):
    config = model.config
    state = {name: value.detach().float().numpy() for name, value in model.state_dict().items()}
    tensors = {
        "token_embd.weight": state["model.embed_tokens.weight"],
        "output_norm.weight": state["model.norm.weight"],
    }
    if not config.tie_word_embeddings:
        tensors["output.weight"] = state["lm_head.weight"]
    names = {
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.qkv_proj": "attn_qkv",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.gate_up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    for layer in range(config.num_hidden_layers):
        for theirs, ours in names.items():
            for kind in ("weight", "bias"):
                value = state.get(f"model.layers.{layer}.{theirs}.{kind}")
                if value is None:
                    continue
                if permute and ours in ("attn_q", "attn_k"):
                    heads = config.num_attention_heads if ours == "attn_q" else config.num_key_value_heads
                    value = permuted(value, heads)
                tensors[f"blk.{layer}.{ours}.{kind}"] = value
    return tensors


def smollm3():
    config = transformers.SmolLM3Config(num_hidden_layers=4, tie_word_embeddings=True, **SHAPE)
    model = transformers.SmolLM3ForCausalLM(config)
    return model, keys("smollm3", config), lambda: decoder_tensors(model, permute=True)


def qwen2_yarn():
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
    config = transformers.Qwen2Config(num_hidden_layers=2, tie_word_embeddings=False, rope_parameters=rope, **SHAPE)
    model = transformers.Qwen2ForCausalLM(config)
    scaling = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 32,
    }
    return model, keys("qwen2", config, **scaling), lambda: decoder_tensors(model)


def phi4_mini():
    """Fused matrices, rotation of three quarters of a head, LongRoPE past its original context."""
    original, n_rot = 32, 12
    rng = np.random.default_rng(4)
    factors = {"short": 1 + rng.random(n_rot // 2) * 0.2, "long": 1 + rng.random(n_rot // 2) * 6}
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": factors["short"].tolist(),
        "long_factor": factors["long"].tolist(),
        "original_max_position_embeddings": original,
        "partial_rotary_factor": 0.75,
    }
    config = transformers.Phi3Config(
        num_hidden_layers=2,
        tie_word_embeddings=True,
        rope_parameters=rope,
        original_max_position_embeddings=original,
        **(SHAPE | {"hidden_size": 64}),
    )
    model = transformers.Phi3ForCausalLM(config)
    more = {"rope.scaling.original_context_length": original, "rope.scaling.type": "longrope"}

    def tensors():
        extra = {f"rope_factors_{name}.weight": value.astype(np.float32) for name, value in factors.items()}
        return extra | decoder_tensors(model)

    return model, keys("phi3", config, **more), tensors


def granite():
    scales = {
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "attention_multiplier": 0.2,
        "logits_scaling": 1.5,
    }
    config = transformers.GraniteConfig(num_hidden_layers=2, tie_word_embeddings=True, **scales, **SHAPE)
    model = transformers.GraniteForCausalLM(config)
    more = {
        "embedding_scale": 3.0,
        "residual_scale": 0.4,
        "attention.scale": 0.2,
        "logit_scale": 1.5,
    }
    return model, keys("granite", config, **more), lambda: decoder_tensors(model, permute=True)


MODELS = {f.__name__: f for f in (smollm3, qwen2_yarn, phi4_mini, granite)}


def make(name):
    torch.manual_seed(len(name))
    model, metadata, tensors = MODELS[name]()
    model = model.float().eval()
    with torch.no_grad():
        for parameter_name, value in model.named_parameters():
            scale = 0.1 if value.ndim == 1 else 1.2 / value.shape[-1] ** 0.5
            noise = torch.randn_like(value) * scale
            noise = noise + (1 if "norm" in parameter_name else 0)
            # Values that F16 holds, so that the file has just these weights.
            value.copy_(noise.half().float() if value.ndim > 1 else noise)
        ids = torch.randint(0, 256, (1, N_PROMPT))
        for _ in range(N_GREEDY):
            logits = model(ids, use_cache=False).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
        logits = model(ids, use_cache=False).logits[0]
    FOLDER.mkdir(parents=True, exist_ok=True)
    gguf_file.write(FOLDER / f"{name}.gguf", metadata, tensors())
    np.savez_compressed(
        FOLDER / f"{name}.npz",
        ids=ids[0].numpy().astype(np.int32),
        n_prompt=N_PROMPT,
        # Past LongRoPE's original context: one run of the model rotates all its positions alike.
        logits=logits.numpy().astype(np.float32)[-16:],
    )
    top = logits.topk(2, dim=-1).values
    print(
        f"{name}: logits std {logits.std():.2f}, smallest gap of the greedy steps {(top[:, 0] - top[:, 1])[N_PROMPT - 1 : -1].min():.3f}"
    )


if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        make(wanted)
