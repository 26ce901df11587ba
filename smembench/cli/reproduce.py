"""``smembench reproduce``: the documents' tables on this device."""

from __future__ import annotations

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes


@takes(sampling=Sampling, running=Running)
def reproduce(*, device: options.Devices = None, sampling: Sampling, running: Running) -> None:
    """The documents' tables at their sizes and blocks, their figures beside this device's.

    The last column says whether each claim (shared faster than naive, padded faster than unpadded, tiled faster
    than naive) holds here: yes or NO only where the 95 % intervals of the two medians are apart.

    Examples:

      smembench reproduce

      smembench reproduce --device cpu --csv documents.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags
    from smembench.studies.reproduce.figures import sweeps
    from smembench.views.reproduce import reproduction

    config = from_flags({"name": "documents", **sampling.config(), "sweep": sweeps(device)})
    measure(config, running, draw=reproduction)
