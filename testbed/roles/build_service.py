"""Scenario to the service model of a server."""

from __future__ import annotations

from testbed.draw import key_base
from testbed.scenario.schema import Cell, Service, SharingWords
from testbed.serving.antagonist import Antagonist
from testbed.serving.batch import Batch
from testbed.serving.cores import SharedCores
from testbed.serving.prefix_cache import PrefixCache
from testbed.serving.service import (
    Draw,
    ServiceModel,
    even_exponential_work,
    exponential_work,
    fixed_work,
    normal_work,
)
from testbed.serving.sharing import ProcessorSharing
from testbed.serving.slots import Slots
from testbed.traffic.capacity import cell_profile, service_mean_s


def build_service(cell: Cell, server: str, class_count: int, stretch: float, seed: int) -> ServiceModel:
    """The service model of one server of a cell.

    Work is keyed by request id: every arm and engine sees the same demand of the same request. What an antagonist
    leaves is keyed by the server's name.
    """
    profile = cell_profile(cell, stretch)
    if profile is not None:
        cache = None if cell.prefix_cache_tokens is None else PrefixCache(cell.prefix_cache_tokens)
        return Batch(profile, class_count, prefix_cache=cache)
    service = cell.service
    assert service is not None, "a cell has a profile or a service"
    return _simple_service(service, server, class_count, seed)


def _simple_service(service: Service, server: str, class_count: int, seed: int) -> ServiceModel:
    draw = _work(service, key_base(seed, "work"))
    if service.slots is not None:
        return Slots(slots=service.slots, mean_s=service_mean_s(service), draw=draw, class_count=class_count)
    if service.sharing is not None:
        return SharedCores(
            allocation=service.sharing.allocation,
            mean_s=service_mean_s(service),
            draw=draw,
            class_count=class_count,
            antagonist=_antagonist(service.sharing, key_base(seed, server, "antagonist")),
        )
    curve = service.rate_curve
    assert curve is not None, "a service has slots, sharing or a rate curve"
    return ProcessorSharing(
        capacity_per_s=curve.capacity, half=curve.half, draw=draw, class_count=class_count
    )


def _work(service: Service, base: int) -> Draw:
    if service.normal is not None:
        return normal_work(base, service.normal.mean, service.normal.sd)
    is_fixed = service.fixed is not None or service.work == "fixed"
    if is_fixed:
        return fixed_work
    return exponential_work(base) if service.sampling == "chance" else even_exponential_work()


def _antagonist(words: SharingWords, base: int) -> Antagonist | None:
    if words.antagonist is None:
        return None
    return Antagonist(words.antagonist.cores, words.antagonist.probabilities, words.antagonist.every, base)
