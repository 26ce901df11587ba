"""``smembench reproduce``: the documents' tables and claims on this device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli import options
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import takes

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.studies.reproduce.measures import Here
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running)
def reproduce(
    *, device: str | None = options.DEVICES, why: bool = options.WHY, sampling: Sampling, running: Running
) -> None:
    """Check published claims about shared memory on this machine.

    The claims are those of three documents: slides after Professional CUDA C Programming, NVIDIA's programming guide,
    and a blog post. Their tables come first, beside this device's figures, then a line per claim: whether it holds, the
    value here, and what it says. "yes" and "no" mean that the whole 95 % interval lies inside or outside the claimed
    range, "more" that it lies above it, "not any more" that the claim held on the document's own devices.

    Without a GPU the CPU measures what it can, and in a checkout the rest is shown from the stored run of a GPU. To
    store a run: smembench run documents; to see it again: smembench show last --documents.

    Examples:

      smembench reproduce
      smembench reproduce --why
      smembench reproduce --quick --export claims.md
      smembench reproduce --json | jq '.claims[] | select(.holds != "yes")'
      smembench reproduce --device cpu --export documents.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_toml
    from smembench.studies.reproduce.devices import probed, reference
    from smembench.views.reproduce import records, reproduction

    overrides = [] if device is None else [f"device={device}"]
    config = from_toml(Path("documents"), overrides, sampling.config())
    stored = reference()
    judged: list[Here] = []

    def draw(run: Run) -> list[Section]:
        judged.extend(probed(run))
        return reproduction(run, judged, stored, why=why)

    measure(config, running, draw=draw, parts=lambda: {"claims": records(judged, stored)})
