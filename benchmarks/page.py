"""What was measured, as docs/performance.md."""


def page(results: dict) -> str:
    """docs/performance.md."""
    machine = results["machine"]
    lines = [
        "# Performance",
        "",
        "Written by `make bench`; numbers in `benchmarks/results.json`. One gradient of the loss "
        "with path KL, net 3-100-100-100-3, softplus, Euler steps. Peers have plain weights; ours "
        "are Bayesian: `path` draws two sets of weights and holds them along the paths, `local` "
        "redraws them at every step, which doubles the arithmetic. torchsde runs `sdeint` with "
        "`euler` and `logqp`, and a `BrownianInterval` that is told the step; "
        "diffrax runs `Euler` with a `VirtualBrownianTree`, its default "
        "adjoint, and every step saved. Times are medians of single "
        "calls, in bursts of one system after the other in one process; ± is half the distance "
        "between the quartiles. "
        "A ratio above one says how many times faster we are.",
        "",
        f"Machine: {machine['cores']} cores ({machine['processor']}), JAX {machine['jax']}, "
        f"torch {machine['torch']}, torchsde {machine['torchsde']}, "
        f"diffrax {machine['diffrax']}.",
        "",
    ]
    for what in ("gradient", "forward"):
        lines += [
            f"## {what.capitalize()}",
            "",
            "| mode | paths | steps | ours, ms | torchsde, ms | ratio | diffrax, ms | ratio |",
            "|---" * 8 + "|",
        ]
        entries = [r for r in results["ratios"] if r["what"] == what]
        for one in (r for r in entries if r["peer"] == "torchsde"):
            same = ("mode", "paths", "steps")
            other = next(
                r
                for r in entries
                if r["peer"] == "diffrax" and all(r[name] == one[name] for name in same)
            )
            cells = [
                one["mode"],
                str(one["paths"]),
                str(one["steps"]),
                _time(one["ours_ms"], one["ours_spread"]),
                _time(one["peer_ms"], one["peer_spread"]),
                f"{one['ratio']:.2g}",
                _time(other["peer_ms"], other["peer_spread"]),
                f"{other['ratio']:.2g}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "## How time grows",
        "",
        "Slope of ln time against ln size, between 64 and 1280 paths or 100 and 1000 steps.",
        "",
        "| mode | | along | at | slope |",
        "|---" * 5 + "|",
    ]
    for s in results["slopes"]:
        lines.append(f"| {s['mode']} | {s['what']} | {s['along']} | {s['at']} | {s['slope']:.2f} |")
    if "memory" in results:
        size = results["memory_size"]
        lines += [
            "",
            f"## Memory of one gradient, {size['paths']} paths, {size['steps']} steps",
            "",
            "Peak of a process, less that of two steps.",
            "",
            "| system | MiB |",
            "|---|---|",
            *(f"| {name} | {value:.0f} |" for name, value in results["memory"].items()),
        ]
    if "lorenz" in results:
        table = results["lorenz"]
        lines += [
            "",
            "## Whole fits: the paper's Lorenz table",
            "",
            f"{table['fits']} fits of 100 epochs (8 rows, 50 repetitions each): "
            f"{table['training_s']:.0f} s of training, {table['compile_s']:.0f} s of compilation, "
            f"{table['scoring_s']:.0f} s of scoring, on {table['devices']} {table['device']} "
            "devices.",
        ]
    if "gpu" in results:
        table, forecast = results["gpu"]["lorenz"], results["gpu"]["forecast"]
        lines += [
            "",
            f"## On one {table['device']}",
            "",
            "From `benchmarks/gpu.json`, the output of `benchmarks/lorenz_table.py` and "
            "`benchmarks/forecast.py` on that machine.",
            "",
            f"- The paper's Lorenz table, {table['fits']} fits as one program: "
            f"{table['training_s']:.1f} s of training, {table['compile_s']:.0f} s of compilation, "
            f"{table['scoring_s']:.0f} s of scoring.",
            f"- A forecast of {forecast['paths']:,} paths × {forecast['steps']} steps: "
            f"{forecast['run_s']:.3f} s, which is {100 * forecast['share_of_arithmetic']:.0f} % of "
            "the peak single-precision arithmetic and "
            f"{100 * forecast['share_of_bandwidth']:.0f} % of the memory bandwidth "
            "(what counts is said in `benchmarks/forecast.py`).",
        ]
    return "\n".join(lines) + "\n"


def _time(milliseconds: float, spread: float) -> str:
    return f"{milliseconds:.3g} ± {100 * spread:.0f} %"
