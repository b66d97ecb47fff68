"""Makes tests_data/blocks/assistant-tiny_gemma4.gguf, a random assistant for the model tiny_gemma4, and
tests_data/ref/assistant-tiny_gemma4.gguf, what it gives. Run by hand, as make_fixtures.py is:

PYTHONPATH=bench:tests_py python tests_py/make_assistant_fixture.py

The reference's tensors, in f32: tokens [N]; positions [R], of the tokens whose next token is guessed; logits [R, vocabulary]
and own_features [R, d] there, from the model's features and its KV cache of the positions before. chain_tokens [2] are
guesses behind the last of these positions, and chain_logits [2, vocabulary] what follows them, with the assistant's own
features.
transformers' own assistant computes it. Its mask lets a sliding layer see two positions more than the model's layers do,
so it gets the positions alone that the model's layer would see.
"""

import types

import numpy as np
import torch
import transformers

import gguf_file
import make_fixtures

MODEL = "tiny_gemma4"
N_TOKENS = 32
POSITIONS = [6, 31]  # within the window of sliding layers, and behind it
GLOBAL_DIM, DIM = 64, 8


def random_assistant(width):
    kinds = ["sliding_attention", "full_attention"]
    config = make_fixtures.gemma4_config(
        kinds,
        hidden_size=DIM,
        intermediate_size=16,
        num_attention_heads=2,
        num_key_value_heads=1,
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=len(kinds),
        per_layer_config={"1": {"head_dim": GLOBAL_DIM}},
    )
    config.vocab_size_per_layer_input = 0
    whole = transformers.Gemma4AssistantConfig(text_config=config, backbone_hidden_size=width)
    whole._attn_implementation = config._attn_implementation = "eager"
    assistant = transformers.Gemma4AssistantForCausalLM(whole).float().eval()
    make_fixtures.fill(assistant, None, np.random.default_rng(13))
    return assistant, config


def tensors_of(assistant, config):
    own = {name: value for name, value in assistant.state_dict().items() if "projection" in name}
    layers = {name: value for name, value in assistant.state_dict().items() if name not in own}
    text = types.SimpleNamespace(config=config, state_dict=lambda: layers)
    config.allow_global_per_layer_attribute_access = True
    return make_fixtures.gemma4_tensors(text, GLOBAL_DIM) | {
        f"nextn.{name}": value.float().numpy() for name, value in own.items()
    }


def main():
    model, *_ = make_fixtures.random_model(f"{MODEL}-f16")
    torch.manual_seed(13)
    with torch.no_grad():
        assistant, config = random_assistant(model.config.hidden_size)
        ids = torch.randint(0, 256, (1, N_TOKENS))
        run = model(ids, use_cache=False, output_hidden_states=True, return_shared_kv_states=True)
        cache, features = run.shared_kv_states, run.hidden_states[-1]
        embed = model.get_input_embeddings()

        def guess(token, hidden, position):
            first = {"full_attention": 0, "sliding_attention": max(0, position - config.sliding_window + 1)}
            out = assistant(
                inputs_embeds=torch.cat([embed(token[None, None]), hidden], dim=-1),
                position_ids=torch.tensor([[position]]),
                shared_kv_states={
                    kind: tuple(x[:, :, first[kind] : position] for x in cache[kind])
                    for kind in ("full_attention", "sliding_attention")
                },
            )
            return out.logits[0, 0], out.last_hidden_state

        rows = [guess(ids[0, p], features[:, p - 1 : p], p) for p in POSITIONS]
        chain_tokens, chain_logits, hidden = torch.randint(0, 256, (2,)), [], rows[-1][1]
        for token in chain_tokens:
            logits, hidden = guess(token, hidden, POSITIONS[-1])
            chain_logits.append(logits)
        stored = tensors_of(assistant, config)
    metadata = make_fixtures.gemma4_keys(
        config,
        GLOBAL_DIM,
        embedding_length_out=model.config.hidden_size,
        nextn_predict_layers=config.num_hidden_layers,
    )
    of_arch = "gemma4-assistant"
    metadata = {key.replace("gemma4.", f"{of_arch}.", 1): value for key, value in metadata.items()}
    metadata |= {"general.architecture": of_arch, "general.name": f"{of_arch} fixture"}
    name = f"assistant-{MODEL}.gguf"
    gguf_file.write(make_fixtures.FOLDER / "blocks" / name, metadata, stored)
    values = {
        "tokens": ids[0].float(),
        "positions": torch.tensor(POSITIONS).float(),
        "logits": torch.stack([logits for logits, _ in rows]),
        "own_features": torch.stack([own[0, 0] for _, own in rows]),
        "chain_tokens": chain_tokens.float(),
        "chain_logits": torch.stack(chain_logits),
    }
    gguf_file.write(
        make_fixtures.FOLDER / "ref" / name,
        {"general.architecture": "reference"},
        {k: (tuple(v.shape), gguf_file.F32, v.numpy().astype(np.float32).tobytes()) for k, v in values.items()},
    )


if __name__ == "__main__":
    main()
