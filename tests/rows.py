"""Each row and each case of tests/requirements.md has a test, an example or a bench that names it."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
NUMBERS = r"((?:\d+(?:\.\d+)?(?:, | and )?)+)"
ROW = re.compile(r"\brows? " + NUMBERS, re.IGNORECASE)
CASE = re.compile(r"\bacceptance cases? " + NUMBERS, re.IGNORECASE)
COVERED = re.compile(r"\bCase<(\d+)>")
# What begins a test, an example or a bench; and what a comment is there.
CODE = {".cpp": (re.compile(r"TEST(_P|_F)?\("), "//"), ".sh": (re.compile(r"it \""), "#")}


def wanted(kind):
    page = (root / "tests" / "requirements.md").read_text()
    heading = {"row": "## Rows", "case": "## Acceptance cases"}[kind]
    table = page.split(heading)[1].split("\n## ")[0]
    return dict(re.findall(r"^\| (\d[\d.]*) \| (.*) \|$", table, re.MULTILINE))


def numbers(pattern, text):
    return {number for match in pattern.finditer(text) for number in re.findall(r"\d+(?:\.\d+)?", match[1])}


def comment_above(lines, at, mark):
    """The comment that ends right before this line, and the one on it."""
    first = at
    while first > 0 and lines[first - 1].lstrip().startswith(mark):
        first -= 1
    return " ".join(line.strip(" " + mark) for line in lines[first:at]) + " " + lines[at].partition(mark)[2]


def named_by_tests():
    rows, cases = set(), set()
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix not in CODE:
            continue
        begins, mark = CODE[path.suffix]
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            if begins.match(line):
                said = comment_above(lines, at, mark)
                rows |= numbers(ROW, said)
                cases |= numbers(CASE, said)
        in_test = False
        for line in lines:
            in_test = in_test or bool(begins.match(line))
            if in_test and "COVERS(" in line:
                cases |= set(COVERED.findall(line))
    return rows, cases


def named_by_programs():
    """Examples are run by the tests, benches by make bench."""
    said = ""
    for path in sorted((root / "examples").glob("*.cpp")):
        said += " ".join(line[2:] for line in path.read_text().splitlines()[:10] if line.startswith("//")) + "\n"
    for path in sorted((root / "bench").glob("*_bench.cpp")):
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            if line.startswith("void show_"):
                said += comment_above(lines, at, "//") + "\n"
    return numbers(ROW, said)


rows, cases = named_by_tests()
rows |= named_by_programs()
problems = []
for kind, named in (("row", rows), ("acceptance case", cases)):
    known = wanted(kind.split()[-1])
    if not known:
        problems.append(f"tests/requirements.md lists no {kind}")
    problems += [f"no test names {kind} {number}: {what}" for number, what in known.items() if number not in named]
    problems += [f"a test names {kind} {number}, which tests/requirements.md does not have"
                 for number in sorted(named - set(known))]
if problems:
    sys.exit("\n".join(problems))
print(f"{len(wanted('row'))} rows and {len(wanted('case'))} acceptance cases: each is named by a test")
