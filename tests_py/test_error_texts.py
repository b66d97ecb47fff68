"""Nothing decides by the words of an error: programs read its code, reason and field (zinc_rt/status.h)."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPARES = r"(?:find|rfind|contains|starts_with|ends_with|compare|find_first_of)\s*\("
# A message that is searched or compared, by whatever name an error has.
SEARCHED = re.compile(
    rf"\bmessage(?:\(\))?\s*\.\s*{COMPARES}|\bmessage(?:\(\))?\s*[!=]=|[!=]=\s*[\w.>()-]*(?:\.|->)message\b"
)
# Elsewhere a message is also one of a chat, so there it counts as an error's where the line says so.
SEARCHED_ERROR = re.compile(rf"error(?:\(\))?(?:\.|->)message\s*(?:\.\s*{COMPARES}|[!=]=)")
FOLDERS = {"cpp/server": SEARCHED, "cpp": SEARCHED_ERROR, "python/zinc_rt": SEARCHED_ERROR}


def lines_that_search(text, pattern):
    return [number for number, line in enumerate(text.splitlines(), 1) if pattern.search(line.partition("//")[0])]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_line_searches_the_text_of_an_error(folder):
    found = []
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in {".h", ".cpp"}:
            numbers = lines_that_search(path.read_text(), FOLDERS[folder])
            found += [f"{path.relative_to(ROOT)}:{number}" for number in numbers]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'if (error.message.find("reserved") != std::string::npos)',
        'return message.contains("the context has");',
        "for (const char* part : parts) if (message.starts_with(part))",
        'if (status.error().message == "closed")',
        'if ("closed" == error.message)',
    ],
)
def test_a_line_that_does_is_found(line):
    assert lines_that_search(line, SEARCHED) == [1]


@pytest.mark.parametrize(
    "line",
    [
        'error.message = fmt::format("{}: {}", place, error.message);',
        'if (type == "message")',
        "// error.message.find(text) is what nobody does",
        "if (error.reason == Reason::kContextLength)",
    ],
)
def test_other_lines_are_not(line):
    assert lines_that_search(line, SEARCHED) == []
