"""``smembench list``: kernels, compilers, lessons, configs and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from smembench.cli.options import Outputs
from smembench.cli.output import only_json, opened
from smembench.cli.signature import argument, flag, takes

if TYPE_CHECKING:
    from smembench.model.device import DeviceInfo

What = Literal["kernels", "compilers", "lessons", "configs", "gpus", "devices"]
_PARTS = get_args(What)
_HELP = f"{', '.join(_PARTS)}. (default: all of them)"


@takes(outputs=Outputs)
def list_(
    what: What | None = argument("WHAT", _HELP),
    *,
    schema: bool = flag("Print the JSON schema of configs, for editors."),
    outputs: Outputs,
) -> None:
    """List kernels, compilers, lessons, configs, GPUs' data sheets and devices.

    Examples:

      smembench list
      smembench list configs
      smembench list kernels --json
      smembench list --schema > smembench.schema.json
    """
    from smembench.devices.cuda_description import why_unusable
    from smembench.kernels import registry
    from smembench.store.run_folder import to_json
    from smembench.views import list as parts
    from smembench.views.console import notes, say

    target = opened(outputs, but=only_json("lists have lines, not tables; give .json"))
    if schema:
        from smembench.run.config import Config

        made = Config.model_json_schema()
        target.show_lines([to_json(made).rstrip()], **made)
        return
    for mistake in registry.mistakes():
        say(notes, mistake)
    chosen = [what] if what else _PARTS
    listed = {name: parts.devices(_devices()) if name == "devices" else getattr(parts, name)() for name in chosen}
    lines = [line for name, records in listed.items() for line in parts.lines(name, records)]
    if "devices" in listed and (reason := why_unusable()):
        lines.append(f"  no GPU: {reason}")
    target.show_lines(lines, **listed)


def _devices() -> list[DeviceInfo]:
    from smembench.devices.cuda_description import gpu_count
    from smembench.devices.select import open_device

    return [open_device(name).info for name in (*(f"cuda:{index}" for index in range(gpu_count())), "cpu")]
