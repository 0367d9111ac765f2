"""What is said about the second protocol of walking: published numbers, tables, notes."""

import math

from hybridsde.paper.table import Row

TITLE = "CMU walking, second protocol: 100 frames given, 200 forecast"
PUBLISHED: dict[str, tuple[float, float | None]] = {
    "latent SDE": (9.52, None),
    "NCDSSM": (4.74, None),
    "SDE Matching": (4.26, None),
    "best published": (3.41, 0.27),
}
"""Test MSE on centred data, and its spread where it is given."""
NOTES = """\
MSE on frames 100–299 of the four test sequences, given frames 0–99, after training on the first
200 frames of the 16 training sequences. `MSE` is that of the mean of 200 sampled paths, `one
path` the mean MSE of single paths. `validation` are the three validation sequences, of which two
are walks of another pace. `left out` are the training sequences, each forecast by a fit to the
first 200 frames of the 15 others. Settings were chosen on validation and left-out sequences; the
latter are scored on frames 100–299, so that frames after 200 had a part in the choice, though
never in a fit. With `centred` data every sequence is centred on its own mean over all 300 frames,
so these numbers, like the published ones, know the future mean of each sequence; `uncentred` data
have no such leak.

`gait SDE` is a hybrid SDE: that a walk goes round is known, dφ = ω dt; what comes and goes about
the cycle is learned, with the uncertainty of its rates. Where a walker is in the cycle, the pace
and the own cycle are filtered from the given frames, under 32 guesses of the first phase and two
spreads of the pace (a walk like the others, or an unusual one), which count by their evidence.
Everything is estimated in closed form: seeds differ in their draws alone, and so they do for
`ridge`.

`ridge k×p` regresses k principal components on their last p frames, and is iterated. It knows
walks of the paces that it was trained on; the validation sequences show what it does with others.

`e-pac-bayes` is the latent SDE of the paper with the paper's settings, trained on 200 frames. It
sees the last three of the given frames, so the other 97 tell it nothing; its epoch is chosen on
the validation sequences, and none is left out.

What was tried, on left-out and validation sequences alone: usual paces alone (better on left-out
sequences, several times worse on validation), one wide spread of the pace, fewer harmonics,
smoother cycles, ten shapes, other noise of the phase, noise as in the training sequences (the
filter then trusts single frames too much: on uncentred data it loses the phase of a sequence),
poses that stay on centred data, mirror images. Of regressions: up to 90 frames, which need a
thousand times the penalty, mirror images, blocks of 10 to 100 frames at once, a Gaussian process
on past frames, averages of many: none was much better than `ridge 12×50`. The mean of the gait
SDE and `ridge 12×50`, where the pace is usual, was a little better than either and is left out:
it is two models, and the SDE is the one that can be read. The [ablation](../gait-ablation.md)
repeats some of the choices of the SDE; the others were tried in passing.

Centred test sequences were scored once, after all of that but one choice: the larger noise for
uncentred data was chosen on uncentred left-out and validation sequences when the centred test
scores were known already. Test sequences are harder than the left-out ones for every row, and
`ridge 12×50`, the better regression on left-out sequences, is the worse one on them: sixteen
sequences of one walker say only so much about the next four.

![Joint angles of a test sequence: median, 50 % and 90 % bands, and what was recorded](angles.png)

![The recorded walker and the forecast one](walking.gif)
"""


def tables(rows: list[Row]) -> list[str]:
    """Published numbers, then every row with its test, validation and left-out scores."""
    header = (
        "| known | method | preset | data | MSE | sd | one path | NLL | CRPS | 90 % coverage | "
        "validation MSE | coverage | left-out MSE | coverage | n |"
    )
    lines = [header, "|---" * 15 + "|"]
    for name, (mean, sd) in PUBLISHED.items():
        spread = "–" if sd is None else f"{sd:.2f}"
        lines.append(f"| – | {name} | published | centred | {mean:.2f} | {spread} |{' – |' * 9}")
    return lines + [_line(row) for row in rows]


def _line(r: Row) -> str:
    return (
        f"| {r.known} | {r.method} | {r.preset} | {r.protocol} | {r.mse_mean:.2f} | "
        f"{r.mse_sd:.2f} | {r.mse_sample_mean:.2f} | {r.nll_mean:.2f} | {r.crps_mean:.2f} | "
        f"{r.coverage90_mean:.2f} | {number(r.validation_mse)} | "
        f"{number(r.validation_coverage90)} | {number(r.left_out_mse)} | "
        f"{number(r.left_out_coverage90)} | {r.repetitions} |"
    )


def number(value: float) -> str:
    """Two decimals; a dash where it was not measured."""
    return "–" if math.isnan(value) else f"{value:.2f}"
