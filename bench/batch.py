"""Measures what decoding many requests at once gives over one alone.

Example: python bench/batch.py model.gguf --batch 1 4 16 --reps 3

Each round decodes --tokens tokens of so many requests at once, on one engine; rounds take turns, and medians are given.
"""

import argparse
import json
import statistics
import time

import zinc_rt


def aggregate(engine, n, tokens, salt):
    """Tokens a second of n requests, prefill of their four tokens included."""
    quota = zinc_rt.TenantQuota(max_concurrent_slots=n, max_kv_pages=1 << 20, decode_tokens_per_s=1e9)
    session = engine.tenant(f"batch of {n}", quota).session()
    start = time.perf_counter()
    streams = [session.stream(token_ids=[1, 2, salt, 3 + i], max_tokens=tokens, ignore_eos=True) for i in range(n)]
    for stream in streams:
        for _ in stream:
            pass
    return n * tokens / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--threads", type=int, help="default: all")
    parser.add_argument("--kernels", default=None, help="a kernel set of T-CPU; default: the fastest")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    kernels = {} if args.kernels is None else {"cpu_kernels": args.kernels}
    with zinc_rt.Engine(
        args.model, max_slots=max(args.batch), max_context=512, threads=args.threads, **kernels
    ) as engine:
        rates = {n: [] for n in args.batch}
        for rep in range(args.reps):
            for n in args.batch:
                rates[n].append(aggregate(engine, n, args.tokens, 10 + rep))
        ran = {"model": engine.model_card().get("name"), "tier": engine.tier, "arithmetic": engine.arithmetic}
    ran |= {"kernels": args.kernels or "auto", "threads": args.threads, "tokens": args.tokens, "reps": args.reps}
    first = statistics.median(rates[args.batch[0]])
    rows = [
        {
            "batch": n,
            "tokens_per_s": statistics.median(r),
            "spread": [min(r), max(r)],
            "ratio": statistics.median(r) / first,
        }
        for n, r in rates.items()
    ]
    if args.json:
        print(json.dumps({"ran": ran, "rows": rows}))
        return
    print(ran)
    for row in rows:
        low, high = row["spread"]
        rate = f"{row['tokens_per_s']:7.1f} tokens/s ({low:.1f} to {high:.1f})"
        print(f"batch {row['batch']:3}: {rate}, {row['ratio']:.2f} times")


if __name__ == "__main__":
    main()
