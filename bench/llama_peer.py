"""The peer's side of compare_cpu.py: one measurement of llama.cpp, run by an interpreter of its own.

Example: /tmp/peer/bin/python bench/llama_peer.py model.gguf --what decode --streams 8 --tokens 64 --threads 1

Prints one JSON object with tokens a second. Only the calls that compute are timed; the next token is a random id, so
the peer pays for no sampling and for none of this program's Python. Needs the package llama-cpp-python
(compare_cpu.py --help says how to build it) and nothing else.
"""

import argparse
import json
import random
import sys
import time

import llama_cpp

FLASH = {"auto": -1, "off": 0, "on": 1}


class Peer:
    """A context with its batch, and the seconds that its calls took."""

    def __init__(self, args, n_ctx: int):
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(args.model.encode(), params)
        if not self.model:
            sys.exit(f"{args.model}: the peer cannot load it")
        context = llama_cpp.llama_context_default_params()
        context.n_ctx = n_ctx
        context.n_batch = context.n_ubatch = args.chunk
        context.n_seq_max = args.streams
        context.n_threads = context.n_threads_batch = args.threads
        if hasattr(context, "flash_attn_type"):
            context.flash_attn_type = FLASH[args.flash_attn]
        # A part of the cache for each stream: attention then reads no other stream's tokens.
        if hasattr(context, "kv_unified"):
            context.kv_unified = False
        self.context = llama_cpp.llama_init_from_model(self.model, context)
        if not self.context:
            sys.exit(f"{args.model}: the peer makes no context of {n_ctx} tokens")
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(max(args.chunk, args.streams), 0, 1)
        self.chunk = args.chunk
        self.random = random.Random(args.seed)

    def run(self, rows) -> float:
        """rows: (stream, position, whether logits are wanted). Seconds that it took."""
        batch = self.batch
        batch.n_tokens = len(rows)
        for i, (stream, position, logits) in enumerate(rows):
            batch.token[i] = self.random.randrange(self.n_vocab)
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = stream
            batch.logits[i] = logits
        start = time.perf_counter()
        status = llama_cpp.llama_decode(self.context, batch)
        llama_cpp.llama_synchronize(self.context)
        seconds = time.perf_counter() - start
        if status != 0:
            sys.exit(f"llama_decode gave {status} for {len(rows)} tokens")
        return seconds

    def prefill(self, n_tokens: int, stream: int = 0) -> float:
        """One prompt from position 0, logits of its last token."""
        seconds = 0.0
        for first in range(0, n_tokens, self.chunk):
            last = min(first + self.chunk, n_tokens)
            seconds += self.run([(stream, p, p == n_tokens - 1) for p in range(first, last)])
        return seconds

    def decode(self, n_streams: int, context: int, n_tokens: int) -> float:
        """A token of each stream at a time, all with logits. Tokens a second of all."""
        seconds = sum(self.run([(s, context + i, True) for s in range(n_streams)]) for i in range(n_tokens))
        return n_streams * n_tokens / seconds

    def forget(self) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--what", choices=("prefill", "decode"), default="decode")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--context", type=int, default=16, help="tokens of each stream before decoding")
    parser.add_argument("--tokens", type=int, default=64, help="of the prompt, or decoded by each stream in a window")
    parser.add_argument("--windows", type=int, default=1, help="stretches of a generation that are timed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=512, help="most tokens a call, n_batch and n_ubatch")
    parser.add_argument("--flash-attn", choices=FLASH, default="auto")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    is_prefill = args.what == "prefill"
    longest = args.tokens if is_prefill else args.context + args.windows * args.tokens
    # Room of 256 tokens is the least that the peer gives a stream.
    peer = Peer(args, args.streams * max(256, (longest + 255) // 256 * 256))
    peer.prefill(64)  # warm-up, as zinc-rt bench has it
    peer.decode(1, 64, 8)
    peer.forget()
    if is_prefill:
        rates = [args.tokens / peer.prefill(args.tokens)]
    else:
        for stream in range(args.streams):
            peer.prefill(args.context, stream)
        rates = [
            peer.decode(args.streams, args.context + window * args.tokens, args.tokens)
            for window in range(args.windows)
        ]
    info = llama_cpp.llama_print_system_info().decode()
    print(json.dumps({"tokens_per_s": rates, "version": llama_cpp.__version__, "features": info.strip()}))


if __name__ == "__main__":
    main()
