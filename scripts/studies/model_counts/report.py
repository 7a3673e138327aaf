"""Page and tables from results.jsonl."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from scripts.studies.kit.page import Parts
from scripts.studies.kit.results import Row, pick, read_results
from scripts.studies.kit.tables import markdown, write_rows
from scripts.studies.model_counts.run import HOME, RESULTS

TABLE = HOME / "models.csv"
CLOSE = 0.03
_ROUNDING = 0.005  # timm states giga multiply-adds with two digits
_MILLIONS_ROUNDING = 0.006


def gmacs(row: Row) -> float:
    """Multiply-adds of a forward pass as timm counts them: of products, and FLOPs of norms."""
    return float(row["forward_products"] / 2 + row["forward_norms"]) / 1e9


def difference(row: Row) -> float:
    """Relative difference of the multiply-adds of a forward pass from timm's."""
    return gmacs(row) / float(row["gmacs"]) - 1


def is_close(row: Row) -> bool:
    """Within 3 %, or within what timm rounds."""
    ours = gmacs(row)
    return abs(difference(row)) <= CLOSE or abs(ours - row["gmacs"]) <= _ROUNDING


def same_parameters(row: Row) -> bool:
    """Whether the parameters are those that timm states, as it rounds them."""
    return bool(abs(row["parameters"] / 1e6 - row["parameters_millions"]) <= _MILLIONS_ROUNDING)


def more_words(rows: Sequence[Row]) -> str:
    """Range of what models have more than timm states; other models of today are left out."""
    more = [
        100 * (row["parameters"] / 1e6 / row["parameters_millions"] - 1)
        for row in rows
        if not is_another(row)
    ]
    return f"{min(more):.1f} to {max(more):.1f} %"


def family(name: str) -> str:
    """Begin of a model's name: `vit`, `swinv2`, ..."""
    return name.split("_", maxsplit=1)[0].rstrip("0123456789")


def far_table(rows: Sequence[Row]) -> list[str]:
    """Families of models that differ by more than 3 %."""
    by_family: dict[str, list[Row]] = {}
    for row in rows:
        by_family.setdefault(family(row["model"]), []).append(row)
    body = []
    for name, rows_of_family in sorted(by_family.items(), key=lambda item: -len(item[1])):
        least, most = (100 * end(map(difference, rows_of_family)) for end in (min, max))
        body.append(
            [
                name,
                str(len(rows_of_family)),
                rows_of_family[0]["model"],
                f"{least:+.1f} to {most:+.1f} %",
            ]
        )
    return markdown(["family", "models", "such as", "difference"], body)


def is_another(row: Row) -> bool:
    """Whether timm builds another model under this name today: over 1 % other parameters."""
    stated = row["parameters_millions"]
    return bool(abs(row["parameters"] / 1e6 - stated) > 0.01 * stated)


def reason_of(error: str) -> str:
    """The reason of a refusal without the model's name."""
    words = re.sub(r"'[^']*'", "...", error.partition(": ")[2]).partition("; did you")[0]
    return re.sub(r"^timm:\S+:? ", "", words).partition(" (")[0][:120]


def error_table(rows: Sequence[Row]) -> list[str]:
    """Why models were not read, and how many."""
    if not rows:
        return ["None."]
    reasons = Counter(reason_of(row["error"]) for row in rows)
    return markdown(
        ["reason", "models"], [[reason, str(number)] for reason, number in reasons.most_common(8)]
    )


def counter_table(rows: Sequence[Row]) -> list[str]:
    """Models of transformers beside PyTorch's own counter."""
    body = [
        [
            row["model"],
            row["class"],
            f"{row['parameters'] / 1e6:.2f}",
            f"{row['forward_products'] / 1e9:.3f}",
            f"{100 * (row['forward_products'] / row['counter_forward'] - 1):+.2f} %",
            f"{row['backward_products'] / 1e9:.3f}",
            f"{100 * (row['backward_products'] / row['counter_backward'] - 1):+.2f} %",
        ]
        for row in rows
    ]
    head = ["model", "class", "parameters, M", "forward, GFLOP", "difference",
            "backward, GFLOP", "difference"]  # fmt: skip
    return markdown(head, body)


def parts() -> Parts:
    """Numbers and tables of the page; models.csv has a row for each model."""
    results = read_results(RESULTS)
    timm, counted = pick(results, kind="timm"), pick(results, kind="transformers")
    failed = [row for row in timm if "error" in row]
    read = [row for row in timm if "error" not in row]
    far = [row for row in read if not is_close(row)]
    other = [row for row in read if not same_parameters(row)]
    steps = sorted(row["step_flops"] / row["forward_flops"] for row in read)
    write_rows(
        TABLE,
        [
            {
                "model": row["model"],
                "image_size": row["image_size"],
                "gmacs_timm": row["gmacs"],
                "gmacs": round(gmacs(row), 4),
                "difference_pct": round(100 * difference(row), 2),
                "parameters_millions_timm": row["parameters_millions"],
                "parameters": row["parameters"],
                "step_over_forward": round(row["step_flops"] / row["forward_flops"], 3),
            }
            for row in read
        ],
    )
    return {
        "num_timm": str(len(timm)),
        "num_read": str(len(read)),
        "num_failed": str(len(failed)),
        "share_close": f"{100 * (1 - len(far) / len(read)):.1f} %",
        "num_far": str(len(far)),
        "num_another": str(sum(map(is_another, far))),
        "far": far_table(far),
        "errors": error_table(failed),
        "num_other": str(len(other)),
        "num_same": str(len(read) - len(other)),
        "more_range": more_words(other),
        "others": ", ".join(row["model"] for row in other[:8]) or "none",
        "step_median": f"{steps[len(steps) // 2]:.2f}",
        "step_range": f"{steps[len(steps) // 20]:.2f} to {steps[-len(steps) // 20]:.2f}",
        "counter": counter_table(counted),
        "same_transformers": str(
            sum(row["parameters"] == row["model_parameters"] for row in counted)
        ),
        "num_transformers": str(len(counted)),
    }
