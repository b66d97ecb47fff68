"""The documents: their Python examples run as written, links lead somewhere, and no line or paragraph is long."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = [
    pytest.param(code, id=f"{name}-{number}")
    for name in ("README.md", "docs/use.md", "docs/tenancy.md")
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL), 1)
]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONGEST_LINE = 160
LONGEST_PARAGRAPH = 6  # lines, in docs/design
LONGEST = {"README.md": 80, "docs/benchmarks.md": 150}
# Rows that are read by a test: tests_cpp/kernels/inventory_test.cpp.
MAY_HAVE_LONG_ROWS = {"docs/ir.md", "docs/server.md"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def prose(path):
    """The text without fenced code."""
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text())


def paragraphs(text):
    """Lines that stand together; an entry of a list is a paragraph of its own, a table is none."""
    lines = []
    for line in [*text.splitlines(), ""]:
        is_apart = not line.strip() or re.match(r"\s*([-*] |\d+\. |\||#)", line)
        if is_apart:
            yield lines
            lines = []
        if line.strip() and not re.match(r"\s*[|#]", line):
            lines.append(line)


def anchors(path):
    """The ids that GitHub gives the headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", prose(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_examples():
    assert len(EXAMPLES) == 9


@pytest.mark.parametrize("code", EXAMPLES)
def test_example(tiny_model, tmp_path, monkeypatch, code):
    (tmp_path / "model.gguf").symlink_to(pathlib.Path(tiny_model).resolve())
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "an example of the documents", "exec"), {"MODEL": tiny_model})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_lines_are_short(path):
    rows_may = name_of(path) in MAY_HAVE_LONG_ROWS
    long = [
        f"{name_of(path)}:{number}: {len(line)} characters"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE and not (rows_may and line.startswith("|"))
    ]
    assert not long


@pytest.mark.parametrize("name", LONGEST)
def test_a_page_is_a_page(name):
    assert len((ROOT / name).read_text().splitlines()) <= LONGEST[name]


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "design").glob("*.md")), ids=name_of)
def test_paragraphs_are_short(path):
    long = [lines[0] for lines in paragraphs(prose(path)) if len(lines) > LONGEST_PARAGRAPH]
    assert not long


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"\w+:", link):
            continue  # another site's
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_documents_that_are_named_are_there(path):
    named = set(re.findall(r"\bdocs/[\w/.-]+\.(?:md|json|png)", prose(path)))
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_design_and_note_is_in_its_index():
    for folder in (ROOT / "docs" / "design", ROOT / "docs" / "notes"):
        index = (folder / "README.md").read_text()
        assert not [p.name for p in folder.glob("*.md") if p.name != "README.md" and f"({p.name})" not in index]
