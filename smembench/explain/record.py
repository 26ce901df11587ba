"""An explanation as plain data, for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from smembench.explain.analysis import Explanation
from smembench.explain.costs import Access, Costs
from smembench.explain.cure import Cure, cures
from smembench.explain.roof import Work, on_chip_share, ridge, roofs, work_of
from smembench.explain.tiles import TileTraffic
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES
from smembench.model.device import DeviceInfo


def _common(access: Access) -> dict[str, Any]:
    site = access.site
    place = {"line": site.line, "kind": site.kind, "array": site.array}
    return {**place, "source": access.source, "requests": access.requests}


def _tile(tiles: TileTraffic) -> dict[str, Any]:
    access, operand = tiles.access, tiles.access.operand
    return {
        "line": access.line,
        "kind": access.kind,
        "matrix": access.matrix,
        "array": access.array,
        "source": tiles.source,
        "rows": access.rows,
        "columns": access.columns,
        "swizzle_bytes": operand.swizzle if operand else ROW_BYTES,
        "transposed": operand and operand.transposed,
        "leading_bytes": operand and operand.leading,
        "stride_bytes": operand and operand.stride,
        "blocks": access.blocks,
        "count": tiles.count,
        "shared_bytes": tiles.shared_bytes,
        "global_bytes": tiles.global_bytes,
        "arriving_bytes": tiles.arriving_bytes,
        "wavefronts": tiles.wavefronts if operand else None,
        "wavefronts_per_core_matrix": tiles.per_core_matrix,
    }


def cure_dict(cure: Cure) -> dict[str, Any]:
    """The cure of an array, or the best attempt, as plain data."""
    best = cure.best
    layout = None if best is None else "pad" if cure.pad_bytes else "swizzle"
    return {
        "array": cure.tile.array.name,
        "layout": layout,
        "row_bytes": cure.row_bytes if best else None,
        "pad_bytes": cure.pad_bytes if layout == "pad" else None,
        "element": cure.tile.expression(best.layout) if best and layout == "swizzle" else None,
        "cures": cure.cures,
        "free": best is not None and best.free,
        "wavefronts": cure.plain.wavefronts,
        "wavefronts_then": (best or cure.plain).wavefronts,
        "accesses": [
            {
                "line": change.site.line,
                "kind": change.site.kind,
                "wavefronts_per_request": change.before,
                "wavefronts_per_request_then": change.after,
            }
            for change in cure.changes
        ],
    }


def costs_dict(explained: Costs) -> dict[str, Any]:
    """The cost of the accesses of a launch, and the mistakes of its kernel, as plain data."""
    resident, code = explained.occupancy, explained.code
    return {
        "source_file": explained.trace.filename,
        "compiler": explained.compiler or None,
        "shared_bytes": explained.shared_bytes,
        "threads": explained.threads,
        "mistakes": [asdict(mistake) for mistake in explained.trace.mistakes],
        "not_followed": [{"line": omission.line, "text": omission.text} for omission in explained.trace.unfollowed],
        "sampled_blocks": explained.trace.sampled and explained.trace.sampled._asdict(),
        "merged_by_compiler": [
            {"line": site.line, "kind": site.kind, "array": site.array, "bytes": site.width, "merged_bytes": wide.width}
            for wide in explained.trace.merged
            for site in (wide.site,)
        ],
        "unmatched_widths": [{"memory": space, "kind": kind} for space, kind in explained.trace.unmatched],
        "shared_atomics_not_counted": [*explained.shared_atomics],
        "idle_shared_requests": dict(explained.idle),
        "shared": [
            {
                **_common(access),
                "wavefronts_per_request": access.wavefronts,
                "ideal_wavefronts_per_request": access.ideal,
                "conflict_degree": access.degree,
                "broadcast": access.broadcast,
            }
            for access in explained.shared
        ],
        "distributed": [{**_common(access), "bytes": access.bytes} for access in explained.distributed],
        "cures": [cure_dict(cure) for cure in cures(explained)],
        "global": [
            {
                **_common(access),
                "sectors_per_request": access.sectors,
                "ideal_sectors_per_request": access.ideal,
                "efficiency": access.efficiency,
            }
            for access in explained.memory
        ],
        "constant": [{**_common(access), "addresses_per_request": access.addresses} for access in explained.constant],
        "traffic": [
            {
                "array": access.array,
                "kind": access.kind,
                "accesses_per_element": access.per_element,
                "requests": access.requests,
                "sectors": access.sectors,
                "bytes": access.bytes,
            }
            for access in explained.traffic
        ],
        "tiles": [_tile(traffic) for traffic in explained.tiles],
        "machine_code": None
        if code is None
        else {
            "registers_per_thread": code.registers,
            "spilled_bytes": code.spilled_bytes,
            "instructions": code.instructions,
            "main_loop": code.loop and {**asdict(code.loop), "share_of_arithmetic_peak": code.loop.bound},
        },
        "occupancy": None
        if resident is None
        else {
            "blocks_per_sm": resident.blocks,
            "warps_per_sm": resident.warps,
            "fraction": resident.fraction,
            "limiter": resident.limiter,
            "counts_registers": code is not None,
        },
    }


def to_dict(explained: Explanation, capability: str | None, device: DeviceInfo | None) -> dict[str, Any]:
    """All figures of an explanation; ``device`` is the one whose roofs it has, if any."""
    return {
        "case_id": explained.case.id,
        **costs_dict(explained),
        "arithmetic_intensity_flop_per_byte": explained.intensity,
        "on_chip_share_of_arithmetic_peak": on_chip_share(explained.work, capability),
        "device": None if device is None else device.model,
        "ridge_flop_per_byte": None if device is None else ridge(explained.work.dtype, device),
        "roofs": _roofs(explained.work, device),
    }


def roofs_dict(explained: Costs, device: DeviceInfo | None) -> dict[str, Any]:
    """The roofs of a launch of which no FLOPs are known; empty without a device."""
    return {} if device is None else {"device": device.model, "roofs": _roofs(work_of(explained), device)}


def _roofs(work: Work, device: DeviceInfo | None) -> list[dict[str, Any]]:
    return [
        {
            "name": roof.name,
            "amount": roof.amount,
            "unit": roof.unit,
            "peak_per_s": roof.peak,
            "least_ms": roof.milliseconds,
        }
        for roof in roofs(work, device)
    ]
