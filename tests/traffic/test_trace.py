"""Public traces: the formats as published, their statistics, windows, and what malformed files are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.errors import RunError
from testbed.scenario.load import load_scenario
from testbed.scenario.schema import Trace
from testbed.serving.prefix_cache import PrefixCache
from testbed.traffic.trace import deal, read_trace

DATA = Path(__file__).parents[3] / "shared" / "data" / "traces"
AZURE_YAML = Path(__file__).parents[2] / "scenarios" / "azure.yaml"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the folder of public traces is not here")

# As published: seven decimals, CRLF, the last line without an end.
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,0\r\n"
    "2023-11-16 18:15:51.2224670,879,55"
)
MOONCAKE = "".join(
    json.dumps({"timestamp": at_ms, "input_length": 600 + i, "output_length": i, "hash_ids": [0, i]}) + "\n"
    for i, at_ms in enumerate([0, 0, 3000, 5999])
)


def trace_of(path: Path, form: str = "azure", **words: Any) -> Trace:
    return Trace.model_validate({"path": str(path), "format": form, **words})


def written(folder: Path, text: str | bytes, name: str = "trace") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(trace: Trace, seed: int = 1, stretch: float = 1.0) -> Any:
    return read_trace(trace, seed=seed, stretch=stretch)


def test_the_azure_format_is_read_as_published(tmp_path: Path) -> None:
    rows = read(trace_of(written(tmp_path, AZURE)))

    assert rows.at_s == pytest.approx([0.0, 4.314579, 4.541877])
    assert rows.prompt_tokens.tolist() == [374, 396, 879]
    assert rows.output_tokens.tolist() == [44, 1, 55]  # no output counts as one token


def test_azure_instants_may_carry_an_offset_as_in_the_trace_of_2024(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01.017335+00:00,2399,6\n"

    assert read(trace_of(written(tmp_path, text))).at_s == pytest.approx([0.0, 1.007405])


def test_mooncake_requests_spread_over_their_steps_of_three_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, MOONCAKE)

    rows = read(trace_of(path, "mooncake"))

    steps_s = np.array([0.0, 0.0, 3.0, 5.999])[rows.row]
    assert ((rows.at_s > steps_s) & (rows.at_s < steps_s + 3.0)).all()
    assert (np.diff(rows.at_s) >= 0.0).all()
    assert rows.prompt_tokens.tolist() == (600 + rows.row).tolist()
    assert rows.at_s.tolist() == read(trace_of(path, "mooncake")).at_s.tolist()
    assert rows.at_s.tolist() != read(trace_of(path, "mooncake"), seed=2).at_s.tolist()


def test_the_blocks_of_a_mooncake_prompt_are_its_chain(tmp_path: Path) -> None:
    """512 tokens each but for the last; a trace without hash ids, or of another format, shares nothing."""
    path = written(tmp_path, MOONCAKE)
    bare = written(tmp_path, '{"timestamp": 0, "input_length": 700, "output_length": 1}\n', "bare")

    rows = read(trace_of(path, "mooncake"))

    for i, row in enumerate(rows.row.tolist()):
        keys, tokens = (
            rows.sharing.of_root(np.array([i])).pairs[::2],
            rows.sharing.of_root(np.array([i])).pairs[1::2],
        )
        assert [key & 0xFFFFFFFF for key in keys] == [0, row]
        assert list(tokens) == [512, 88 + row]
    assert not read(trace_of(bare, "mooncake")).sharing
    assert not read(trace_of(written(tmp_path, AZURE, "azure"))).sharing


def test_a_window_is_cut_in_the_time_of_the_file_and_then_begins_at_zero(tmp_path: Path) -> None:
    path = written(tmp_path, AZURE)

    rows = read(trace_of(path, **{"from": "4 s", "for": "500 ms", "rate_factor": 2.0}))

    assert rows.at_s == pytest.approx([0.314579 / 2])
    assert rows.row.tolist() == [1]


def test_a_stretched_trace_doubles_every_instant_to_the_bit(tmp_path: Path) -> None:
    path = written(tmp_path, MOONCAKE)
    words = {"from": "0.7 s", "for": "5.1 s", "rate_factor": 3.0}
    doubled = {"from": f"{2 * 0.7!r} s", "for": f"{2 * 5.1!r} s", "rate_factor": 3.0}

    once = read(trace_of(path, "mooncake", **words))
    twice = read(trace_of(path, "mooncake", **doubled), stretch=2.0)

    assert len(once) > 0
    assert (2 * once.at_s).tolist() == twice.at_s.tolist()


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path, AZURE)
    before = len(read(trace_of(path)))

    written(tmp_path, AZURE + "\r\n2023-11-16 18:15:52.0,1,1")

    assert (before, len(read(trace_of(path)))) == (3, 4)


def test_a_relative_path_is_looked_for_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, AZURE, "far.csv")
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))

    assert len(read(trace_of(Path("far.csv")))) == 3
    assert len(read(trace_of(Path("../elsewhere/far.csv")))) == 3


def test_the_folder_of_the_environment_may_be_the_one_that_holds_the_file_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of `azure.yaml` leads out of the checkout; a user has the file in a folder of their own."""
    trace = load_scenario(AZURE_YAML).arms["static"].traces["conv"]
    written(tmp_path, AZURE, Path(trace.path).name)
    away = tmp_path / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))

    assert len(read(trace)) == 3


def test_the_path_below_the_folder_of_the_environment_goes_before_the_bare_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", AZURE, "far.csv")
    written(tmp_path, "of another kind", "far.csv")
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))

    assert len(read(trace_of(Path("sub/far.csv")))) == 3


@pytest.mark.parametrize("name", ["a" * 300 + ".csv", "nul\0.csv"])
def test_a_name_that_no_file_can_have_is_that_of_a_missing_file(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TESTBED_DATA", raising=False)

    with pytest.raises(RunError, match=r"^no trace at "):
        read(trace_of(Path(name)))


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("azure", "github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_conv.csv"),
        ("mooncake", "github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl"),
    ],
)
def test_a_missing_file_says_where_to_get_it(form: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESTBED_DATA", raising=False)

    with pytest.raises(RunError, match=r"^no trace at absent\.csv: ") as caught:
        read(trace_of(Path("absent.csv"), form))

    assert place in str(caught.value)
    assert "TESTBED_DATA" in str(caught.value)


HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
WHOLE = "a whole number from 0 to 1000000000"
OBJECT = 'a JSON object with "timestamp" (ms), "input_length" and "output_length"'


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("azure", "a,b\n", "1: the header is 'a,b'; accepted: TIMESTAMP,ContextTokens,GeneratedTokens"),
        (
            "azure",
            HEADER + "yesterday,1,1\n",
            "2: TIMESTAMP is 'yesterday'; accepted: an instant such as 2023-11-16 18:15:46.6805900",
        ),
        (
            "azure",
            HEADER + "2023-11-16 18:15:46.68,1\n",
            "2: '2023-11-16 18:15:46.68,1' has 2 columns; accepted: TIMESTAMP,ContextTokens,GeneratedTokens",
        ),
        (
            "azure",
            HEADER + "2023-11-16 18:15:46.68,1,1\n\n2023-11-16 18:15:46.68,many,1\n",
            f"4: ContextTokens is 'many'; accepted: {WHOLE}",
        ),
        (
            "azure",
            HEADER + "2023-11-16 18:15:46.68,1,-3\n",
            f"2: GeneratedTokens is '-3'; accepted: {WHOLE}",
        ),
        (
            "azure",
            HEADER + "2023-11-16 18:15:46.68,1,99999999999\n",
            f"2: GeneratedTokens is '99999999999'; accepted: {WHOLE}",
        ),
        ("mooncake", "{]\n", f"1: '{{]' is not JSON; accepted: {OBJECT}"),
        ("mooncake", "\n[1, 2]\n", f"2: '[1, 2]' is not an object; accepted: {OBJECT}"),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 1}\n',
            f"1: output_length missing; accepted: {OBJECT}",
        ),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 1.5, "output_length": 1}\n',
            f"1: input_length is 1.5; accepted: {WHOLE}",
        ),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": true, "output_length": 1}\n',
            f"1: input_length is True; accepted: {WHOLE}",
        ),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [7]}\n',
            "1: hash_ids is [7]; accepted: a list of 2 ids of blocks of 512 tokens, as input_length says",
        ),
        (
            "mooncake",
            '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [-7]}\n',
            "1: a hash id is -7; accepted: a whole number from 0 to 4294967295",
        ),
    ],
)
def test_a_malformed_row_is_named_with_file_and_line(
    form: str, text: str, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)

    with pytest.raises(RunError) as caught:
        read(trace_of(path, form))

    assert str(caught.value) == f"{path}:{message}"


@pytest.mark.parametrize("form", ["azure", "mooncake"])
def test_a_file_that_is_no_text_or_empty_is_refused(form: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not text in UTF-8"):
        read(trace_of(written(tmp_path, HEADER.encode() + b"\xff\xfe\n", "binary"), form))
    with pytest.raises(RunError, match="holds no request"):
        read(trace_of(written(tmp_path, HEADER if form == "azure" else "\n", "empty"), form))


def test_rows_are_dealt_by_weight_and_keep_their_line_in_another_window(tmp_path: Path) -> None:
    lines = "".join(f"2023-11-16 18:{i // 60:02}:{i % 60:02},1,1\n" for i in range(3000))
    path = written(tmp_path, HEADER + lines)
    weights = [4.0, 3.5, 2.5]

    rows = read(trace_of(path))
    dealt = deal(rows, weights, seed=1, name="conv")
    window = read(trace_of(path, **{"from": "1000 s"}))

    assert np.bincount(dealt) / len(dealt) == pytest.approx([0.4, 0.35, 0.25], abs=0.04)
    assert deal(window, weights, seed=1, name="conv").tolist() == dealt[1000:].tolist()
    assert deal(rows, [8.0, 7.0, 5.0], seed=1, name="conv").tolist() == dealt.tolist()


@needs_data
@pytest.mark.parametrize("name", ["AzureLLMInferenceTrace_conv.csv", "AzureLLMInferenceTrace_code.csv"])
def test_the_azure_traces_have_their_published_statistics(name: str) -> None:
    expected = json.loads((DATA / "trace_stats.json").read_text())[name]

    rows = read(trace_of(DATA / name))

    gaps_s = np.diff(rows.at_s)
    assert len(rows) == expected["rows"]
    assert rows.at_s[-1] == pytest.approx(expected["span_s"], abs=1e-3)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(expected["iat_cv"], abs=2e-3)
    assert gaps_s.max() == pytest.approx(expected["max_gap_s"], abs=1e-3)
    _assert_tokens(rows, expected)


@needs_data
def test_the_mooncake_trace_has_its_published_statistics() -> None:
    """Spread over the steps of 3 s the arrivals are near Poisson; the tolerances are those of another seed."""
    expected = json.loads((DATA / "trace_stats.json").read_text())["mooncake_conversation_trace.jsonl"]
    spread = expected["jittered_uniform_3s_seed0"]

    rows = read(trace_of(DATA / "mooncake_conversation_trace.jsonl", "mooncake"))

    gaps_s = np.diff(rows.at_s)
    counts = np.histogram(rows.at_s, bins=np.arange(0.0, rows.at_s[-1], 1.0))[0]
    assert len(rows) == expected["rows"]
    assert expected["span_s"] <= rows.at_s[-1] <= expected["span_s"] + 3.0
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(spread["iat_cv"], abs=0.03)
    assert counts.var() / counts.mean() == pytest.approx(spread["dispersion_index_1s"], abs=0.1)
    _assert_tokens(rows, expected)
    assert _hit_blocks(rows) == pytest.approx(0.366, abs=5e-4)


def _hit_blocks(rows: Any) -> float:
    """The share of blocks that an unlimited prefix cache would hit, request after request."""
    cache = PrefixCache(10**12)
    sharing = rows.sharing.of_root(np.argsort(rows.row))
    hits = 0
    for i in range(len(rows)):
        chain = sharing.chain(i)
        found = cache.match(chain)
        hits += sum(1 for end in np.cumsum(chain[1::2]).tolist() if end <= found)
        cache.hold(chain, 0.0)
    return hits / (len(sharing.pairs) / 2)


def _assert_tokens(rows: Any, expected: dict[str, Any]) -> None:
    for tokens, words in (
        (rows.prompt_tokens, expected["prompt_tokens"]),
        (rows.output_tokens, expected["output_tokens"]),
    ):
        assert tokens.mean() == pytest.approx(words["mean"], abs=0.06)
        assert tokens.max() == words["max"]
        assert np.percentile(tokens, [5, 50, 99]) == pytest.approx(
            [words["p5"], words["p50"], words["p99"]], abs=1.0
        )
