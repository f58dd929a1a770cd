"""What numpy answers for textual selections.

Reads one JSON object per line, {"text", "shape"}, and adds "result": null for an error, else the result's
shape and a checksum of the flat indices in it, in order. With --golden, makes up the questions itself
(repeatable); that is how golden.jsonl was written:

    python3 answer.py --golden > golden.jsonl
"""

import json
import random
import sys

import numpy as np


def answer(question):
    shape = question["shape"]
    a = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
    try:
        got = np.asarray(eval(f"a[{question['text'].strip() or '...'}]", {"a": a}))
    except (IndexError, ValueError):
        return {**question, "result": None}
    weights = np.arange(1, got.size + 1, dtype=np.uint64)
    checksum = int((weights * got.ravel().astype(np.uint64)).sum())
    return {**question, "result": {"shape": list(got.shape), "checksum": checksum}}


def entry(rng, n):
    def bound():
        return "" if rng.random() < 0.3 else str(rng.randint(-2 * n - 2, 2 * n + 2))

    kind = rng.random()
    if kind < 0.25:
        return str(rng.randint(-n - 1, n)) if rng.random() < 0.3 else str(rng.randint(-n, n - 1) if n else 0)
    if kind < 0.5:
        return f"{bound()}:{bound()}"
    step = rng.choice([1, 2, 3, 7, n + 1, -1, -2, -3, -n - 1, 0 if rng.random() < 0.2 else 1])
    return f"{bound()}:{bound()}:{step}"


def questions(count):
    rng = random.Random(1812)
    for _ in range(count):
        shape = [rng.choice([0, 1, 2, 3, 5, 8, 13]) for _ in range(rng.randint(0, 4))]
        entries = [entry(rng, n) for n in shape[: rng.randint(0, len(shape))]]
        if rng.random() < 0.3:
            entries.insert(rng.randint(0, len(entries)), "...")
        if rng.random() < 0.05:
            entries.append(rng.choice(["0", "...", ":"]))
        yield {"text": ", ".join(entries), "shape": shape}


if __name__ == "__main__":
    asked = questions(400) if "--golden" in sys.argv else map(json.loads, sys.stdin)
    for question in asked:
        print(json.dumps(answer(question)))
