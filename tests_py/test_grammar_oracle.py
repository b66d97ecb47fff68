"""The grammar engine against the JSON-Schema-Test-Suite, and its masks against llguidance's, bit for bit."""

import collections
import json
import os
import random

import pytest

from fixture_models import NO_SHARED, SHARED
from grammar_partner import Partner, random_schema, suite, token_bytes

pytestmark = pytest.mark.slow
VOCABULARY = SHARED / "vocab/ggml-vocab-qwen2.gguf"
N_SCHEMAS = int(os.environ.get("ZRT_ORACLE_SCHEMAS", 150))
N_STEPS = 50
UNBOUNDED = 10_000  # white space as good as without a limit, which llguidance has not


@pytest.fixture(scope="module")
def vocabulary():
    if not VOCABULARY.is_file():
        pytest.skip(NO_SHARED)
    return VOCABULARY


@pytest.fixture
def partner(vocabulary):
    made = Partner(vocabulary)
    yield made
    made.close()


def spellings(value):
    forms = [json.dumps(value), json.dumps(value, ensure_ascii=False, separators=(",", ":"))]
    return {form.encode(errors="surrogatepass") for form in forms}


# Other formats are annotations.
FORMATS = {"date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri"}


@pytest.mark.parametrize("folder, most_refused", [((), 186), (("optional", "format"), 0)], ids=["suite", "formats"])
def test_no_invalid_instance_is_accepted(partner, folder, most_refused):
    count = collections.Counter()
    wrong, unnamed = [], []
    for name, group in suite(*folder):
        if folder and group["schema"].get("format") not in FORMATS:
            continue
        count["schemas"] += 1
        if why := partner.compile(group["schema"]):
            count["refused"] += 1
            if not why.startswith(("[schema] /", "[schema] the root", "[grammar] no text at all fits")):
                unnamed.append((name, group["description"], why))
            continue
        for test in group["tests"]:
            kind = "valid" if test["valid"] else "invalid"
            is_accepted = any(partner.fits(text) for text in spellings(test["data"]))
            count[kind] += 1
            count[kind + " accepted"] += is_accepted
            if is_accepted and not test["valid"]:
                wrong.append((name, group["description"], test["description"]))
    print(dict(count))
    assert not wrong and not unnamed
    assert count["schemas"] >= 10 and count["refused"] <= most_refused
    assert count["invalid"] > 100 and count["valid accepted"] >= 0.85 * count["valid"]


class Words:
    """The vocabulary as llguidance wants it. Its own tokenization is the longest token at each place."""

    def __init__(self, tokens, ends):
        self.special_token_ids = [number for number, text in enumerate(tokens) if not text]
        self.tokens = [text or b"\xff<|special_%d|>" % number for number, text in enumerate(tokens)]
        self.eos_token_id, self.bos_token_id = ends[0], None
        self.numbers = {text: number for number, text in reversed(list(enumerate(self.tokens)))}
        self.longest = max(map(len, self.tokens))

    def __call__(self, text):
        text = text if isinstance(text, bytes) else text.encode()
        found = []
        while text:
            n = next(n for n in range(min(self.longest, len(text)), 0, -1) if text[:n] in self.numbers)
            found.append(self.numbers[text[:n]])
            text = text[n:]
        return found


@pytest.fixture(scope="module")
def oracle(vocabulary):
    llguidance = pytest.importorskip("llguidance", reason="no llguidance; pip install llguidance==1.9.1")
    tokens, ends = token_bytes(vocabulary)
    words = Words(tokens, ends)
    return llguidance, llguidance.LLTokenizer(llguidance.TokenizerWrapper(words)), words, ends


def follow(partner, oracle, schema, has_whitespace, choose, count):
    """Walks both along one random answer. The first mask that differs without a known reason, or None."""
    np = pytest.importorskip("numpy")
    llguidance, tokenizer, words, ends = oracle
    matcher_class = llguidance.LLMatcher
    defaults = None if has_whitespace else {"whitespace_flexible": False}
    theirs = matcher_class(tokenizer, matcher_class.grammar_from_json_schema(schema, defaults=defaults))
    why = partner.compile(schema, UNBOUNDED if has_whitespace else 0)
    if why or theirs.is_error():
        count[
            "refused by us alone" if not theirs.is_error() else "refused by llguidance" if not why else "by both"
        ] += 1
        return None
    count["schemas"] += 1
    n = tokenizer.vocab_size
    for step in range(N_STEPS):
        ours = np.unpackbits(np.frombuffer(partner.mask(), np.uint8), bitorder="little")[:n].copy()
        other = np.unpackbits(np.frombuffer(theirs.compute_bitmask(), np.uint8), bitorder="little")[:n].copy()
        assert bool(ours[ends].any()) == theirs.is_accepting()
        ours[ends] = other[ends] = 0
        more, fewer = np.flatnonzero(ours > other), np.flatnonzero(other > ours)
        count["masks"] += 1
        if theirs.compute_ff_bytes():
            # Of a text that must come they allow one tokenization, we all.
            count["masks of forced text"] += 1
            more = []
            allowed = other
        else:
            allowed = ours
        text = b"".join(words.tokens[number] for number in count["answer"])
        if len(fewer) and all(b"\\u" in text[-6:] + words.tokens[number] for number in fewer):
            # They let an additional name have any \uXXXX, even if it then spells a declared one.
            count["masks with names by \\uXXXX"] += 1
            allowed, fewer = allowed & ours, []
        if len(more) or len(fewer):
            shown = [[words.tokens[number] for number in part[:8]] for part in (more, fewer)]
            return json.dumps(schema), step, text, shown
        candidates = np.flatnonzero(allowed)
        if not len(candidates):
            return None
        picked = choose(candidates)
        count["answer"].append(picked)
        assert partner.token(picked) and theirs.consume_token(picked)
    return None


def test_masks_are_llguidances(partner, oracle):
    rng = random.Random(5)
    words = oracle[2]

    def choose(candidates):
        # Often a token that is mostly signs, so that answers end and objects have several members.
        some = [int(number) for number in rng.choices(candidates, k=8 if rng.random() < 0.5 else 1)]
        return max(some, key=lambda n: sum(c in b'"{}[]:,' for c in words.tokens[n]) / len(words.tokens[n]))

    count = collections.Counter()
    for number in range(N_SCHEMAS):
        count["answer"] = []
        differs = follow(partner, oracle, random_schema(rng), number % 2 == 0, choose, count)
        assert differs is None, differs
    del count["answer"]
    print(dict(count))
    assert count["masks"] > 10 * N_SCHEMAS and count["refused by us alone"] <= N_SCHEMAS // 50


def test_masks_of_the_suite(partner, oracle):
    rng = random.Random(6)
    count = collections.Counter()
    differing = {}
    for name, group in suite():
        count["answer"] = []
        choose = lambda candidates: int(rng.choice(candidates))  # noqa: E731
        if differs := follow(partner, oracle, group["schema"], True, choose, count):
            differing[name] = differs
    del count["answer"]
    print(dict(count), differing)
    # Formats are other expressions than theirs (docs/grammar.md).
    assert set(differing) <= {"format"} and count["masks"] > 2000
