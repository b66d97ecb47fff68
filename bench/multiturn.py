"""Replays chats of several turns with a shared system prompt and prints what the prefix cache saved.

Example: python bench/multiturn.py model.gguf --tenants 2 --sessions 8 --turns 5 --plot multiturn.png

Each session sends its whole history with every turn, as chat clients do. Turn by turn, all sessions send theirs, in an
order drawn anew, at most --concurrency at a time. "reusable" is what a cache without limits could have given, had the
requests come one after the other: whole pages of 16 tokens that an earlier request of the tenant (with --group: of any
tenant) began with. Texts are drawn from --seed; answers have a fixed length, so token counts repeat.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import random
import sys

import zinc_rt

PAGE_TOKENS = 16


@dataclasses.dataclass
class Chat:
    """One session: its history grows by a question and an answer a turn."""

    session: zinc_rt.Session
    domain: str  # whose pages it may share
    system: str
    questions: list[str]
    history: list  # token ids, or messages


@dataclasses.dataclass
class Turn:
    """Sums over the requests of a turn."""

    turn: int
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    reusable_tokens: int = 0
    ttft_ms: float = 0.0  # mean

    def row(self) -> dict:
        row = dataclasses.asdict(self)
        row["computed_tokens"] = self.prompt_tokens - self.cached_tokens
        row["hit_rate"] = self.cached_tokens / self.prompt_tokens
        row["reusable_rate"] = self.reusable_tokens / self.prompt_tokens
        return row


class SeenPages:
    """The prefixes of whole pages that requests of a domain had, each named by a number."""

    def __init__(self):
        self._numbers = {}

    def _pages(self, ids):
        return (tuple(ids[i : i + PAGE_TOKENS]) for i in range(0, len(ids) - PAGE_TOKENS + 1, PAGE_TOKENS))

    def reusable(self, domain: str, prompt) -> int:
        """Tokens of the prompt that were there before. The last one always runs: its logits are wanted."""
        at, n = domain, 0
        for page in self._pages(prompt[:-1]):
            if (at := self._numbers.get((at, page))) is None:
                break
            n += PAGE_TOKENS
        return n

    def add(self, domain: str, ids) -> None:
        at = domain
        for page in self._pages(ids):
            at = self._numbers.setdefault((at, page), len(self._numbers))


def text_of(engine, draw, n_tokens: int) -> str:
    """Random words of about n_tokens tokens, not fewer."""
    words = []
    while True:
        words += ["".join(draw.choices("aeinorst", k=draw.randint(2, 7))) for _ in range(max(1, n_tokens // 4))]
        text = " ".join(words)
        if len(engine.tokenize(text, add_special=False, parse_special=False)) >= n_tokens:
            return text


def first_ids(engine, text: str, n_tokens: int) -> list[int]:
    return engine.tokenize(text, add_special=False, parse_special=False)[:n_tokens]


def user_tokens(draw, mean: int) -> int:
    """Exponential, as lengths of questions are: many short ones and a few of several times the mean."""
    return min(max(1, round(draw.expovariate(1 / mean))), 4 * mean)


def make_chats(engine, tenants, args):
    draw = random.Random(args.seed)
    shared = text_of(engine, draw, args.system_tokens)
    n_chats = args.tenants * args.sessions
    with_own = set(draw.sample(range(n_chats), n_chats - round(args.shared * n_chats)))
    chats = []
    for number, (tenant, _) in enumerate(itertools.product(tenants, range(args.sessions))):
        system = text_of(engine, draw, args.system_tokens) if number in with_own else shared
        lengths = [user_tokens(draw, args.user_tokens) for _ in range(args.turns)]
        questions = [text_of(engine, draw, n) for n in lengths]
        if args.input == "messages":
            history = [{"role": "system", "content": system}]
        else:
            history = first_ids(engine, system, args.system_tokens)
            questions = [first_ids(engine, q, n) for q, n in zip(questions, lengths, strict=True)]
        domain = "group" if args.group else tenant.name
        chats.append(Chat(tenant.session(), domain, system, questions, history))
    return chats


def ask(engine, chat, turn: int, args):
    """Sends the next turn of a chat. Returns the prompt's ids and the completion."""
    question = chat.questions[turn]
    options = {"max_tokens": args.answer_tokens, "ignore_eos": True}
    if args.input == "messages":
        chat.history.append({"role": "user", "content": question})
        prompt = engine.tokenize(engine.apply_template(chat.history), add_special=False)
        completion = chat.session.generate(messages=chat.history, **options)
        chat.history.append({"role": "assistant", "content": completion.text})
    else:
        chat.history += question
        prompt = list(chat.history)
        completion = chat.session.generate(token_ids=prompt, **options)
        chat.history += completion.token_ids
    return prompt, completion


def replay(engine, chats, args):
    """All turns of all chats; a Turn each."""
    draw = random.Random(args.seed + 1)
    seen = SeenPages()
    turns = []
    with concurrent.futures.ThreadPoolExecutor(args.concurrency) as pool:
        for number in range(args.turns):
            order = draw.sample(chats, len(chats))
            turn = Turn(number + 1)
            answers = pool.map(lambda chat, number=number: ask(engine, chat, number, args), order)
            for chat, (prompt, completion) in zip(order, answers, strict=True):
                turn.requests += 1
                turn.prompt_tokens += completion.usage.prompt_tokens
                turn.cached_tokens += completion.usage.cached_tokens
                turn.reusable_tokens += seen.reusable(chat.domain, prompt)
                turn.ttft_ms += completion.timings.prefill_ms / len(chats)
                # The last token that was picked never ran.
                seen.add(chat.domain, prompt + completion.token_ids[:-1])
            turns.append(turn)
            print(f"turn {number + 1} of {args.turns}", file=sys.stderr, flush=True)
    return turns


def run(args) -> dict:
    with zinc_rt.Engine(
        args.model,
        tier=args.tier,
        max_slots=args.max_slots or args.concurrency,
        kv_pages=args.kv_pages,
        max_context=args.max_context,
        threads=args.threads,
    ) as engine:
        quota = zinc_rt.TenantQuota(
            max_concurrent_slots=args.concurrency,
            max_kv_pages=2**31,
            max_context_tokens=2**31,
            decode_tokens_per_s=1e9,
            prefill_tokens_per_s=1e9,
            isolation_group="multiturn" if args.group else None,
        )
        tenants = [engine.tenant(f"tenant-{i + 1}", quota) for i in range(args.tenants)]
        turns = [turn.row() for turn in replay(engine, make_chats(engine, tenants, args), args)]
        ledgers = {tenant.name: tenant.ledger().as_dict() for tenant in tenants}
        total = {key: sum(turn[key] for turn in turns) for key in turns[0] if key.endswith("tokens")}
        total["requests"] = sum(turn["requests"] for turn in turns)
        total["hit_rate"] = total["cached_tokens"] / total["prompt_tokens"]
        total["reusable_rate"] = total["reusable_tokens"] / total["prompt_tokens"]
        model = engine.model_card()["name"]
        return {
            "model": model,
            "tier": engine.tier,
            "parameters": {k: v for k, v in vars(args).items() if k not in ("json", "plot")},
            "turns": turns,
            "total": total,
            "tenants": ledgers,
        }


def table(result: dict) -> str:
    def line(name, row):
        ttft = f"{row['ttft_ms']:9.1f}" if "ttft_ms" in row else ""
        return (
            f"{name:>5} {row['requests']:8} {row['prompt_tokens']:9} {row['cached_tokens']:9} "
            f"{row['reusable_tokens']:9} {row['computed_tokens']:9} {row['hit_rate']:9.1%} {ttft}"
        )

    p, total = result["parameters"], result["total"]
    out = [
        f"{result['model']} on {result['tier']}: {p['tenants']} tenants x {p['sessions']} sessions x {p['turns']} turns"
        f" as {p['input']}, seed {p['seed']}",
        f"{'turn':>5} {'requests':>8} {'prompt':>9} {'cached':>9} {'reusable':>9} {'computed':>9} {'hit rate':>9}"
        f" {'ttft ms':>9}",
        *(line(row["turn"], row) for row in result["turns"]),
        line("all", total),
        f"prefill tokens: {total['computed_tokens']} computed, {total['prompt_tokens']} without a cache",
    ]
    for name, ledger in result["tenants"].items():
        out.append(
            f"{name}: ledger says {ledger['tokens_cached']} of {ledger['tokens_prompted']} prompt tokens cached, "
            f"recent hit rate {ledger['prefix_hit_rate']:.1%}, "
            f"ttft p50 {ledger['p50_ttft_ms']:.1f} ms, p99 {ledger['p99_ttft_ms']:.1f} ms"
        )
    return "\n".join(out)


def plot(result: dict, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    turns = result["turns"]
    x = [row["turn"] for row in turns]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    left.plot(x, [100 * row["hit_rate"] for row in turns], marker="o", label="from the cache")
    left.plot(x, [100 * row["reusable_rate"] for row in turns], ":", label="reusable")
    left.set(xlabel="turn", ylabel="% of prompt tokens", ylim=(0, 100), xticks=x)
    left.legend()
    right.bar([t - 0.2 for t in x], [row["prompt_tokens"] for row in turns], 0.4, label="without a cache")
    right.bar([t + 0.2 for t in x], [row["computed_tokens"] for row in turns], 0.4, label="computed")
    right.set(xlabel="turn", ylabel="prefill tokens", xticks=x)
    right.legend()
    figure.suptitle(f"{result['model']}: hit rate {result['total']['hit_rate']:.1%}")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{value}, 1 or more wanted")
    return value


def share(text: str) -> float:
    if not 0 <= (value := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"{value}, 0 to 1 wanted")
    return value


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", help="a GGUF file or an MLC folder")
    add("--tenants", type=positive, default=2, help="(%(default)s)")
    add("--sessions", type=positive, default=4, help="of each tenant (%(default)s)")
    add("--turns", type=positive, default=4, help="of each session (%(default)s)")
    add("--system-tokens", type=positive, default=256, help="length of the system prompt (%(default)s)")
    add("--user-tokens", type=positive, default=32, help="mean length of a question (%(default)s)")
    add("--answer-tokens", type=positive, default=16, help="length of every answer (%(default)s)")
    add(
        "--shared",
        type=share,
        default=1.0,
        help="share of sessions with the common system prompt; each other has one of its own (%(default)s)",
    )
    add("--group", action="store_true", help="one isolation group: tenants may share pages")
    add(
        "--input",
        choices=("token_ids", "messages"),
        default="token_ids",
        help="messages: by the chat template, whose words add to the lengths (%(default)s)",
    )
    add("--seed", type=int, default=1, help="of texts and orders (%(default)s)")
    add("--concurrency", type=positive, default=4, help="requests under way at a time (%(default)s)")
    add("--tier", default="auto", help="(%(default)s)")
    add("--max-slots", type=positive, help="of the engine (--concurrency)")
    add("--kv-pages", type=positive, help="of the engine, 16 tokens each (the engine's default)")
    add("--max-context", type=positive, help="of the engine (the engine's default)")
    add("--threads", type=positive, help="of the engine (the engine's default)")
    add("--json", action="store_true", help="print JSON instead of text")
    add("--plot", metavar="FILE", help="draw hit rate and prefill tokens by turn (needs matplotlib)")
    return parser.parse_args(arguments)


def main() -> int:
    args = parse()
    try:
        result = run(args)
    except zinc_rt.errors.ZincError as error:
        print(f"multiturn: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result, indent=1) if args.json else table(result))
    if args.plot:
        plot(result, args.plot)
    charged = sum(ledger["tokens_cached"] for ledger in result["tenants"].values())
    if charged != result["total"]["cached_tokens"]:
        print(
            f"multiturn: the ledgers say {charged} cached tokens, usages {result['total']['cached_tokens']}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
