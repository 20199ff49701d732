"""Step and prefill times of real GPUs and models: what a fake GPU server needs to know.

A step that decodes B sequences holding K tokens of KV memory and prefills Q prompt tokens takes
a + b B + c K + prefill_b Q seconds. With N requests always in flight, prompts of P and outputs of O tokens, a
server completes l(N) = N / (alpha + beta N) requests per second, alpha = O a and
beta = (O - 1)(b + c (P + O/2)) + prefill_b P.

Sources. The `composed` coefficients are least-squares fits to sums of measured kernel times over the layers of a
model, carried over as facts. GEMMs, norms, rotary, activation and add: github.com/microsoft/vidur, commit
7d47513363ec447a741ac5e47241580b47724fbf, data/profiling/compute (MIT, Copyright (c) Microsoft Corporation).
Attention, output projection, all-reduce and the H100 8B GEMMs: github.com/ai-dynamo/aiconfigurator, commit
095f58a51c4ca8e61b66ec108d86f223f8d559ce, aic-core/src/aiconfigurator_core/systems/data, vllm 0.14.0 (Apache-2.0,
Copyright (c) 2025-2026 NVIDIA CORPORATION & AFFILIATES). Host time per step, 0.126 ms + 0.0044 ms per sequence:
the trained coefficients of BLIS, github.com/kalantar/inference-sim, a fork of inference-sim/inference-sim
(Apache-2.0). KV capacity is arithmetic: 0.9 * 80 GiB per GPU, less the weights and 3.5 GiB, over the KV bytes of
a token. Mean errors of the fits: decode steps 1.5 to 5.7 %, prefills 2.1 to 8 %. The `blis` coefficients are a whole
step as BLIS had it trained in February 2026 (github.com/inference-sim/inference-sim, Apache-2.0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from testbed.serving.rate_curve import RateCurve

STEP_TOKENS = 2048  # the usual token budget of a chunked-prefill step in vLLM


@dataclass(frozen=True)
class Profile:
    """One GPU server with one model.

    Attributes:
        name: the word in a scenario's `profile`.
        decode_a_s: seconds of a step that decodes nothing, above 0.
        decode_b_s: seconds that each decoding sequence adds to a step.
        decode_c_s: seconds that each token in the KV memory of a decoding sequence adds to a step.
        prefill_b_s: seconds that each prefilled token adds to a step.
        kv_tokens: tokens that fit into the KV memory.
        max_sequences: sequences that may run at once; the rest queue.
        step_tokens: the most tokens of a step: one for each decoding sequence, the rest prefill.
        source: where the numbers come from, in a line.
    """

    name: str
    decode_a_s: float
    decode_b_s: float
    decode_c_s: float
    prefill_b_s: float
    kv_tokens: int
    max_sequences: int
    step_tokens: int
    source: str

    def scaled(self, time_scale: float) -> Profile:
        """The same server with every time multiplied by `time_scale`."""
        return replace(
            self,
            decode_a_s=self.decode_a_s * time_scale,
            decode_b_s=self.decode_b_s * time_scale,
            decode_c_s=self.decode_c_s * time_scale,
            prefill_b_s=self.prefill_b_s * time_scale,
        )

    def with_limits(
        self,
        *,
        max_sequences: int | None = None,
        kv_tokens: int | None = None,
        step_tokens: int | None = None,
    ) -> Profile:
        """The same server with other limits; None keeps one as it is."""
        return replace(
            self,
            max_sequences=self.max_sequences if max_sequences is None else max_sequences,
            kv_tokens=self.kv_tokens if kv_tokens is None else kv_tokens,
            step_tokens=self.step_tokens if step_tokens is None else step_tokens,
        )

    def budget_rate_per_s(self, prompt_mean: float, output_mean: float) -> float:
        """The most requests of these mean tokens that full steps let through per second, at speed 1.

        A request takes its prompt and all output tokens but the first from the budgets of steps. The rate curve, which
        knows no budget, may promise more where steps are short.
        """
        in_a_step = self.step_tokens / (prompt_mean + output_mean - 1)
        return in_a_step / (self.decode_a_s + in_a_step * self.rate_curve(prompt_mean, output_mean).beta_s)

    def rate_curve(self, prompt_mean: float, output_mean: float) -> RateCurve:
        """The rate curve for requests of these mean tokens, at speed 1.

        `n_cap` is min(max_sequences, floor(kv_tokens / (P + O))): 0 if not even one such request fits.
        """
        per_sequence_s = self.decode_b_s + self.decode_c_s * (prompt_mean + output_mean / 2)
        return RateCurve(
            alpha_s=output_mean * self.decode_a_s,
            beta_s=(output_mean - 1) * per_sequence_s + self.prefill_b_s * prompt_mean,
            n_cap=min(self.max_sequences, math.floor(self.kv_tokens / (prompt_mean + output_mean))),
        )


def _composed(
    name: str, *, a_ms: float, b_ms: float, c_ms: float, prefill_b_ms: float, kv_tokens: int
) -> Profile:
    """A profile composed of measured kernel times, given in milliseconds as its source gives them."""
    return Profile(
        name=name,
        decode_a_s=a_ms / 1000,
        decode_b_s=b_ms / 1000,
        decode_c_s=c_ms / 1000,
        prefill_b_s=prefill_b_ms / 1000,
        kv_tokens=kv_tokens,
        max_sequences=256,  # the default of vLLM
        step_tokens=STEP_TOKENS,
        source="composed of kernel times measured by vidur (MIT) and aiconfigurator (Apache-2.0)",
    )


_LLAMA3_8B_H100 = _composed(
    "llama3-8b_h100_tp1_composed",
    a_ms=6.67876,
    b_ms=0.0127143,
    c_ms=4.21772e-05,
    prefill_b_ms=0.0209373,
    kv_tokens=438_623,
)

_LLAMA31_8B_H100_TP2 = Profile(
    name="llama3.1-8b_h100_tp2_blis",
    decode_a_s=6910.42e-6,
    decode_b_s=2.84e-6,
    decode_c_s=0.0,
    prefill_b_s=17.67e-6,
    kv_tokens=999_775,
    max_sequences=256,
    step_tokens=STEP_TOKENS,
    source="beta coefficients of BLIS (Apache-2.0), trained on vLLM",
)

_SMALL = Profile(
    name="small",
    decode_a_s=0.012,
    decode_b_s=0.0004,
    decode_c_s=0.0,
    prefill_b_s=60e-6,
    kv_tokens=40_000,
    max_sequences=32,
    step_tokens=STEP_TOKENS,
    source="chosen by hand: a small server on which the public incidents are staged",
)

# The true profile carries 603 requests/s a server at 64 and 8 tokens, since prefill caps it: too few to load the
# emulator itself.
_BENCH = Profile(
    name="bench",
    decode_a_s=_LLAMA3_8B_H100.decode_a_s,
    decode_b_s=_LLAMA3_8B_H100.decode_b_s / 100,
    decode_c_s=_LLAMA3_8B_H100.decode_c_s / 100,
    prefill_b_s=_LLAMA3_8B_H100.prefill_b_s / 100,
    kv_tokens=_LLAMA3_8B_H100.kv_tokens,
    max_sequences=4096,
    step_tokens=32 * STEP_TOKENS,  # or the budget of a step would cap it at 4,500 requests/s
    source="llama3-8b_h100_tp1_composed with all but the fixed part of a step divided by 100, and 32 times its tokens",
)

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        _composed(
            "llama3-8b_a100_tp1_composed",
            a_ms=11.0503,
            b_ms=0.046302,
            c_ms=8.21681e-05,
            prefill_b_ms=0.0723242,
            kv_tokens=438_623,
        ),
        _LLAMA3_8B_H100,
        _composed(
            "llama3-70b_a100_tp4_composed",
            a_ms=27.0388,
            b_ms=0.137658,
            c_ms=5.582e-05,
            prefill_b_ms=0.194741,
            kv_tokens=467_240,
        ),
        _composed(
            "llama3-70b_a100_tp8_composed",
            a_ms=16.6517,
            b_ms=0.0928514,
            c_ms=2.79483e-05,
            prefill_b_ms=0.121672,
            kv_tokens=1_365_083,
        ),
        _composed(
            "llama3-70b_h100_tp4_composed",
            a_ms=16.8584,
            b_ms=0.0411575,
            c_ms=2.83468e-05,
            prefill_b_ms=0.0694068,
            kv_tokens=467_240,
        ),
        _composed(
            "llama3-70b_h100_tp8_composed",
            a_ms=11.4879,
            b_ms=0.0362214,
            c_ms=1.45173e-05,
            prefill_b_ms=0.0484417,
            kv_tokens=1_365_083,
        ),
        _LLAMA31_8B_H100_TP2,
        _SMALL,
        _BENCH,
    )
}
"""Every profile that a scenario may name."""
