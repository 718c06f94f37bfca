"""Is JSON of nccl-tests, of NCCL Inspector, of ours and of published tables read with all its quirks?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commsim.errors import InputError
from commsim.measurement.read import measurements
from commsim.measurement.writers.json_lines import write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from commsim.measurement.records import Measurement


def side(time: float) -> dict[str, Any]:
    return {
        "time": time,
        "alg_bw": round(1048576 / time / 1e3, 6),
        "bus_bw": round(1.75 * 1048576 / time / 1e3, 6),
        "nwrong": 0,
    }


def run(**more: object) -> dict[str, Any]:
    """Return a run of all_reduce on 8 ranks of one host, as nccl-tests writes it."""
    places = [
        {"rank": n, "group": 0, "pid": 1, "hostname": "gpu-a7", "device": n, "device_info": "NVIDIA B200"}
        for n in range(8)
    ]
    result = {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1"}
    return {
        "version": 3,
        "start_time": "2026-01-28 14:50:17",
        "args": ["/home/ada/all_reduce_perf", "-J", "out.json"],
        "env": ["AWS_SECRET_ACCESS_KEY=hunter2", "NCCL_ALGO=Ring", "NCCL_SOCKET_IFNAME=ens7", "HOME=/home/ada"],
        "nccl_version": 22902,
        "config": {
            "minimum_bytes": 1048576,
            "maximum_bytes": 1048576,
            "step_factor": 2,
            "iterations": 20,
            "blocking_collectives": "false",
            "devices": places,
        },
        "results": [{**result, "out_of_place": side(100.0), "in_place": side(105.0)}],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 17.9, "okay": "unchecked"},
        "errors": [],
        "end_time": "2026-01-28 14:51:02",
        **more,
    }


def read(path: Path, *documents: object, text: str | None = None) -> list[Measurement]:
    target = path / "out.json"
    target.write_text(text if text is not None else "\n".join(map(json.dumps, documents)), encoding="utf-8")
    return measurements(target)


def test_a_run(tmp_path: Path) -> None:
    (found,) = read(tmp_path, run(average_bus_bandwidth={"bandwidth": 17.913, "okay": "unchecked"}))
    assert (found.op.name, found.ranks, found.nodes, found.version) == ("all_reduce", 8, 1, "2.29.2")
    assert found.seconds.tolist() == pytest.approx([100e-6])
    assert found.in_place_seconds.tolist() == pytest.approx([105e-6])
    assert found.problems == ()


def test_nothing_of_the_environment_but_settings(tmp_path: Path) -> None:
    (found,) = read(tmp_path, run())
    assert found.settings["NCCL_ALGO"] == "Ring"
    assert [word for word in ("hunter2", "ada", "ens7", "gpu-a7") if word in repr(found)] == []


def test_one_device_of_a_process_stands_for_all(tmp_path: Path) -> None:
    """A trap of the JSON: of a process with eight GPUs only one may be listed."""
    document = run(average_bus_bandwidth={})
    config = {**document["config"], "nthreads": 1, "ngpus": 8, "devices": document["config"]["devices"][:1]}
    (found,) = read(tmp_path, {**document, "config": config})
    assert (found.ranks, found.nodes, found.problems) == (8, 1, ())
    with pytest.raises(InputError, match="GPUs of one process"):
        read(tmp_path, {**document, "config": {**config, "ngpus": 0}})


@pytest.mark.parametrize("key", ["average_bus_bandwidth", "average_bus_bandwidith"])
def test_misspelt_average(tmp_path: Path, key: str) -> None:
    inner = "bandwidith" if "width" not in key else "bandwidth"
    document = {name: value for name, value in run().items() if name != "average_bus_bandwidth"}
    (found,) = read(tmp_path, {**document, key: {inner: 99.0, "okay": "true"}})
    assert any("printed 99" in said for said in found.problems)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"out_of_bounds": {"count": 3, "okay": "false"}}, "wrong results"),
        ({"errors": ["remote process exited"]}, "the run failed: remote process exited"),
        ({"args": ["hypercube_perf"]}, "hypercube_perf"),
    ],
)
def test_problems(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    (found,) = read(tmp_path, run(**change))
    assert any(said in problem for problem in found.problems)


@pytest.mark.parametrize("bad", ["nan", None, -1.0, 0.0, True, [1]])
def test_no_time(tmp_path: Path, bad: object) -> None:
    document = run()
    document["results"].append(
        {**document["results"][0], "size": 2097152, "count": 524288, "in_place": {**side(1.0), "time": bad}}
    )
    (found,) = read(tmp_path, document)
    assert len(found.rows) == 1
    assert any("result 2 of 2097152 B" in problem for problem in found.problems)


def test_a_blank_side(tmp_path: Path) -> None:
    document = run()
    document["results"][0]["out_of_place"] = None
    (found,) = read(tmp_path, document)
    assert found.seconds.tolist() == pytest.approx([105e-6])


def test_iterations(tmp_path: Path) -> None:
    document = run()
    document["results"][0]["out_of_place_per_iter"] = {
        **{f"{key}_us": value for key, value in (("min", 90), ("max", 130), ("avg", 100), ("p99", 128))},
        "cv_pct": 5.0,
        "times_us": [90.0, 130.0],
    }
    (found,) = read(tmp_path, document)
    timing = found.rows[0].out_of_place
    assert timing
    assert timing.spread
    assert timing.samples[0] == pytest.approx((90e-6, 130e-6))
    assert (timing.spread.slowest, timing.spread.variation) == pytest.approx((130e-6, 0.05))


def test_a_file_that_ends_early_keeps_its_whole_results(tmp_path: Path) -> None:
    document = run()
    document["results"] *= 3
    text = json.dumps(document, indent=1)
    third = [at for at in range(len(text)) if text.startswith('"size"', at)][2]
    (found,) = read(tmp_path, text=text[: third + 300])
    assert len(found.rows) == 2
    assert any("ends early" in problem for problem in found.problems)


@pytest.mark.parametrize("cut", [0.02, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_wherever_it_ends(tmp_path: Path, cut: float) -> None:
    text = json.dumps(run(), indent=1)
    try:
        (found,) = read(tmp_path, text=text[: int(cut * len(text))])
    except InputError:
        return
    assert any("ends early" in problem for problem in found.problems)
    assert len(found.rows) <= 1


@pytest.mark.parametrize("text", ["{", "{]", '{"record": NaN}', '[{"a": 1}]', "{}{", '{"a":' * 5000, "[[{}]]", "{} x"])
def test_what_is_not_ours_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read(tmp_path, text=text)


def operation(rank: int, time: float, name: str = "ReduceScatter") -> dict[str, Any]:
    size = 2147483648
    rates = {"coll_algobw_gbs": 8 * size / time / 1e3, "coll_busbw_gbs": 7 * size / time / 1e3}
    performed = {"coll": name, "coll_sn": 1, "coll_msg_size_bytes": size, "coll_exec_time_us": time, **rates}
    return {
        "header": {"rank": rank, "n_ranks": 8, "nnodes": 1},
        "metadata": {"hostname": "gpu-a7"},
        "coll_perf": performed,
    }


@pytest.mark.parametrize("indent", [None, 1])
def test_inspector(tmp_path: Path, indent: int | None) -> None:
    """reduce_scatter's size is that of one rank there; objects may stand in lines or one after another."""
    objects = [operation(rank, 41057.0 + rank) for rank in range(3)]
    (found,) = read(tmp_path, text="\n".join(json.dumps(one, indent=indent) for one in objects))
    assert (found.op.name, found.ranks, found.nodes) == ("reduce_scatter", 8, 1)
    assert found.sizes.tolist() == [8 * 2147483648]
    assert found.seconds.tolist() == pytest.approx([41058e-6])
    assert "gpu-a7" not in repr(found)
    assert found.problems == ()


def test_inspector_names_what_it_leaves_out(tmp_path: Path) -> None:
    sent = {"header": {"rank": 0, "n_ranks": 8}, "p2p_perf": {"p2p": "Send"}}
    (found,) = read(tmp_path, sent, operation(0, 41057.0))
    assert any("1 point-to-point" in problem for problem in found.problems)
    (unknown,) = read(tmp_path, operation(0, 41057.0, "Gathering"))
    assert unknown.candidates == ()


RUN = {
    "record": "run",
    "schema": 1,
    "library": "gloo",
    "machine": {"nodes": 1, "hosts": [{"ranks": [0, 1], "accelerator": "cpu"}]},
    "versions": {"gloo": "0.5", "commsim": "0.1.0"},
    "settings": {"GLOO_SOCKET_IFNAME": "lo"},
    "seed": 0,
}
OP = {"record": "op", "op": "all_reduce", "dtype": "float", "ranks": 2, "size_bytes": 1024, "redop": "sum"}


def test_our_lines(tmp_path: Path) -> None:
    (found,) = read(tmp_path, RUN, {**OP, "samples_s": [[1e-3, 3e-3, 2e-3], [2e-3, 1e-3, 1e-3]], "checked": True})
    assert (found.op.name, found.ranks, found.library, found.version) == ("all_reduce", 2, "gloo", "0.5")
    assert found.seconds.tolist() == [2e-3]  # the slowest ranks take 2, 3 and 2 ms
    assert found.problems == ()


def test_waiting_for_a_late_rank_is_not_communication(tmp_path: Path) -> None:
    """Rank 1 comes 50 ms late: rank 0 sees 59.7 ms, rank 1 sees 9.7 ms, and that is how long it took."""
    late = {**OP, "samples_s": [[59.7e-3], [9.7e-3]], "arrival_s": [[0.0], [50e-3]]}
    (found,) = read(tmp_path, RUN, late)
    assert found.seconds.tolist() == pytest.approx([9.7e-3])


@pytest.mark.parametrize(
    "change",
    [
        {"samples_s": []},
        {"samples_s": [[1e-3], []]},
        {"samples_s": [[1e-3, 2e-3], [1e-3]]},
        {"samples_s": [[0.0]]},
        {"samples_s": [["1"]]},
        {"samples_s": [[1e-3]], "arrival_s": [[0.0, 1.0]]},
        {"time_s": -1},
        {},
        {"time_s": 1, "ranks": 0},
        {"time_s": 1, "size_bytes": 1.5},
        {"time_s": 1, "op": "all_redcue"},
    ],
)
def test_our_lines_are_checked(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read(tmp_path, RUN, {**OP, **change})


def test_ops_without_a_run_or_of_another_schema(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a record of kind run comes first"):
        read(tmp_path, {**OP, "time_s": 1})
    with pytest.raises(InputError, match="schema 1 is read"):
        read(tmp_path, {**RUN, "schema": 2})


def test_wrong_results_and_an_end_too_early(tmp_path: Path) -> None:
    lines = [json.dumps(one) for one in (RUN, {**OP, "time_s": 1, "checked": False}, {**OP, "time_s": 2})]
    (found,) = read(tmp_path, text="\n".join(lines)[:-20])
    assert len(found.rows) == 1
    assert found.problems == ("the JSON lines end early", "wrong results at 1024 B")


def test_our_lines_come_back(tmp_path: Path) -> None:
    (first,) = read(tmp_path, run())
    (again,) = read(tmp_path, text=write_lines([first]))
    assert [again.op, again.ranks, again.hosts, again.nodes] == [first.op, first.ranks, first.hosts, first.nodes]
    assert again.seconds.tolist() == first.seconds.tolist()
    assert again.in_place_seconds.tolist() == first.in_place_seconds.tolist()
    assert dict(again.settings) == dict(first.settings)
    assert (again.library, again.version) == (first.library, first.version)


def table(**more: object) -> dict[str, Any]:
    rows = [{"size_bytes": 1024, "time_s": 1e-5, "in_place_time_s": 2e-5}, {"size_bytes": 2048, "time_s": 3e-5}]
    nics = {"per_node": 8, "gbit_per_s": 400, "fabric": "infiniband"}
    known = {
        "op": "all_gather",
        "dtype": "half",
        "system": "hgx-h100",
        "nodes": 2,
        "ranks": 16,
        "nics": nics,
        "rows": rows,
    }
    return {
        **known,
        "library": "nccl",
        "library_version": None,
        "settings": {"nvls": False},
        "health": "degraded",
        **more,
    }


def test_a_published_table(tmp_path: Path) -> None:
    (found,) = read(tmp_path, table())
    assert (found.op.name, found.ranks, found.system, found.version) == ("all_gather", 16, "hgx-h100", "")
    assert found.nics
    assert (found.nics.per_node, found.nics.bandwidth, found.nics.fabric) == (8, 50e9, "infiniband")
    assert found.settings == {"nvls": "False"}
    assert "degraded" not in repr(found)
    assert len(read(tmp_path, [table(), table()])) == 2


@pytest.mark.parametrize(
    "change", [{"ranks": 0}, {"op": "gather"}, {"rows": 1}, {"rows": [{"size_bytes": 1, "time_s": 0}]}]
)
def test_a_published_table_is_checked(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        read(tmp_path, table(**change))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["all_reduce_perf", "-R", "2"], "2"),
        (["all_reduce_perf", "-R2", "-b", "8"], "2"),
        (["all_reduce_perf", "--local_register=1"], "1"),
        (["all_reduce_perf", "--local_register", "2"], "2"),
        (["all_reduce_perf", "-b", "2"], None),
        ("all_reduce_perf -R 2", None),
    ],
)
def test_how_buffers_are_registered(tmp_path: Path, arguments: object, expected: str | None) -> None:
    (found,) = read(tmp_path, run(args=arguments))
    assert found.settings.get("local_register") == expected
