"""bench/multiturn.py: the command, and its own count of what could be reused."""

import json
import pathlib
import subprocess
import sys

import pytest

from multiturn import PAGE_TOKENS, SeenPages

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "bench" / "multiturn.py"


def multiturn(*arguments):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def replayed(model, *arguments):
    small = ("--sessions", 2, "--turns", 3, "--system-tokens", 40, "--user-tokens", 6, "--answer-tokens", 4)
    result = multiturn(model, *small, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_counts_add_up_and_repeat(tiny_model):
    first, again = (replayed(tiny_model) for _ in range(2))
    total = first["total"]
    assert total["requests"] == 2 * 2 * 3
    assert total["computed_tokens"] == total["prompt_tokens"] - total["cached_tokens"]
    assert total["prompt_tokens"] == sum(ledger["tokens_prompted"] for ledger in first["tenants"].values())
    assert sum(ledger["tokens_generated"] for ledger in first["tenants"].values()) == 12 * 4
    counts = ("prompt_tokens", "reusable_tokens")
    assert [[t[c] for c in counts] for t in first["turns"]] == [[t[c] for c in counts] for t in again["turns"]]


def test_what_can_be_reused_follows_the_sharing(tiny_model):
    # 40 tokens of system prompt are two whole pages, which the second session of each tenant finds.
    first_turn = replayed(tiny_model)["turns"][0]
    assert first_turn["reusable_tokens"] == 2 * 2 * PAGE_TOKENS
    assert replayed(tiny_model, "--group")["turns"][0]["reusable_tokens"] == 3 * 2 * PAGE_TOKENS
    own = replayed(tiny_model, "--shared", 0)["turns"]
    assert own[0]["reusable_tokens"] == 0 < own[1]["reusable_tokens"]


def test_text_says_what_was_saved(tiny_model):
    result = multiturn(tiny_model, "--tenants", 1, "--sessions", 1, "--turns", 1, "--system-tokens", 20)
    assert result.returncode == 0, result.stderr
    assert "without a cache" in result.stdout and "tenant-1: ledger says" in result.stdout


def test_a_plot(tiny_model, tmp_path):
    pytest.importorskip("matplotlib")
    replayed(tiny_model, "--plot", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--turns", 0], 2, "1 or more wanted"),
        (["--shared", 1.5], 2, "0 to 1 wanted"),
        (["--system-tokens", 600], 1, "the context has 512"),
    ],
)
def test_bad_arguments(tiny_model, arguments, code, said):
    result = multiturn(tiny_model, *arguments)
    assert result.returncode == code and said in result.stderr, result.stderr


def test_seen_pages():
    seen = SeenPages()
    ids = list(range(100))
    assert seen.reusable("a", ids) == 0
    seen.add("a", ids)
    assert seen.reusable("a", ids) == 96
    assert seen.reusable("a", ids[:48]) == 32  # the last token of a prompt runs
    assert seen.reusable("a", ids[:49]) == 48
    assert seen.reusable("a", [*ids[:20], 7, *ids[21:]]) == 16
    assert seen.reusable("a", ids[16:]) == 0
    assert seen.reusable("b", ids) == 0
