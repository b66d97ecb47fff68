"""What guesses of the next tokens gain (docs/speculation.md): tokens a second with them and without, by turns.

    zinc-rt serve MODEL --tier t_cpu -t 1 --port 8080
    python bench/speculation.py --url http://127.0.0.1:8080
    python bench/speculation.py --url http://127.0.0.1:8080 --temperature 0.7 --streams 16

Twenty prompts of five kinds (edits of code, quoting, JSON and SQL, JSON by a schema, chat), and four whose answers are
noise (temperature 2).
Each is answered with --with and with --without added to the request, which by default is `speculate` auto and off; the
two must give the same tokens, and with ZINC_RT the same hashes of the logits. --prediction sends the code that is to be
edited as OpenAI's prediction too. For another server --with '{}' --without '{"speculative.n_max": 0}' --no-check, or
whatever it takes. The time is that from the first piece of an answer to its last. Prints Markdown; --json FILE writes
the numbers. Wants Python alone.
"""

import argparse
import json
import pathlib
import statistics
import threading
import time

import structured

CODE = {
    "rename a variable": (
        """def mean_and_spread(values):
    total = 0.0
    for value in values:
        total += value
    mean = total / len(values)
    spread = 0.0
    for value in values:
        spread += (value - mean) ** 2
    return mean, (spread / len(values)) ** 0.5
""",
        "Rename the variable `total` to `sum_of_values` and print the whole function again.",
    ),
    "add a check": (
        """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def peek(self):
        return self.items[-1]

    def is_empty(self):
        return len(self.items) == 0
""",
        "Make `pop` return None if the stack is empty, and print the whole class again.",
    ),
    "change a loop": (
        """function countWords(text) {
  const counts = {};
  const words = text.toLowerCase().split(" ");
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (counts[word] === undefined) {
      counts[word] = 0;
    }
    counts[word] += 1;
  }
  return counts;
}
""",
        "Use `for (const word of words)` instead, and print the whole function again.",
    ),
    "change a value": (
        """[server]
host = "127.0.0.1"
port = 8080
workers = 4
timeout_seconds = 30
log_level = "info"

[database]
host = "127.0.0.1"
port = 5432
name = "library"
pool_size = 10
timeout_seconds = 5
""",
        "Set the server's port to 9090 and print the whole file again.",
    ),
}
TEXTS = [
    "The tide is the rise and fall of the sea that the moon and the sun cause. In most places the water rises "
    "twice a day and falls twice a day. When sun, moon and earth stand in one line, the tides are highest, and "
    "they are called spring tides. When they stand at a right angle, the tides are lowest, and they are called "
    "neap tides.",
    "Bread is made of flour, water, salt and yeast. The dough is kneaded until it is smooth, and then it rests "
    "until it has twice the size. After that it is shaped, rests once more, and is baked in a hot oven until the "
    "crust is brown. Good bread sounds hollow when one knocks on its lower side.",
    "The library opens at nine in the morning and closes at six in the evening. Books may be kept for three "
    "weeks, and they may be renewed twice unless somebody else waits for them. Those who return a book late pay "
    "a small fee for each day. Children pay no fees, and neither do teachers.",
    "A compiler reads a program and writes another one that does the same. First it splits the text into words, "
    "then it builds a tree of them, then it checks the types, and at last it writes instructions for the "
    "machine. A good compiler also says in plain words what is wrong with a program and where.",
]
JSON = [
    "Alice is 34 and lives in Paris. Bob is 28 and lives in Rome. Carla is 45 and lives in Oslo. David is 51 and "
    "lives in Bern. Write a JSON list with an object of name, age and city for each person.",
    "Write SQL statements that insert these rows into the table books (title, author, year): Emma by Jane "
    "Austen, 1815; Persuasion by Jane Austen, 1817; Middlemarch by George Eliot, 1871; Silas Marner by George "
    "Eliot, 1861.",
    "Write a JSON list of the seven days of the week. Each entry is an object with the day's name, its number "
    "from 1 to 7, and whether it is part of the weekend.",
    "Write a Markdown table of the planets with their names, their order from the sun, and whether they have rings.",
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}, "postal_code": {"type": "string"}},
            "required": ["street", "city", "postal_code"],
            "additionalProperties": False,
        },
        "occupation": {"type": "string"},
    },
    "required": ["name", "age", "address", "occupation"],
    "additionalProperties": False,
}
PEOPLE = {"type": "array", "items": PERSON, "minItems": 3, "maxItems": 6}
BY_SCHEMA = [
    f"Invent {n} people who live in {city}, with names, ages, addresses and occupations, as JSON."
    for n, city in [(3, "London"), (4, "Lisbon"), (5, "Vienna"), (3, "Tokyo")]
]
CHAT = [
    "Why is the sky blue? Explain it to a child.",
    "Give me a few ideas for a rainy Sunday at home.",
    "What should I think about before I buy a used bicycle?",
    "Tell me a short story about a lighthouse keeper and a whale.",
]
NOISE = [f"Write down whatever comes to your mind, number {i}." for i in range(4)]


def prompts():
    """(kind, the user's text, what the answer may be like, further fields)"""
    for code, task in CODE.values():
        yield "edits of code", f"```\n{code}```\n{task}", code, {}
    for text in TEXTS:
        yield "quoting", f"{text}\n\nRepeat the text above word for word, twice.", text, {}
    for text in JSON:
        yield "JSON, SQL", text, "", {}
    for text in BY_SCHEMA:
        schema = {"type": "json_schema", "json_schema": {"name": "people", "schema": PEOPLE}}
        yield "JSON by a schema", text, "", {"response_format": schema}
    for text in CHAT:
        yield "chat", text, "", {}
    for text in NOISE:
        yield "noise", text, "", {}


class Server(structured.Server):
    def ask(self, fields):
        """The answer's text, its hashes, its tokens, and the seconds from its first piece to its last."""
        connection, response = self.open({"stream": True, "stream_options": {"include_usage": True}, **fields})
        if response.status != 200:
            raise SystemExit(f"{response.status}: {response.read().decode()}")
        text, hashes, n_tokens, first, last = "", [], 0, None, None
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                n_tokens = event["usage"]["completion_tokens"]
            for choice in event.get("choices", []):
                piece = choice.get("delta", {}).get("content") or ""
                hashes += choice.get("logits_hash") or []
                if piece:
                    last = time.perf_counter()
                    first = first or last
                    text += piece
        connection.close()
        return text, hashes, n_tokens, (last or 0) - (first or 0)


def answer_all(server, of_kind, fields, args):
    """Answers all prompts of a kind, --streams at a time: the answers and tokens a second of all together."""
    results = [None] * len(of_kind) * args.copies
    jobs = list(enumerate(of_kind * args.copies))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not jobs:
                    return
                i, (kind, text, expected, more) = jobs.pop(0)
            more = {**more, **fields}
            if args.prediction and expected:
                more["prediction"] = {"type": "content", "content": expected}
            results[i] = server.ask(
                {
                    "messages": [{"role": "user", "content": text}],
                    "max_tokens": args.tokens,
                    "temperature": 2.0 if kind == "noise" else args.temperature,
                    "seed": i,
                    **more,
                }
            )

    begin = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(args.streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    if args.streams == 1:
        took = sum(seconds for *_, seconds in results)
    return results, sum(max(0, n - 1) for _, _, n, _ in results) / took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key")
    parser.add_argument("--model")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--streams", type=int, default=1, help="answers at a time")
    parser.add_argument("--copies", type=int, default=1, help="how often each prompt is asked, with seeds of its own")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", help="those alone whose names begin so")
    parser.add_argument("--with", dest="added", type=json.loads, default={"speculate": "auto"})
    parser.add_argument("--without", dest="base", type=json.loads, default={"speculate": "off"})
    parser.add_argument("--prediction", action="store_true")
    parser.add_argument("--no-check", action="store_true", help="the answers may differ")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    server = Server(args.url, args.key, args.model)
    check = {} if args.no_check else {"return_logits_hash": True}

    numbers = {}
    print("| kind | without, tokens/s | with | ratio |\n|---|---|---|---|")
    for kind in dict.fromkeys(kind for kind, *_ in prompts()):
        if args.kinds and not any(kind.startswith(k) for k in args.kinds):
            continue
        of_kind = [p for p in prompts() if p[0] == kind]
        if not args.no_check:
            wanted, got = (answer_all(server, of_kind, {**f, **check}, args)[0] for f in (args.base, args.added))
            for (_, text, *_), a, b in zip(of_kind * args.copies, wanted, got, strict=True):
                if a[:3] != b[:3] or not a[1]:
                    raise SystemExit(f"the answer to {text[:60]!r} differs: {a[0]!r} without, {b[0]!r} with")
        rates = {"without": [], "with": []}
        for rep in range(args.reps):
            order = [("without", args.base), ("with", args.added)]
            for name, fields in order if rep % 2 == 0 else order[::-1]:
                rates[name].append(answer_all(server, of_kind, fields, args)[1])
        base, added = (statistics.median(rates[name]) for name in ("without", "with"))
        numbers[kind] = {"without": base, "with": added, "ratio": added / base}
        print(f"| {kind} | {base:.1f} | {added:.1f} | {added / base:.2f} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
